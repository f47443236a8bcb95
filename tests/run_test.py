#!/usr/bin/env python3
"""Tests of the test runner: that it finds what it should, and that every kind of failure is one.

The compiler is a script here that does what the file it is given says.
"""
import io
import os
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

sys.dont_write_bytecode = True
import run

# `slope COMMAND FILE ...`: runs the lines of the file that start with `//! COMMAND ` as shell code.
FAKE = """#!/bin/sh
command=$1; file=$2; all="$*"
[ "$command" = dump ] && [ "$2" = --after ] && file=$4
sed -n "s|^//! $command ||p" "$file" > "$file.sh.tmp.$$"
all="$all" sh "$file.sh.tmp.$$"; status=$?
rm -f "$file.sh.tmp.$$"; exit $status
"""
FAKE_UNIT = """#!/bin/sh
echo '[==========] Running 2 test(s).'
echo '[ RUN      ] first'; echo '[       OK ] first'; echo '[ RUN      ] second'
"""


class RunnerTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name) / "tests"
        self.build = Path(self.folder.name) / "build"
        (self.build / "tests").mkdir(parents=True)
        self.root.mkdir()
        self.program(self.build / "slope", FAKE)

    def tearDown(self):
        self.folder.cleanup()

    def program(self, path, text):
        path.write_text(text)
        path.chmod(0o755)

    def file(self, name, text=""):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def run_all(self, bless=False, seconds=None, limit=None, filters=()):
        suite = run.Suite(self.build, bless, self.root)
        suite.seconds = seconds or suite.seconds
        suite.bytes = limit or suite.bytes
        return run.run_suite(suite, filters)

    def assert_passes(self, count, **options):
        passed, failures = self.run_all(**options)
        self.assertEqual((count, []), (passed, failures))

    def assert_fails(self, *parts, **options):
        """Exactly one failure, whose name and text contain the parts."""
        _, failures = self.run_all(**options)
        self.assertEqual(1, len(failures), failures)
        for part in parts:
            self.assertIn(part, failures[0][0] + "\n" + failures[0][1])

    def test_of_some_folders_a_part_can_be_run(self):
        for name in "abc":
            for folder in ("many", "few"):
                self.file(f"{folder}/{name}.slang", "//! run echo ran\n")
                self.file(f"{folder}/{name}.out", "ran\n")
        suite = run.Suite(self.build, root=self.root)
        self.assertEqual(5, run.run_suite(suite, share=2, shared=("many/",))[0])
        self.assertEqual(3, run.run_suite(suite, share=2)[0])

    # ---- goldens

    def test_each_golden_is_a_test_with_its_command(self):
        self.file("stage/a.slang", "//! dump echo $all\n//! run echo ran\n//! check true\n")
        self.file("stage/a.ast", "dump a.slang --after syntax\n")
        self.file("stage/a.checked", "dump a.slang --after check\n")
        self.file("stage/a.ir", "dump a.slang --after lower\n")
        self.file("stage/a.out", "ran\n")
        self.file("stage/a.err", "")
        self.assert_passes(5)

    def test_directives_change_the_command(self):
        self.file("a.slang", "// after: ssa\n// function: f\n// args: -O0 -g\n//! dump echo $all\n")
        self.file("a.ir", "dump a.slang --after ssa -f f -O0 -g\n")
        self.assert_passes(1)

    def test_directives_stand_at_the_top(self):
        self.file("a.slang", "//! run echo $all\n" + "//\n" * 10 + "// args: -O0\n")
        self.file("a.out", "run a.slang\n")
        self.assert_passes(1)

    def test_wrong_output_fails_with_a_difference(self):
        self.file("a.slang", "//! run echo found\n")
        self.file("a.out", "wanted\n")
        self.assert_fails("a.out", "-wanted", "+found")

    def test_wrong_status_fails(self):
        self.file("a.slang", "//! run echo same; echo why >&2; exit 3\n")
        self.file("a.out", "same\n")
        self.assert_fails("exit status 3, not 0", "why")

    def test_status_directive(self):
        self.file("a.slang", "// status: 3\n//! run exit 3\n")
        self.file("a.out")
        self.assert_passes(1)

    def test_messages_with_errors_need_status_1(self):
        self.file("a.slang", "//! check echo 'a.slang:1:1: error E1234: wrong' >&2\n")
        self.file("a.err", "a.slang:1:1: error E1234: wrong\n")
        self.assert_fails("exit status 0, not 1")

    def test_warnings_alone_need_status_0(self):
        self.file("a.slang", "//! check echo 'a.slang:1:1: warning W1234: hm' >&2\n")
        self.file("a.err", "a.slang:1:1: warning W1234: hm\n")
        self.assert_passes(1)

    def test_json_is_asked_for_and_compared(self):
        self.file("a.slang", "//! check echo \"{\\\"severity\\\":\\\"error\\\",\\\"all\\\":\\\"$all\\\"}\" >&2; exit 1\n")
        self.file("a.json", '{"severity":"error","all":"check a.slang --json"}\n')
        self.assert_passes(1)

    def test_paths_of_the_machine_do_not_show(self):
        self.file("x/a.slang", "//! run echo $PWD/a.slang\n")
        self.file("x/a.out", "a.slang\n")
        self.assert_passes(1)

    def test_bless_rewrites_goldens(self):
        self.file("a.slang", "//! run echo found\n//! check echo 'a: error E0001: x' >&2; exit 1\n")
        out, err = self.file("a.out", "wanted\n"), self.file("a.err", "")
        self.assert_passes(2, bless=True)
        self.assertEqual(("found\n", "a: error E0001: x\n"), (out.read_text(), err.read_text()))
        self.assert_passes(2)

    def test_bless_does_not_accept_a_crash(self):
        self.file("a.slang", "//! run kill -SEGV $$\n")
        out = self.file("a.out", "wanted\n")
        self.run_all(bless=True)
        self.assertEqual("wanted\n", out.read_text())

    # ---- expectations in the source

    def test_expect_lines(self):
        self.file("a.slang", "//! run printf '1\\n\\n2 3\\n'\nx; // expect: 1\ny; // expect:\nz; // expect: 2 3\n")
        self.assert_passes(1)

    def test_expect_fails_on_more_and_on_less(self):
        self.file("more.slang", "//! run printf '1\\n2\\n'\n// expect: 1\n")
        self.assert_fails("more.slang", "+2")
        (self.root / "more.slang").unlink()
        self.file("less.slang", "//! run printf '1\\n'\n// expect: 1\n// expect: 2\n")
        self.assert_fails("less.slang", "-2")

    def test_gradcheck_is_one_more_test(self):
        self.file("a.slang", "// gradcheck: --samples 3\n//! run echo 1\n//! gradcheck test \"$all\" = 'gradcheck a.slang -O1 "
                  "--samples 3'\n// expect: 1\n")
        self.assert_passes(2)

    def test_gradcheck_fails(self):
        self.file("a.slang", "// gradcheck\n//! gradcheck echo off; exit 1\n")
        self.assert_fails("a.slang:gradcheck", "off")

    def test_command(self):
        self.file("a.slang", "// cmd: cp %s %t && cat %t %t | grep -c cmd; echo %t; %slope run %s\n//! run echo ran\n")
        self.file("a.out", "2\n%t\nran\n")
        self.assert_passes(1)

    def test_command_alone_is_judged_by_its_status(self):
        self.file("a.slang", "// cmd: echo hm; exit 1\n")
        self.assert_fails("a.slang", "exit status 1, not 0", "hm")

    @unittest.skipUnless(os.access(run.find_filecheck(), os.X_OK), "there is no FileCheck")
    def test_filecheck(self):
        self.file("a.slang", "// filecheck: dump --after ssa\n//! dump echo \"one $all\"\n// CHECK: one {{.*}} ssa a.slang\n")
        self.assert_passes(1)
        self.file("a.slang", "// filecheck: dump --after ssa\n//! dump echo one\n// CHECK: two\n")
        self.assert_fails("a.slang:filecheck", "CHECK: expected string not found")

    @unittest.skipUnless(os.access(run.find_filecheck(), os.X_OK), "there is no FileCheck")
    def test_ir_goes_through_irtool(self):
        self.program(self.build / "tests" / "irtool", "#!/bin/sh\necho tool $1\n")
        self.file("ir/a.ir", "; RUN-PASSES: ssa\n; CHECK: tool a.ir\n")
        self.assert_passes(1)

    def test_ir_with_a_command(self):
        self.program(self.build / "tests" / "jittool", "#!/bin/sh\necho 7\n")
        self.file("emit/a.ir", "; cmd: %{jittool} %s\n; expect: 7\n")
        self.assert_passes(1)

    # ---- the suite itself

    def test_a_source_without_expectation_is_an_error(self):
        self.file("a.slang", "int x;\n")
        self.assert_fails("a.slang", "nothing to check")

    def test_a_golden_without_source_is_an_error(self):
        self.file("a.out", "")
        self.assert_fails("a.out", "no source beside it")

    def test_helpers_are_no_tests(self):
        self.file("stage/lib/a.slang")
        self.file("stage/b.d/a.slang")
        self.assert_passes(0)

    def test_filters_choose(self):
        for name in ("a", "b"):
            self.file(f"{name}.slang", "//! run true\n")
            self.file(f"{name}.out")
        self.assert_passes(1, filters=["b.out"])

    def test_time_is_limited(self):
        self.file("a.slang", "//! run sleep 30\n")
        self.file("a.out")
        self.assert_fails("took longer than 1.5 s", seconds=0.3)

    def test_work_is_limited(self):
        self.file("a.slang", "//! run while :; do :; done\n")
        self.file("a.out")
        with unittest.mock.patch.object(run, "PATIENCE", 100):
            self.assert_fails("took longer than 1 s of the processor", seconds=1)

    def test_memory_is_limited(self):
        hungry = f"{sys.executable} -c 'import time; x = bytearray(300 << 20); time.sleep(20)'"
        self.file("a.slang", f"//! run {hungry}\n")
        self.file("a.out")
        self.assert_fails("took more than 100 MiB", limit=100 << 20)

    def test_a_signal_is_named(self):
        self.file("a.slang", "// cmd: kill -SEGV $$\n")
        self.assert_fails("SIGSEGV")

    def test_several_failures_are_all_reported(self):
        for name in ("a", "b", "c"):
            self.file(f"{name}.slang", "//! run exit 1\n")
            self.file(f"{name}.out")
        _, failures = self.run_all()
        out = io.StringIO()
        run.report(failures, out)
        self.assertEqual(3, out.getvalue().count("FAIL "))

    # ---- unit tests

    def unit(self, end):
        self.file("unit/test_x.c", "int main(void);\n")
        self.program(self.build / "tests" / "test_x", FAKE_UNIT + end)

    def test_unit_tests_are_counted(self):
        self.unit("echo '[  PASSED  ] 2 test(s).'\n")
        self.assert_passes(2)

    def test_unit_failures_are_named(self):
        self.unit("echo '[  FAILED  ] second'; echo '[  PASSED  ] 1 test(s).'; echo '[  FAILED  ] 1 test(s), listed below:'\n"
                  "echo '[  FAILED  ] second'; exit 1\n")
        self.assertEqual(1, self.run_all()[0])
        self.assert_fails("unit/test_x/second")

    def test_a_crashed_unit_test_is_named(self):
        self.unit("kill -SEGV $$\n")
        self.assert_fails("unit/test_x/second", "SIGSEGV")

    def test_a_unit_test_that_runs_nothing_fails(self):
        self.unit("exit 0\n")
        self.assert_fails("unit/test_x")

    def test_a_unit_test_that_was_not_built_fails(self):
        self.file("unit/test_y.c", "")
        self.assert_fails("unit/test_y", "not built")


if __name__ == "__main__":
    unittest.main()
