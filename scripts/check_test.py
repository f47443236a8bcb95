#!/usr/bin/env python3
"""Tests of check.py: that each rule finds what breaks it, and lets pass what does not."""
import platform
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
import check


class CheckTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.old_root, check.ROOT = check.ROOT, Path(self.folder.name)

    def tearDown(self):
        check.ROOT = self.old_root
        self.folder.cleanup()

    def file(self, name, text):
        path = check.ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def assert_finds(self, rule, *parts):
        """One problem per part, in order."""
        problems = list(rule())
        self.assertEqual(len(parts), len(problems), problems)
        for part, problem in zip(parts, problems):
            self.assertIn(part, problem)

    def test_messages(self):
        self.file("src/diag/diag.def", 'DIAG(used, error, 3001, "x")\nDIAG(mute, error, 3002, "y")\n'
                  'DIAG(told, note, 0, "is \\"%s\\" here")\nDIAG(untold, note, 0, "nor \\"%s\\" there")\n')
        self.file("src/check/a.c", "f(DIAG_used, DIAG_told, DIAG_untold);\n")
        self.file("tests/check/a.err", 'a:1:1: error E3001: x\nnote: is "me" here\nerror E13002: y\n')
        self.assert_finds(check.check_messages, "2: no test expects 'mute'", "2: nothing reports 'mute'",
                          "4: no test expects 'untold'")

    def test_layering(self):
        self.file("src/base/base.h", "")
        self.file("src/base/a.c", '#include "base.h"\n#include "diag/diag.h"\n')
        self.file("src/ir/a.c", '#include "type/type.h"\n#include "check/check.h"\n')
        self.file("src/opt/a.c", '#include "ir/ir.h"\n#include "autodiff/autodiff.h"\n')
        self.file("src/cli/a.c", '#include "slope.h"\n#include "base/base.h"\n#include "cli/cli.h"\n')
        self.file("src/lower/a.c", '#include "check/check.h"\n#include "nowhere.h"\n#include "slope.h"\n')
        self.assert_finds(check.check_layering, "base/a.c:2: base does not see diag", "cli/a.c:2: cli does not see base",
                          "ir/a.c:2: ir does not see check", "'nowhere.h' is not in this folder",
                          "lower does not see slope.h", "opt/a.c:2: opt does not see autodiff")

    def test_order(self):
        self.file("src/ir/ir.h", "Val *build_load(Builder *b, Val *p);\nVal *build_sum(Builder *b, Val *x, Val *y);\n")
        self.file("src/ir/a.c", "void f(void) {\n    build_sum(b, build_load(b, p), x);\n    build_sum(b, build_load(b, p),\n"
                  "              -build_load(b, q));\n    g(build_load(b, p)), h(build_load(b, q));\n}\n")
        self.file("src/opt/a.c", "static Val *half(Pass *p) { return build_load(p->b, p->x); }\n\nvoid g(Pass *p) {\n    h(half(p), half(p));\n}\n")
        self.file("src/opt/b.c", "void g(Pass *p) {\n    h(half(p), half(p));\n}\n")
        self.assert_finds(check.check_order, "src/ir/a.c:3: two arguments of 'build_sum'", "src/opt/a.c:4: two arguments of 'h'")

    @unittest.skipUnless(Path(f"/usr/{check.OTHER_PROCESSOR.get(platform.machine())}/include").exists(), "there is no C library of another processor")
    def test_processors(self):
        name = {"x86_64": "aarch64", "aarch64": "x86_64"}[platform.machine()]
        self.file("src/emit/a.c", f"#if defined(__{name}__)\nstatic int unused(void) {{ return 0; }}\n#endif\nint f(void);\n")
        self.assert_finds(check.check_processors, "src/emit/a.c:2:")

    def test_inner_headers(self):
        self.file("src/lower/a.c", '#include "check/checker.h"\n#include "check/check.h"\n#include "lower/lowerer.h"\n')
        self.file("src/runtime/a.c", '#include "emit/abi.h"\n')
        self.assert_finds(check.check_layering, "lower/a.c:1: 'check/checker.h' is for check alone")

    def test_headers(self):
        self.file("src/base/base.h", "/* base: x */\ntypedef struct S {\n    int (*f)(void);\n} S;\nint free_one(void);\n"
                  "/* ---- a.c, b.c: y */\nint here(int a,\n         int b);\nint there(void); /* c.c: z */\n/* of c */\n"
                  "int astray(void);\nint gone(void);\nint lonely(void);\nstatic inline int twice(int x) { return 2 * x; }\n")
        self.file("src/base/a.c", "int lonely(void) { return here(1, 2); }\n")
        self.file("src/base/b.c", "int here(int a,\n         int b) {\n    return there() + astray() + free_one();\n}\n")
        self.file("src/base/c.c", "int there(void) { return here(1, 2); }\nint astray(void) { return 1; }\n"
                  "int free_one(void) { return 1; }\n")
        self.assert_finds(check.check_headers, "base.h:11: 'astray' stands under a.c, not under c.c",
                          "base.h:12: nothing defines 'gone'", "base.h:13: nobody but a.c uses 'lonely'")

    def test_long_functions(self):
        long_body = "    work();\n" * 100
        self.file("src/base/a.c", "/* x */\nstatic int f(int a,\n             int b) {\n" + long_body + "}\n\nint g(void) { return 1; }\n")
        cases = "    case 1: return 2;\n" * 100
        self.file("src/base/b.c", "/* x */\nint f(int a) {\n    switch (a) {\n" + cases + "    }\n}\n")
        self.file("src/base/c.c", "/* x */\nint f(int a);\n" + "int g(void) {\n    return 1;\n}\n" * 60)
        self.assert_finds(check.check_sizes, "src/base/a.c:2: a function of 103 lines")

    def test_long_files(self):
        self.file("src/base/a.c", "/* x */\n" * 1001)
        self.assert_finds(check.check_sizes, "src/base/a.c: 1001 lines")

    def test_habits(self):
        self.file("src/base/a.c", "/* x */\nvoid f(void) { printf(\"x\"); } /* printf( */\n")
        self.file("src/base/b.c", "/* x */\nvoid f(void) { snprintf(s, 3, \"exit(\"), text_printf(t, \"x\"); }\n")
        self.file("src/base/c.c", "int x; /* TO" + "DO */\n")
        self.file("src/cli/a.c", "/* x */\nvoid f(void) { printf(\"x\"); }\n")
        self.assert_finds(check.check_habits, "c.c:1: it does not open", "c.c:1: unfinished", "a.c:2: printf is for driver")

    def test_format(self):
        self.file(".clang-format", "BasedOnStyle: LLVM\n")
        self.file("src/base/good.c", "int x;\n")
        self.file("src/base/bad.c", "int   x;\n")
        self.assert_finds(check.check_format, "src/base/bad.c:1: not formatted")

    def test_globals(self):
        source = self.file("a.c", "static int counter, start = 2;\nstatic const char *const names[] = {\"a\"};\n"
                           "int *f(void) { counter++; return &start; }\nconst char *g(int i) { return names[i]; }\n")
        objects = check.ROOT / "CMakeFiles" / "slope_base.dir"
        objects.mkdir(parents=True)
        subprocess.run(["gcc", "-fPIC", "-c", str(source), "-o", str(objects / "a.o")], check=True)
        problems = sorted(check.check_globals(check.ROOT))
        self.assertEqual(["a.o: 'counter' is a global variable", "a.o: 'start' is a global variable"], problems)


if __name__ == "__main__":
    unittest.main()
