#!/usr/bin/env python3
"""Tests of the generator, the check and the shrinker: python3 tests/fuzz/fuzz_test.py [--build DIR]

What the check is for must make it fail: each way in which a derivative can be wrong is tried with a custom derivative that
is wrong in that way.
"""
import argparse
import itertools
import subprocess
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/fuzz"))
import items
from execute import Executor
from fuzz import OTHER_WAYS, compare_ways, way_of
from generate import Generator
from grids import Grids
from harness import module_text
from shrink import shrink
from tree import INT, REAL, Function, Node, Param, Program, Struct, Field, Text, Writer, is_sound

BUILD = ROOT / "build"

CUSTOM = """[ForwardDerivative(c_f)]
[BackwardDerivative(c_b)]
@ c(@ x, @ y) { return x * y * y; }
DifferentialPair<@> c_f(DifferentialPair<@> x, DifferentialPair<@> y)
{ return diffPair(%s, %s); }
static int calls = 0;
void c_b(inout DifferentialPair<@> x, inout DifferentialPair<@> y, @ d)
{ calls++; x = diffPair(x.p, %s); y = diffPair(y.p, %s); }
"""
RIGHT = ["x.p * y.p * y.p", "y.p * y.p * x.d + 2.0~ * x.p * y.p * y.d", "y.p * y.p * d", "2.0~ * x.p * y.p * d"]


def variable(name):
    return Node(name, type=REAL, uses=(name,))


def program(items, body, params=("x", "y"), frozen=False, single=False):
    f = Function("f", REAL, [Param("in", REAL, name) for name in params], body)
    structs = {item.name: item for item in items if isinstance(item, Struct)}
    return Program(1, [*items, f], structs, frozen, single)


def custom_program(place=None, text=None):
    """A function that calls one whose derivative is right, or wrong in one place."""
    parts = [text if i == place else part for i, part in enumerate(RIGHT)]
    call = Node("c($, $)", [variable("x"), variable("y")], REAL, uses=("c",), call="c")
    body = [Node("@ z = $;", [Node("sin($)", [variable("x")], REAL)], declares=("z",)),
            Node("if ($) #", [Node("$ < 5.0~", [variable("x")]), [Node("z += $;", [call], uses=("z",))]]),
            Node("return $;", [variable("z")])]
    return program([Text(CUSTOM % tuple(parts), ("c",))], body)


class ItemsTest(unittest.TestCase):
    def test_what_differs_in_more_than_zeros_and_the_last_digit_is_found(self):
        def is_same(one, other, is_code, text=""):
            return items.difference(*(f"{number} " + "0.0 " * 300 for number in (one, other)), is_code, text) is None
        for one, other in ("0.0", "-0.0"), ("inf", "-inf"):
            self.assertTrue(is_same(one, other, True))
            self.assertFalse(is_same(one, other, False))
        self.assertTrue(is_same("0.631332", "0.6313319", True, "bwd_diff(f)"))
        self.assertFalse(is_same("0.631332", "0.6313319", True))
        for one, other in ("9007199254740993", "9007199254740992"), ("nan", "1.0"), ("0.0", "1e-30"), ("1.0", "1.001"), ("inf", "1.0"):
            self.assertFalse(is_same(one, other, True, "bwd_diff(f)"))


class GeneratorTest(unittest.TestCase):
    def test_the_same_seed_gives_the_same_program(self):
        for seed in range(40):
            texts = {module_text({seed: Generator(seed).program()}) for _ in range(2)}
            self.assertEqual(len(texts), 1)
            self.assertEqual(Grids(seed).program().text, Grids(seed).program().text)

    def test_programs_are_sound(self):
        for seed in range(200):
            self.assertTrue(is_sound(Generator(seed).program()), seed)

    def test_every_production_is_used(self):
        seen = set()
        for seed in range(500):
            generator = Generator(seed)
            generator.program()
            seen |= generator.features
        wanted = {make.__name__.replace("_", " ") for _, make in [*generator.productions, *generator.helpers]}
        self.assertEqual(wanted - seen, set())

    def test_soundness_sees_unknown_names(self):
        known = [Node("return $;", [variable("x")])]
        self.assertTrue(is_sound(program([], known)))
        self.assertFalse(is_sound(program([], [Node("return $;", [variable("z")])])))
        self.assertFalse(is_sound(program([], [Node("break;", uses=("<break>",)), *known])))
        self.assertFalse(is_sound(program([], [Node("@ z = $;", [variable("x")], declares=("z",))])))


class CheckTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.executor = Executor(Path(BUILD).resolve() / "slope")

    def result(self, tested):
        return self.executor.run({7: tested})[7]

    def test_right_derivatives_pass(self):
        result = self.result(custom_program())
        self.assertIsNone(result.failure, result.detail)
        self.assertEqual((result.good, result.rough, result.unfit), (5, 0, 0))
        self.assertGreater(result.size, 0.1)

    def test_wrong_derivatives_fail(self):
        cases = [(0, "x.p * y.p * y.p * 1.00001~", "primal changed by forward mode"),
                 (1, "y.p * y.p * x.d + 2.001~ * x.p * y.p * y.d", "forward mode is wrong"),
                 (1, "y.p * y.p * x.d", "forward mode is wrong"),
                 (1, "log(-abs(x.p)) * x.d", "forward mode is not a number"),
                 (2, "1.00001~ * y.p * y.p * d", "backward mode is wrong"),
                 (2, "x.d", "backward mode is wrong"),
                 (3, "0.0~", "backward mode is wrong"),
                 (3, "x.p > 0.2~ ? 0.0~ : 2.0~ * x.p * y.p * d", "backward mode is wrong"),
                 (3, "log(-abs(x.p)) * d", "backward mode is not a number"),
                 (3, "2.0~ * x.p * y.p * d + 1e-12~ * @(calls)", "backward mode gives another result the second time")]
        for place, text, failure in cases:
            with self.subTest(text):
                self.assertEqual(self.result(custom_program(place, text)).failure, failure)

    def test_a_primal_that_changes_fails(self):
        text = "[BackwardDerivative(g_b)]\n[Differentiable]\n@ f(@ x, @ y) { return x * y; }\n" \
               "void g_b(inout DifferentialPair<@> x, inout DifferentialPair<@> y, @ d)\n" \
               "{ @ p = x.p; x = diffPair(p + 1.0~, y.p * d); y = diffPair(y.p, p * d); }\n"
        given = program([], [Node("return $;", [variable("x")])])
        text = text.replace("@", "double").replace("~", "l")
        module = module_text({7: given}).replace(Writer("double").item(given.main), text)
        self.assertIn("p + 1.0l", module)
        output, failure, detail = self.executor.execute(module, "plain", 1)
        self.assertIsNone(failure, detail)
        results = {}
        for line in output.splitlines():
            self.executor.read_line(line, {7: given}, results)
        self.assertEqual(results[7].failure, "backward mode changed a primal")

    def test_rough_places_are_passed_over(self):
        here = Node("detach($)", [variable("x")], REAL, reference="frozen($)")
        for text in ("abs($ - $)", "($ < $ ? 1.0~ : 2.0~)", "max($ - $, 0.0~)"):
            result = self.result(program([], [Node("return $;", [Node(text, [variable("x"), here], REAL)])], frozen=True))
            self.assertIsNone(result.failure, result.detail)
            self.assertEqual((result.good, result.rough), (0, 5))

    def test_idle_functions_are_seen(self):
        result = self.result(program([], [Node("return $;", [Node("floor($)", [variable("x")], REAL)])]))
        self.assertIsNone(result.failure, result.detail)
        self.assertEqual(result.size, 0)

    def test_constants_are_frozen_in_the_reference(self):
        cut = Node("detach($)", [variable("x")], REAL, reference="frozen($)")
        body = [Node("return $;", [Node("$ * $ + $", [cut, variable("y"), variable("x")], REAL)])]
        self.assertIsNone(self.result(program([], body, frozen=True)).failure)
        self.assertEqual(self.result(program([], body)).failure, "forward mode is wrong")

    def test_single_precision(self):
        body = [Node("return $;", [Node("sin($) * $", [variable("x"), variable("y")], REAL)])]
        self.assertIsNone(self.result(program([], body, single=True)).failure)

    def test_all_ways_to_run_agree(self):
        programs = {seed: Generator(seed).program() for seed in range(6)}
        plain = self.executor.run(programs)
        for way in set(OTHER_WAYS):
            for seed, result in self.executor.run(programs, way).items():
                compared = compare_ways(programs[seed], plain[seed], result, way)
                self.assertIsNone(compared.failure, (way, seed, compared.detail))

    def test_another_result_is_seen(self):
        tested = custom_program()
        plain, other = self.result(tested), self.result(tested)
        other.digest *= 1.001
        self.assertEqual(compare_ways(tested, plain, other, "passes").failure, "passes: another result")
        plain.failure = "error E5024: of a function that nobody calls"
        self.assertIsNone(compare_ways(tested, plain, other, "code -O1").failure)
        self.assertEqual(way_of("passes: another result"), "passes")
        self.assertEqual(way_of("backward mode is wrong"), "plain")

    def test_a_wrong_gradient_over_grids_is_seen(self):
        programs = (Grids(seed).program() for seed in itertools.count())
        tested = next(p for p in programs if not (p.single or p.odd or p.is_once))
        self.assertIsNone(self.executor.run({0: tested}, "grids")[0].failure)
        tested.text = tested.text.replace("return sum * 0.5", "return detach(sum) * 0.5")
        self.assertEqual(self.executor.run({0: tested}, "grids")[0].failure, "grids: the forward mode is wrong")

    def test_a_tape_left_open_is_seen(self):
        text = "func @main() {\n  %tape = tape_open\n  return\n}\n"
        done = subprocess.run([self.executor.interpreter, "-"], input=text, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (1, "a tape is left open\n"))

    def test_what_does_not_compile_is_found_among_others(self):
        programs = {k: custom_program() for k in range(5)}
        programs[3] = program([], [Node("return nowhere;")])
        results = self.executor.run(programs)
        self.assertEqual([k for k, result in results.items() if result.failure], [3])
        self.assertIn("error E", results[3].failure)


class ShrinkTest(unittest.TestCase):
    def test_a_wrong_derivative_becomes_a_few_lines(self):
        executor = Executor(Path(BUILD).resolve() / "slope")
        wrong = custom_program(3, "0.0~")
        struct = Struct("S", [Field("a", REAL), Field("n", INT, True)])
        generated = Generator(5).function("g", (REAL, [Param("in", REAL, "u")]))
        loop = Node("for (int i = 0; i < 4; i++) #", [[Node("z = tanh(z + $);", [variable("x")], uses=("z",))]], binds=("i",))
        body = [*wrong.main.body[:1], loop, Node("S s = S($, 3);", [variable("y")], uses=("S",), declares=("s",), make="S"), loop,
                *wrong.main.body[1:]]
        large = program([wrong.items[0], struct, generated], body)

        def find_failing(candidates):
            results = executor.run(dict(enumerate(candidates)))
            return next((k for k in range(len(candidates)) if results[k].failure == "backward mode is wrong"), None)
        self.assertEqual(find_failing([large]), 0)
        small = shrink(large, find_failing)
        self.assertEqual([item.name for item in small.items[1:]], ["f"])
        self.assertLessEqual(len(small.main.body), 3)
        self.assertEqual(find_failing([small]), 0)


def run_all(build):
    """How many passed, and a list of (name, what went wrong)."""
    global BUILD
    BUILD = build
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__])
    result = unittest.TestResult()
    suite.run(result)
    failures = [(f"tests/fuzz/fuzz_test.py/{case.id()}", text) for case, text in result.failures + result.errors]
    return result.testsRun - len(failures), failures


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default=BUILD)
    options, rest = parser.parse_known_args()
    BUILD = options.build
    unittest.main(argv=[sys.argv[0], *rest])
