#!/usr/bin/env python3
"""long_functions.py SHAPE [COUNT]: a program whose main compares the forward and the backward derivative of a long function f at three places, and prints SHAPE if they agree."""
import sys

HEAD = "[Differentiable] float f(float x, no_diff int n) {\n    float y = x;\n"
TAIL = "\n    return y;\n}\n"


def calls_two():
    """Functions of which each calls two others."""
    count = 40
    for i in range(count):
        yield (f"[Differentiable] float f{i}(float x, no_diff int n) {{ if (n <= 0) return x * {i}; "
               f"return f{(i + 1) % count}(x * x, n - 1) + sin(x) * f{(7 * i + 3) % count}(x, n - 2); }}")
    yield HEAD + f"    y = f{count - 1}(x, n);" + TAIL


def calls_before(count):
    """Functions of which each calls the one before it, and some of them another."""
    for i in range(count):
        calls = [i - 1] if i % 5 else [i - 1, i - 2]
        terms = "".join(f" + 0.2 * f{k}(x * 0.9, n)" for k in calls if 0 <= k < i)
        yield f"[Differentiable] float f{i}(float x, no_diff int n) {{ if (x > {i % 7} + n) return x * {1 + i % 3}; return 0.3 * x{terms}; }}"
    yield HEAD + f"    y = f{count - 1}(x, n);" + TAIL


def else_ifs(count=1000):
    """One of them."""
    yield HEAD + "    " + "\n    else ".join(f"if (y < {i / 150 - 2}) y = y * x + {i};" for i in range(count)) + TAIL


def goes_on():
    """A loop with 1000 ways to go on with its next round."""
    rows = (f"        if (y > {i * 3}.5) {{ y = y * 0.5; continue; }} y = y * x + {i % 7};" for i in range(1000))
    yield HEAD + "    for (int i = 0; i < n; i++) {\n" + "\n".join(rows) + "\n    }" + TAIL


def in_each_other():
    """Branches, 250 deep."""
    yield HEAD + "\n".join(f"    if (y < {500 - i}.5) {{ y = y * x + {i % 5};" for i in range(250)) + "}" * 250 + TAIL


print("\n".join(globals()[sys.argv[1]](*map(int, sys.argv[2:]))))
print("""void main() {
    bool all = true;
    for (int k = 0; k < 3; k++) {
        float x = 0.3 + k * 0.25;
        var forward = fwd_diff(f)(DifferentialPair<float>(x, 1.0), 5);
        var back = diffPair(x);
        bwd_diff(f)(back, 5, 1.0);
        all = all && forward.d != 0.0 && abs(forward.d - back.d) <= 1e-4 * abs(forward.d);
        if (!all) printf("%%g at %%g, not %%g\\n", back.d, x, forward.d);
    }
    if (all) printf("%s\\n");
}""" % sys.argv[1])
