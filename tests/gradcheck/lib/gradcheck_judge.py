#!/usr/bin/env python3
"""Is the judge right? Functions whose derivative is known in closed form are given to `slope gradcheck`, once with that derivative and once
with one that is broken in one place: a right one must not be called wrong, and a broken one must be.

The derivatives are found here, by the rules of any textbook, and written into the program as custom ones, forward or backward in turn; and
each function is also differentiated by Slope itself.

    gradcheck_judge.py SLOPE [--every N] [--seed S]     N: only every Nth function; default: all
"""
import argparse
import ast
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

# ---- functions of x, then of x and y: where they are defined, and what they are. Badly conditioned ones are among them.

SINGLE = """
-3:3     sin(x) | cos(x) | x*sin(x) | sin(x)*cos(x) | sin(x*x) | sin(3*x+1) | sin(100*x) | cos(50*x)*x | sin(x)+sin(30*x)/30
-1.2:1.2 tan(x) | tan(x)*cos(x) | log(cos(x)) | 1/cos(x) | exp(tan(x))
-0.9:0.9 asin(x) | acos(x) | atanh(x) | sqrt(1-x*x) | asin(x)*acos(x) | 1/(1-x*x) | log(1+x) | log(1-x) | x/sqrt(1-x*x)
-4:4     atan(x) | sinh(x) | cosh(x) | tanh(x) | asinh(x) | exp(x) | exp(-x) | exp(-x*x) | x*exp(-x*x) | 1/(1+x*x) | x/(1+x*x)
-4:4     sqrt(1+x*x) | log(1+x*x) | x*x*x | x*x*x*x*x-3*x*x+1 | 1/(1+exp(-x)) | x/(1+exp(-x)) | log(cosh(x)) | tanh(x)*tanh(x)
-4:4     sqrt(x*x+0.01) | 0.5*x*(1+tanh(0.7978845608*(x+0.044715*x*x*x))) | x*tanh(log(1+exp(x))) | exp(sin(x)) | cos(exp(x)) | atan(x*x)
-40:40   log(1+exp(x)) | 1/(1+exp(-x)) | tanh(x) | tanh(x/2) | 0.5*x*(1+tanh(0.79788*(x+0.0447*x*x*x))) | log(exp(x)+exp(-x)) | x/(1+exp(-x))
-40:40   exp(-x*x) | exp(-x*x/200) | 1/(1+exp(-x))*(1-1/(1+exp(-x))) | log(1+exp(-x))+x | exp(x)/(1+exp(x)) | (exp(x)-1)/(exp(x)+1)
-20:20   exp(x)/(exp(x)+2)-exp(-x)/(exp(-x)+2) | (1+x*x)-1 | (1000+x)-1000+x*x | 1-1/(1+x*x) | log(2+sin(x)) | sqrt(2+cos(x))
0.1:10   log(x) | sqrt(x) | 1/x | 1/(x*x) | x*log(x) | log(x)/x | pow(x,2.5) | pow(x,-1.5) | pow(x,0.3) | exp(-1/x) | exp(x)/x | sin(x)/x
0.1:10   1/sqrt(x) | sqrt(x)*log(x) | log(log(x+1.5)) | log(x)*log(x) | exp(log(x)) | log(exp(x)) | x-sqrt(x*x+1) | sqrt(x+1)-sqrt(x) | 1/x-1/(x+1)
0.1:10   pow(x,3)/(1+pow(x,3)) | x/(0.5+x) | x*x*x/(exp(x)-1) | log(1+1/x) | atan(1/x) | asinh(1/x) | pow(2,x) | pow(x,4)*exp(-x) | (1-cos(x))/(x*x)
0.9:2.5  4*(pow(x,-12)-pow(x,-6)) | pow(1-exp(-2*(x-1)),2) | (exp(-x)+cos(5*x))/x | sin(1/x) | sin(10/x) | pow(x,x) | exp(exp(x)/4)
1.1:8    acosh(x) | sqrt(x*x-1) | log(x-1) | 1/(x-1) | log(log(x)) | acosh(x)/x | sqrt(x-1)*sqrt(x+1) | log(x+sqrt(x*x-1))
-2:2     (1000000+x*x)-1000000 | (x+10000)*(x+10000)-100000000 | (exp(x)-1)*1000 | sin(x+1000) | cos(1000*x)/1000 | x*x*x*x*x*x*x*x | exp(x*x)
-2:2     ((((x+1)*x-2)*x+3)*x-4)*x+5 | pow(1+x*x,3) | (x-1)/(x+3) | x*x/(x+3) | sin(sin(sin(x))) | exp(-exp(-x)) | tanh(sinh(x)) | atan(tan(x/2))
"""
DOUBLE = """
-3:3     x*y | x*y+sin(x*y) | sin(x)*cos(y) | exp(x*y/4) | x*x+y*y | (1-x)*(1-x)+100*(y-x*x)*(y-x*x) | x/(1+y*y) | atan(x*y) | exp(-x*x-y*y)
-3:3     log(exp(x)+exp(y)) | log(exp(x)+exp(y))-x | 1/(1+exp(x-y)) | sqrt(1+x*x+y*y) | tanh(x+y)*y | (x*x+y-11)*(x*x+y-11)+(x+y*y-7)*(x+y*y-7)
-30:30   log(exp(x)+exp(y))-x | log(1+exp(y-x)) | exp(x)/(exp(x)+exp(y)) | 1/(1+exp(x-y)) | log(exp(x-y)+1)-(x-y) | tanh(x)-tanh(y)
0.2:5    x/y | sqrt(x*x+y*y) | x*y/(x+y) | pow(x,y) | x*log(x/y) | log(x)-log(y) | atan(y/x) | sqrt(x*y) | 1/x-1/y | pow(x/y,1.5) | exp(-x/y)
0.2:5    x*exp(-y*x) | log(x+y)*sqrt(x) | sin(x/y)*y | (x-y)/(x+y) | x*x/(y*y+1) | pow(x+y,-2) | cosh(x)/cosh(y) | asinh(x/y) | sqrt(x)+1/sqrt(y)
"""
OUTER = {"sin": "sin({})", "atan": "atan({})", "tanh": "tanh({})", "log": "log(2+({})*({}))", "exp": "exp(-({})*({})/9)", "root": "sqrt(1+({})*({}))"}


def rows(text, arity):
    for line in filter(None, text.splitlines()):
        place, expressions = line.split(None, 1)
        yield from ((place, expression.strip(), arity) for expression in expressions.split(" | "))


def all_functions():
    """(range, expression, number of variables): those of the tables, and others made of them."""
    listed = list(rows(SINGLE, 1)) + list(rows(DOUBLE, 2))
    mild = [row for row in listed if "1000" not in row[1] and "-40" not in row[0]]
    made = []
    for index, (place, expression, arity) in enumerate(mild):
        name = list(OUTER)[index % len(OUTER)]
        form = OUTER[name]
        made.append((place, form.replace("{}", f"({expression})/4"), arity))
    return listed + made


# ---- derivatives

RULES = {
    "sin": "cos({a})", "cos": "-sin({a})", "tan": "(1+tan({a})*tan({a}))", "asin": "(1/sqrt((1-{a})*(1+{a})))",
    "acos": "(-1/sqrt((1-{a})*(1+{a})))", "atan": "(1/(1+{a}*{a}))", "sinh": "cosh({a})", "cosh": "sinh({a})",
    "tanh": "(1/(cosh({a})*cosh({a})))", "asinh": "(1/sqrt({a}*{a}+1))", "acosh": "(1/sqrt(({a}-1)*({a}+1)))",
    "atanh": "(1/((1-{a})*(1+{a})))", "exp": "exp({a})", "log": "(1/{a})", "sqrt": "(0.5/sqrt({a}))",
}


def times(a, b):
    return "0" if "0" in (a, b) else a if b == "1" else b if a == "1" else f"({a})*({b})"


def plus(a, b):
    return b if a == "0" else a if b == "0" else f"({a})+({b})"


def derivative(node, name):
    text = ast.unparse
    if isinstance(node, ast.Constant):
        return "0"
    if isinstance(node, ast.Name):
        return "1" if node.id == name else "0"
    if isinstance(node, ast.UnaryOp):
        inner = derivative(node.operand, name)
        return "0" if inner == "0" else f"-({inner})"
    if isinstance(node, ast.BinOp):
        a, b = f"({text(node.left)})", f"({text(node.right)})"
        da, db = derivative(node.left, name), derivative(node.right, name)
        minus_db = "0" if db == "0" else f"-({db})"
        if isinstance(node.op, ast.Add):
            return plus(da, db)
        if isinstance(node.op, ast.Sub):
            return plus(da, minus_db)
        if isinstance(node.op, ast.Mult):
            return plus(times(da, b), times(a, db))
        return plus("0" if da == "0" else f"({da})/{b}", "0" if db == "0" else f"-({db})*{a}/({b}*{b})")
    function, arguments = node.func.id, node.args
    if function == "pow":
        a, b = (f"({text(argument)})" for argument in arguments)
        da, db = (derivative(argument, name) for argument in arguments)
        return plus(times(f"{b}*pow({a},{b}-1)", da), times(f"pow({a},{b})*log({a})", db))
    inner = derivative(arguments[0], name)
    return times(RULES[function].format(a=f"({text(arguments[0])})"), inner)


BREAKS = {"sign": "-({})", "factor": "1.01*({})", "nothing": "0*({})", "offset": "({0})+0.03*(1+abs({0}))"}

# ---- programs

CUSTOM = {
    "forward": """[ForwardDerivative({name}_d)] {t} {name}({params}) {{ return {value}; }}
DifferentialPair<{t}> {name}_d({pairs}) {{ {primals} return diffPair({value}, {t}({sum})); }}
""",
    "backward": """[BackwardDerivative({name}_d)] {t} {name}({params}) {{ return {value}; }}
void {name}_d({inouts}, {t} d) {{ {primals} {updates} }}
""",
}


def spell(text):
    """With numbers that are no integers."""
    tree = ast.parse(text, mode="eval")
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            node.value = float(node.value)
    return ast.unparse(tree).replace("--", "- -")


def custom(name, row, kind, mode, broken):
    place, expression, arity = row
    names = "xy"[:arity]
    low, high = place.split(":")
    tree = ast.parse(expression, mode="eval").body
    parts = [spell(derivative(tree, each)) for each in names]
    if broken:
        parts[-1] = BREAKS[broken].format(parts[-1])
    fields = {
        "name": name, "t": kind, "value": spell(expression),
        "params": ", ".join(f"[Range({low}, {high})] {kind} {n}" for n in names),
        "pairs": ", ".join(f"DifferentialPair<{kind}> p{n}" for n in names),
        "inouts": ", ".join(f"inout DifferentialPair<{kind}> p{n}" for n in names),
        "primals": " ".join(f"{kind} {n} = p{n}.p;" for n in names),
        "sum": " + ".join(f"({part}) * p{n}.d" for n, part in zip(names, parts)),
        "updates": " ".join(f"p{n} = diffPair({n}, {kind}(({part}) * d));" for n, part in zip(names, parts)),
    }
    return CUSTOM[mode].format(**fields)


def plain(name, row, kind):
    place, expression, arity = row
    low, high = place.split(":")
    params = ", ".join(f"[Range({low}, {high})] {kind} {n}" for n in "xy"[:arity])
    return f"[Differentiable] {kind} {name}({params}) {{ return {spell(expression)}; }}\n"


def judge(slope, text, seed):
    """Verdict and message of each function."""
    with tempfile.NamedTemporaryFile("w", suffix=".slang", prefix="slope-judge-") as file:
        file.write(text)
        file.flush()
        result = subprocess.run([slope, "gradcheck", file.name, "--json", "-w", "-O1", f"--seed={seed}"], capture_output=True, text=True,
                                timeout=600)
    found = [json.loads(line) for line in result.stdout.splitlines()]
    if not found:
        raise SystemExit(f"gradcheck said nothing: {result.stderr[:2000]}")
    return {row["function"]: row for row in found}


def run(slope, every=1, seed=0):
    """How many were judged well, and a list of (name, what went wrong)."""
    functions = all_functions()
    chosen = list(enumerate(functions))[::every]
    chooser = random.Random(seed)
    program, wanted = [], {}
    for index, row in chosen:
        kind = "float" if index % 2 == 0 else "double"
        other = "double" if kind == "float" else "float"
        mode = "forward" if index % 3 else "backward"
        broken = chooser.choice(list(BREAKS))
        for name, text, verdict in (
                (f"slope{index}", plain(f"slope{index}", row, kind), "right"),
                (f"other{index}", plain(f"other{index}", row, other), "right"),
                (f"right{index}", custom(f"right{index}", row, kind, mode, None), "right"),
                (f"broken{index}", custom(f"broken{index}", row, kind, mode, broken), "wrong")):
            program.append(text)
            wanted[name] = (verdict, row[1], broken if verdict == "wrong" else "")
    passed, failures, unknown = 0, [], 0
    size = 400
    found = {}
    for start in range(0, len(program), size):
        found.update(judge(slope, "".join(program[start:start + size]), seed))
    for name, (verdict, expression, broken) in wanted.items():
        row = found.get(name, {"verdict": "missing", "message": ""})
        silence = verdict == "wrong" and row["verdict"] != "wrong"
        alarm = verdict == "right" and row["verdict"] not in ("right", "unknown")
        unknown += row["verdict"] == "unknown"
        if silence or alarm:
            failures.append((f"judge: {name}", f"{expression} {broken}: {row['verdict']}: {row['message']}"))
        else:
            passed += 1
    return passed, failures, len(chosen), unknown


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("slope")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    passed, failures, count, unknown = run(options.slope, options.every, options.seed)
    for name, what in failures:
        print(f"FAIL {name}\n    {what}")
    print(f"{count} functions, {passed} judged well ({unknown} of them unknown), {len(failures)} not")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
