#!/usr/bin/env python3
"""Checks the derivatives of the whole library: makes a function around each differentiable one and gives them to `slope gradcheck`.

What is differentiable is read in prelude/. Functions of numbers, vectors and matrices are tried on all sizes; the others have a row in
OTHERS. One that fits neither is an error, as is a function that could not be checked.

    gradcheck_library.py SLOPE TYPE [NAME...]     TYPE: half, float or double; NAME: only functions of that name
"""
import itertools
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts"))
import library_page

VECTORS, MATRICES, SAMPLES = (2, 3, 4), ((2, 2), (3, 4)), 6

# Where functions have a value and are smooth: what takes the place of a parameter x. Others are given x itself.
INSIDE, ABOVE, POSITIVE, APART = "0.9 * sin({})", "1.25 + {0} * {0}", "1.5 + sin({})", "2.5 + sin({})"
DOMAINS = {
    "asin": [INSIDE], "acos": [INSIDE], "atanh": [INSIDE], "acosh": [ABOVE], "log": [POSITIVE], "log2": [POSITIVE], "log10": [POSITIVE],
    "sqrt": [POSITIVE], "rsqrt": [POSITIVE], "rcp": [POSITIVE], "pow": [POSITIVE, "sin({})"], "powr": [POSITIVE, "sin({})"], "fmod": ["3 * sin({})", POSITIVE],
    "exp": ["sin({})"], "exp2": ["sin({})"], "exp10": ["sin({})"], "sinh": ["sin({})"], "cosh": ["sin({})"], "tan": ["sin({})"],
    "tanpi": ["0.4 * sin({})"], "smoothstep": ["sin({})", APART, "{}"], "lit": ["sin({})", POSITIVE, "sin({})"],
    "refract": ["0.2 * sin({})", "sin({})", "sin({})"], "ldexp": ["{}", "sin({})"], "log1p": [POSITIVE], "cbrt": [POSITIVE], "mod": ["3 * sin({})", POSITIVE], "inversesqrt": [POSITIVE], "lgamma": [POSITIVE], "expm1": ["sin({})"], "determinant": ["sin({})"], "inverse": ["sin({})"],
}

# Files whose derivatives go to memory or to other threads, or are of types of their own; tests/diff compares those with differences.
IN_MEMORY = {"torch.slang", "wave.slang", "wave_shapes.slang", "vector_coop.slang", "matrix_coop.slang", "sampler.slang", "tensor.slang", "geometry.slang", "sparse.slang", "slangpy.slang"}

# The library's own: parts of others, checked with them.
OWN = re.compile(r"__")

# What is no function of numbers, vectors and matrices alone, by type and name: functions that use it. T is the type that is checked.
OTHERS = {
    "select": ["T f(bool c, T x, T y) { return select(c, x * y, x) * x; }",
               "vector<T, 3> f(vector<T, 3> x, vector<T, 3> y) { return select(x > y, x * y, x); }"],
    "jvp": ["T f(T x, T v) { return jvp(cube, x, v); }", "T f(T x, T v) { return jvp((T y) => y * y * v, x, v); }"],
    "vjp": ["T f(T x, T v) { return vjp(cube, x, v); }", "T f(T x, T v) { return vjp((T y) => y * y * v, x, v); }"],
    "grad": ["T f(T x) { return grad(cube, x); }", "T f(T x, T k) { return grad((T y) => y * y * k, x) * k; }", "vector<T, 2> f(vector<T, 2> x) { return grad(hill, x); }",
             "T f(T x, vector<T, 2> y) { let g = grad(both, x, y); return g._0 * g._1.x; }", "T f(T x, T y, T z) { let g = grad(three, x, y, z); return g._0 * g._1 + g._2; }"],
    "dot2add": ["float f(half2 a, half2 b, float c) { return dot2add(a, b, c); }"],
    # in steps of the type itself, which differences of half do not see past
    "nextafter": ["float f(float x, float y) { return nextafter(x * x, y) * x; }", "double f(double x, double y) { return nextafter(x * x, y) * x; }",
                  "vector<double, 3> f(vector<double, 3> x, vector<double, 3> y) { return nextafter(x, y) * x; }"],
    "value_and_grad": ["T f(T x) { let v = value_and_grad(cube, x); return v._0 * v._1; }", "T f(T x, T k) { let v = value_and_grad((T y) => y * y * k, x); return v._0 * v._1; }"],
    "jacobian": ["T f(T x[2]) { let j = jacobian(swap, x); return j[0][0] * j[0][1] + j[1][0]; }", "matrix<T, 2, 2> f(vector<T, 2> x) { return jacobian(swirl, x); }", "T f(T x) { return jacobian(cube, x); }",
                 "vector<T, 2> f(vector<T, 2> x) { return jacobian(hill, x); }", "vector<T, 2> f(T x) { return jacobian(curve, x); }",
                 # by rows
                 "vector<T, 4> f(vector<T, 4> x) { return jacobian(peak, x); }", "T f(Wide w) { let j = jacobian(narrow, w); return j[0].x[0] * j[3].x[0] + j[4].x[0]; }",
                 "T f(Wide w, T k) { let j = jacobian((Wide v) => { Narrow n = { { v.a * v.a * k } }; return n; }, w); return j[0].x[0]; }"],
    "hvp": ["vector<T, 2> f(vector<T, 2> x, vector<T, 2> v) { return hvp(hill, x, v); }",
            "T f(T x, T v) { return hvp((T y) => y * y * y * v, x, v); }"],
    "hessian": ["T f(T x) { return hessian(cube, x); }", "T f(T x[2]) { let h = hessian(pair_of, x); return h[0][0] * h[0][1] + h[1][1]; }", "matrix<T, 2, 2> f(vector<T, 2> x) { return hessian(hill, x); }"],
    "operator": [f"{shape} f({shape} x, {shape} y) {{ return {code}; }}"
                 for shape in ("T", "vector<T, 3>", "matrix<T, 2, 2>")
                 for code in ("x + y", "x - y", "x * y", "x / (T(1.25) + y * y)", "(T(3) * x) % (T(1.25) + y * y)", "-x * y")],
    "products": ["vector<T, 3> f(matrix<T, 2, 3> m, vector<T, 2> v) { return m * v; }", "vector<T, 2> f(vector<T, 3> v, matrix<T, 2, 3> m) { return v * m; }",
                 "matrix<T, 2, 3> f(matrix<T, 4, 3> a, matrix<T, 2, 4> b) { return a * b; }", "matrix<T, 2, 2> f(matrix<T, 2, 2> a, matrix<T, 2, 2> b) { a *= b; return a; }",
                 "vector<T, 2> f(vector<T, 2> v, matrix<T, 2, 2> m) { v *= m; return v; }"],
    "generic operator": ["G f<G : IFloat>(G x, G y) { return x * y + x / y - (-x) + x % y; }"],
    "arithmetic": [f"{shape} f({shape} x, {shape} y) {{ return x.add(y).sub(y.mul(x)).div(y).mod(x.neg()); }}"
                   for shape in ("T", "vector<T, 2>", "matrix<T, 2, 2>")],
    "toFloat": ["float f(T x, vector<T, 3> y) { return x.toFloat() * y.toFloat(); }"],
    "scale": ["T f(T x, T y) { return (x * x).scale(y); }", "vector<T, 2> f(vector<T, 2> x, T y) { return (x * x).scale(y); }"],
    "use": ["T f(T x, vector<T, 2> y) { return x.use() * x * y.use().x * y.y; }"],
    "makeTuple": ["T f(T x, vector<T, 2> y) { let t = makeTuple(x * x, y); return t._0 * t._1.y; }"],
    "makeArrayFromElement": ["T f(T x) { let a = makeArrayFromElement<T, 3>(x * x); return a[0] * a[2]; }"],
    "concat": ["T f(T x, T y) { let t = concat(makeTuple(x * y, x), makeTuple(y)); return t._0 * t._1 * t._2; }"],
    "pair": ["T f(T x, T v) { let p = diffPair(x * v, v); return p.getPrimal() * p.getDifferential(); }",
             "T f(T x) { return diffPair(x * x).p + diffPair(x).d; }"],
    "update": ["T f(T x, T v) { var p = diffPair(x, v); updateDiff(p, x * v); updatePrimal(p, x * x); return p.p * p.d; }",
               "T f(T x, T v) { var p = diffPair(x, v); updatePair(p, x * v, v); return p.p * p.d; }"],
    "conditional": ["T f(T x, T y) { Conditional<T, true> a = x * y; Conditional<T, false> b = x; a.set(a.get().value * y); b.set(y); return a.get().value * (b.get().hasValue ? y : x); }"],
    "detach": ["T f(T x) { return detach(x) * x; }"],
    "function value": ["T f(T x) { return use((T y) => y * y * y, x); }"],
}
# Differentiable members of types and functions of no numbers: which row has them.
ROWS = {name: name for name in ("select", "use", "jvp", "vjp", "grad", "dot2add", "nextafter", "value_and_grad", "jacobian", "hvp", "hessian", "toFloat", "scale", "makeTuple", "makeArrayFromElement", "concat",
                              "detach")}
ROWS |= {name: "arithmetic" for name in ("add", "sub", "mul", "div", "mod", "neg")}
ROWS |= {"getPrimal": "pair", "getDifferential": "pair", "diffPair": "pair", "updateDiff": "update", "updatePrimal": "update",
         "updatePair": "update", "operator": "generic operator", "operator()": "function value", "set": "conditional", "get": "conditional"}
HEAD = """typealias T = TYPE;
[Differentiable] T use<F : IDifferentiableFunc<T, T>>(F f, T x) { return f(x) * x; }
[Differentiable] T cube(T x) { return x * x * x; }
[Differentiable] T hill(vector<T, 2> x) { return x.x * x.x * x.y + x.y * x.y * x.y; }
[Differentiable] T both(T x, vector<T, 2> y) { return x * y.x * y.y * y.x; }
[Differentiable] T three(T x, T y, T z) { return x * y * z * z; }
[Differentiable] T[2] swap(T x[2]) { T y[2]; y[0] = x[0] * x[1]; y[1] = x[0] * x[0] * x[0]; return y; }
[Differentiable] T pair_of(T x[2]) { return x[0] * x[0] * x[1] * x[1]; }
[Differentiable] vector<T, 2> curve(T x) { return vector<T, 2>(x * x, x * x * x); }
[Differentiable] T peak(vector<T, 4> x) { return x.x * x.x * x.y + x.z * x.w * x.w; }
struct Wide : IDifferentiable { T a; vector<T, 2> b; T c[2]; }
struct Narrow : IDifferentiable { T x[1]; }
[Differentiable] Narrow narrow(Wide w) { return { { w.a * w.a * w.b.x * w.c[0] + w.c[1] * w.b.y } }; }
[Differentiable] vector<T, 2> swirl(vector<T, 2> x) { return vector<T, 2>(x.x * x.y, x.x * x.x - x.y); }
"""


ELSEWHERE = {"texture.slang", "texture_1d.slang", "texture_2d.slang", "texture_3d.slang", "texture_cube.slang", "texture_ms.slang"}  # tests/diff/texture_*.slang: they need images
OF_MEMORY = re.compile(r"public [^(]*\b(texture|subgroup)\w*[<(]")  # tests/library/glsl_*.slang: they need images or lanes
MODULES = {"": "operator", "glsl": "products"}  # that the program must import for their names, and a row for their operators


def declarations(module):
    """(indented, text) of everything of a module that is marked differentiable; the mark may stand on the line before."""
    for file in sorted((ROOT / "prelude").glob("*.slang")):
        if file.name in ELSEWHERE or (file.stem if file.stem in MODULES else "") != module:
            continue
        marked = False
        if file.name in IN_MEMORY:
            continue
        for line in file.read_text().splitlines():
            text = line.strip()
            if re.fullmatch(r"\[Differentiable\]( \[\w+\(\w+\)\])*", text):
                marked = True
            elif marked or text.startswith("[") and "[Differentiable]" in text.split("(")[0] + re.sub(r"[^\]]*$", "", text):
                if not text.startswith("//") and not OF_MEMORY.search(text):
                    yield line.startswith(" "), text
                marked = False


def has_attribute(text):
    attributes = re.match(r"((?:\[[^\]]*\]\s*)*)", text)[1]
    return "[Differentiable]" in attributes


def instances(generics):
    """Ways to choose the generic parameters, as substitutions."""
    values = re.findall(r"let (\w+)", generics)
    if not values:
        return [{}]
    if values == ["N"]:
        return [{"N": n} for n in VECTORS]
    if set(values) == {"R", "C"}:
        return [{"R": r, "C": c} for r, c in MATRICES]
    return [dict(zip(values, (2, 3, 2)))]


def substitute(text, values):
    for name, value in values.items():
        text = re.sub(rf"\b{name}\b", str(value), text)
    return text


def is_plain(generics, parameters):
    """A function of numbers, vectors and matrices."""
    names = {word for part in library_page.split_list(parameters) for word in re.findall(r"\w+", part)[:-1]}
    fits = names <= {"T", "vector", "matrix", "int", "bool", "out", "N", "R", "C", "K", "1", "2", "3", "4"}
    return fits and re.match(r"T : __BuiltinFloatingPointType\b", generics)


def scaled(text, parameter):
    """The domain of a parameter, its constants in the type that is checked."""
    return re.sub(r"(?<![\w.])(\d+(?:\.\d+)?)(?![\w.])(?!})", r"T(\1)", text.replace("{0}", "{}")).replace("{}", parameter)


def wrap(index, function, values, direct):
    """A function that calls one of the library."""
    _, result, name, _, parameters = function
    heads, arguments = [], []
    domain = DOMAINS.get(name, []) if not direct else []
    for i, part in enumerate(library_page.split_list(parameters)):
        heads.append(part)
        moves = not part.startswith(("out ", "int", "vector<int", "matrix<int", "bool"))
        place = part.split()[-1]
        arguments.append(scaled(domain[i], place) if moves and i < len(domain) else place)
    text = f"{'' if result == 'void' else 'return '}{name}({', '.join(arguments)});"
    return substitute(f"[Differentiable] {result} f{index}_{name}({', '.join(heads)}) {{ {text} }}", values)


def wrappers(names, module):
    """Lines of code, and what has no row."""
    lines, missing, rows = [], [], set()
    numbers = itertools.count()
    for inside, text in declarations(module):
        if not has_attribute(text) and text.startswith("["):
            continue
        function = None if inside else library_page.split_function(text)
        found = re.search(r"(\w+(?:\(\)|[-+*/%](?=<))?)(?:<[^()]*>)?\(", re.sub(r"^(\[[^\]]*\]\s*)*", "", text))
        if not function and not found and "operator" not in text:
            continue  # an accessor, without a name
        name = function[2] if function else "operator()" if "operator()" in text else "operator" if "operator" in text else found[1]
        if OWN.match(name):
            continue
        wanted = not names or name in names
        if function and is_plain(function[3], function[4]) and name not in ("select", "nextafter"):
            direct = name in DOMAINS and not re.search("vector|matrix", function[4])
            for values in instances(function[3]) if wanted else []:
                lines.append(wrap(next(numbers), function, values, False))
                if direct:
                    lines.append(wrap(next(numbers), function, values, True))
        elif name in ROWS:
            rows |= {ROWS[name]} if wanted else set()
        else:
            missing.append(text[:120])
    rows |= {MODULES[module]} if not names else set()
    for code in (code for row in sorted(rows) for code in OTHERS[row]):
        lines.append("[Differentiable] " + re.sub(r"\bf(?=[<(])", f"f{next(numbers)}", code, count=1))
    return lines, missing


def generic_arguments(lines, kind):
    """Generic functions of ours are called by another, which is not generic."""
    for line in list(lines):
        found = re.match(r"\[Differentiable\] G (f\d+)<", line)
        if found:
            lines.append(f"[Differentiable] {kind} {found[1]}_of({kind} x, {kind} y) {{ return {found[1]}(x, {kind}(1.25) + y * y); }}")


def check(slope, kind, lines, module, options):
    """The verdicts of gradcheck on a file, or one that says why there are none."""
    with tempfile.TemporaryDirectory(prefix="slope-library-") as folder:
        path = Path(folder) / "library.slang"
        path.write_text((f"import {module};\n" if module else "") + HEAD.replace("TYPE", kind) + "\n".join(lines) + "\n")
        # it is the rules that are checked: code for vectors of halves takes LLVM ten times as long as the interpreter takes to run it
        command = [slope, "gradcheck", str(path), "--json", *(["--interpret"] if kind == "half" else ["-O0"]), *options]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode not in (0, 1) or result.stderr:
            message = f"exit status {result.returncode}\n{result.stderr[:4000]}"
            return [{"verdict": "failed", "function": "gradcheck", "message": message, "inputs": None}]
        return [json.loads(line) for line in result.stdout.splitlines()]


def run_module(slope, kind, names, module):
    """How many are right, and a list of (name, what went wrong)."""
    lines, missing = wrappers(names, module)
    generic_arguments(lines, kind)
    failures = [("no row for", text) for text in missing]
    code = {re.search(r"\b(f\d+\w*)", line)[1]: line for line in lines}
    verdicts = check(slope, kind, lines, module, [f"--samples={SAMPLES}", "--strict"]) if lines else []
    if kind == "double" and lines:  # derivatives of the forward derivatives, which have the value and the derivative
        code = {**code, **{f"fwd_diff({name})": line for name, line in code.items()}}
        again = [f"-f={name}" for name in code if name.startswith("fwd_diff") and " G f" not in code[name]]
        verdicts += check(slope, kind, lines, module, ["--samples=2", "--interpret", *again])
    right = 0
    for verdict in verdicts:
        name, message = verdict["function"], verdict["message"] or ""
        if verdict["verdict"] == "right":
            right += 1
        elif "generic" not in message:  # those are called by others
            failures.append((f"{verdict['verdict']} {kind}: {name}", f"{code.get(name, name)}\n    {message} at {verdict['inputs']}"))
    return right, failures


def run(slope, kind, names=()):
    """The same for all of the library."""
    results = [run_module(slope, kind, names, module) for module in MODULES]
    return sum(right for right, _ in results), [failure for _, failures in results for failure in failures]


def main():
    right, failures = run(*sys.argv[1:3], sys.argv[3:])
    for name, what in failures:
        print(name, what)
    print(f"{right} right, {len(failures)} not")
    return 1 if failures or not right else 0


if __name__ == "__main__":
    sys.exit(main())
