"""Functions that a function under test may call: with everything that a function can have, and derivatives of their own."""
from expressions import Callable, Variable
from tree import INT, REAL, VOID, Node, Param, Text, declarator


class Helpers:
    """Functions and types around the function under test. Each adds items to the program and callables."""

    def add_callable(self, callee):
        callee.order = callee.order or self.scope.order     # of the function made last
        self.callables.append(callee)
        self.degrees[callee.name] = callee.degree

    def plain_function(self):
        name = self.fresh("g")
        function = self.function(name, self.header())
        self.items.append(function)
        self.add_callable(Callable(name, function.params, function.result, self.scope.cost, again=self.scope.again))

    def recursive_function(self):
        """One function that calls itself, or two that call each other, with a counter."""
        names = [self.fresh("r") for _ in range(self.pick([1, 1, 2]))]
        headers = {name: self.header(limit=3) for name in names}
        for result, params in headers.values():
            params.append(Param("in", INT, "depth", True))
        group = [Callable(name, params, result, 4) for name, (result, params) in headers.items()]
        outer = self.callables
        made = []
        for name in names:
            self.callables = group + [c for c in outer if c.cost < 20]
            made.append((name, self.function(name, headers[name], recursive=True), self.scope.cost, self.scope.again))
        self.callables = outer
        for name, function, cost, again in made:
            self.items.append(function)
            self.add_callable(Callable(name, function.params, function.result, max(cost, 10) ** 2, again=again))

    def method(self):
        """A method of a struct, or one that changes it."""
        if not self.structs:
            return
        struct = self.pick(list(self.structs.values()))
        name, mutating = self.fresh("m"), self.chance(0.4)
        result, params = self.header(limit=2)
        fields = [Variable(f.name, f.type, mutating, f.constant) for f in struct.fields]
        attributes = ["[Differentiable]"] + (["[mutating]"] if mutating else [])
        method = self.function(name, (result, params), fields=fields, attributes=attributes)
        uses = {f.name: f"{struct.name}.{f.name}" for f in struct.fields}
        method.body = [rename_uses(node, uses) for node in method.body]
        struct.methods.append(method)
        this = Param("inout" if mutating else "in", ("struct", struct.name), "this")
        text = f"$.{name}({', '.join('$' * len(params))})"
        self.add_callable(Callable(name, [this, *params], result, self.scope.cost, text, (f"{struct.name}.{name}",),
                                   self.scope.again))

    def throwing_function(self):
        """A function that may end with an error, which carries derivatives; another catches it, in a loop or thrown on by a third."""
        n = self.fresh("t")
        e = f"{n}_E"
        _, params = self.header(limit=3)
        for param in params:
            param.dir = "inout" if param.dir == "out" else param.dir
        self.items.append(Text(f"struct {e} : IDifferentiable {{ @ a; @2 v; int k; }}\n", (e,)))
        function = self.function(f"{n}_g", (REAL, params), throws=e)
        end = Node(f"if ($) throw {e}($, @2(1.0~, $), 1);", [self.test(1), self.tame(self.mixture(REAL)), self.value(REAL, 1)], uses=(e,))
        cost, again = self.scope.cost, self.scope.again     # with what is thrown
        function.body.insert(-1, end)
        self.items.append(function)
        args, callee = ", ".join(p.name for p in params), f"{n}_g"
        head = ", ".join(p.keyword + declarator(p.type, p.name) for p in params)
        uses = (e, callee)
        if self.chance(0.4):
            callee = f"{n}_h"
            self.items.append(Text(f"""[Differentiable] @ {callee}({head}) throws {e}
{{
    do {{ return tanh(try {n}_g({args})); }}
    catch (e : {e}) {{ if (e.k > 0) throw {e}(e.v.x, @2(e.a, sin(e.v.y)), e.k - 1); return e.a; }}
}}
""", (callee,), uses))
            uses += (callee,)
        caught = self.pick(["r = r * tanh(e.a) + e.v.y;", "r += sin(e.a + e.v.x); if (e.k > 1) break;", "return r + tanh(e.a * e.v.y);", "r -= tanh(e.v.x); continue;"])
        self.items.append(Text(f"""[Differentiable] @ {n}({head})
{{
    @ r = 0.3~;
    for (int i = 0; i < 2; i++)
    {{
        {self.pick(["", "defer r = sin(r);"])}
        do {{ r += try {callee}({args}); r *= 0.5~; }}
        catch (e : {e}) {{ {caught} }}
        r = sin(r + 0.1~);
    }}
    return r;
}}
""", (n,), uses))
        self.add_callable(Callable(n, params, REAL, 3 * cost, again=again))

    def generic_function(self):
        name = self.fresh("h")
        form = self.rng.randrange(4)
        p = lambda type, *names: [Param("in", type, n) for n in names]
        if form == 0:
            self.items.append(Text(f"[Differentiable]\nT {name}<T : IFloat>(T a, T b)\n"
                                   "{\n    T c = a * b;\n    if (a < b) c = c + a * T(0.5);\n    return c * b - a;\n}\n", (name,)))
            self.add_callable(Callable(name, p(REAL, "a", "b"), REAL, degree=3))
        elif form == 1:
            self.items.append(Text(f"[Differentiable]\nT {name}<T : __BuiltinFloatingPointType, let N : int>(vector<T, N> a, T b)\n"
                                   "{\n    T s = T(0);\n    for (int i = 0; i < N; i++) s += a[i] * sin(b + s);\n    return s;\n}\n",
                                   (name,)))
            for n in (2, 3):
                self.add_callable(Callable(name, p(("vec", n), "a") + p(REAL, "b"), REAL, 4))
        elif form == 2:
            self.items.append(Text(f"[Differentiable]\n@ {name}<let N : int>(@ a[N], inout @ b)\n"
                                   "{\n    @ s = 0.2~;\n    for (int i = N - 1; i >= 0; i--)\n    {\n        a[i] *= b;\n"
                                   "        s += tanh(a[i] + s);\n        b = sin(b + a[0]);\n    }\n    return s;\n}\n", (name,)))
            for n in (3, 4):
                params = p(("arr", REAL, n), "a") + [Param("inout", REAL, "b")]
                params[0].generic = True
                self.add_callable(Callable(name, params, REAL, 4))
        else:
            box = self.fresh("B")
            self.items.append(Text(f"struct {box}<T : IFloat> : IDifferentiable\n{{\n    T a;\n    T b;\n"
                                   "    [Differentiable] T join(T c) { return a * c + b; }\n}\n", (box,)))
            self.items.append(Text(f"[Differentiable]\n@ {name}(@ x, @ y)\n{{\n    {box}<@> s = {{ x, y }};\n    s.a = s.b;\n"
                                   f"    {box}<@2> v = {{ @2(x, y), @2(y, s.join(x)) }};\n    return s.join(y) * v.join(v.a).y;\n}}\n",
                                   (name,), (box,)))
            self.add_callable(Callable(name, p(REAL, "x", "y"), REAL, 4, degree=5))

    def custom_derivative(self):
        """Functions with derivatives written by hand, and right."""
        n = self.fresh("c")
        pair = "DifferentialPair<@>"
        mark = self.pick(["", "[Differentiable] "])
        p = lambda dir, type, name: Param(dir, type, name)
        forms = [
            ([p("in", REAL, "x")], REAL, f"""@ {n}(@ x) {{ return x * sin(x); }}
{mark}{pair} {n}_f({pair} x) {{ return diffPair({n}(x.p), (sin(x.p) + x.p * cos(x.p)) * x.d); }}
{mark}void {n}_b(inout {pair} x, @ d) {{ x = diffPair(x.p, (sin(x.p) + x.p * cos(x.p)) * d); }}
"""),
            ([p("in", REAL, "x"), p("inout", REAL, "y")], VOID, f"""void {n}(@ x, inout @ y) {{ y = x * sin(y); }}
{mark}void {n}_f({pair} x, inout {pair} y) {{ y = diffPair(x.p * sin(y.p), x.d * sin(y.p) + x.p * cos(y.p) * y.d); }}
{mark}void {n}_b(inout {pair} x, inout {pair} y)
{{ @ d = y.d; x = diffPair(x.p, sin(y.p) * d); y = diffPair(y.p, x.p * cos(y.p) * d); }}
"""),
            ([p("in", REAL, "x"), p("in", ("vec", 2), "v"), p("out", REAL, "z")], REAL,
             f"""@ {n}(@ x, @2 v, out @ z) {{ z = x * sin(v.y); return cos(v.x); }}
{mark}{pair} {n}_f({pair} x, DifferentialPair<@2> v, out {pair} z)
{{ z = diffPair(x.p * sin(v.p.y), x.d * sin(v.p.y) + x.p * cos(v.p.y) * v.d.y); return diffPair(cos(v.p.x), -sin(v.p.x) * v.d.x); }}
{mark}void {n}_b(inout {pair} x, inout DifferentialPair<@2> v, @ dz, @ d)
{{ @ xp = x.p; x = diffPair(xp, sin(v.p.y) * dz); v = diffPair(v.p, @2(-sin(v.p.x) * d, xp * cos(v.p.y) * dz)); }}
"""),
            ([p("in", ("arr", REAL, 3), "a"), p("in", INT, "i")], REAL,
             f"""@ {n}(@ a[3], int i) {{ return a[uint(i) % 3] * a[0]; }}
{mark}{pair} {n}_f(DifferentialPair<@[3]> a, int i)
{{ uint k = uint(i) % 3; return diffPair(a.p[k] * a.p[0], a.d[k] * a.p[0] + a.p[k] * a.d[0]); }}
{mark}void {n}_b(inout DifferentialPair<@[3]> a, int i, @ d)
{{ uint k = uint(i) % 3; @ g[3] = {{ 0.0~, 0.0~, 0.0~ }}; g[k] += a.p[0] * d; g[0] += a.p[k] * d; a = diffPair(a.p, g); }}
"""),
        ]
        forms.append(([p("in", REAL, "x"), p("out", ("arr", REAL, 3), "a")], VOID,
                      f"""void {n}(@ x, out @ a[3]) {{ a[0] = x; a[1] = x * x; a[2] = 0.5~; }}
{mark}void {n}_f({pair} x, out DifferentialPair<@[3]> a)
{{ @ v[3] = {{ x.p, x.p * x.p, 0.5~ }}; @ d[3] = {{ x.d, 2.0~ * x.p * x.d, 0.0~ }}; a = diffPair(v, d); }}
{mark}void {n}_b(inout {pair} x, @ d[3]) {{ x = diffPair(x.p, d[0] + 2.0~ * x.p * d[1]); }}
"""))
        params, result, text = self.pick(forms)
        params[-1].constant = params[-1].type == INT
        attributes = f"[ForwardDerivative({n}_f)]\n[BackwardDerivative({n}_b)]\n"
        self.items.append(Text(attributes + text, (n,)))
        self.add_callable(Callable(n, params, result, 2, again=bool(mark), degree=2))

    def inherited(self):
        """A struct with a base: used as its base by value, by reference and by a method."""
        n = self.fresh("b")
        self.items.append(Text(f"""struct {n}_base : IDifferentiable
{{
    @ a;
    [Differentiable] @ scaled(@ t) {{ return a * t; }}
    [Differentiable] [mutating] void grow(@ t) {{ a = a * t + t; }}
}}
struct {n}_derived : {n}_base, IDifferentiable {{ @ b; }}
[Differentiable] void {n}_change(inout {n}_base s, @ t) {{ s.a = sin(s.a + t); }}
[Differentiable] @ {n}_read({n}_base s) {{ return s.a * s.a; }}
[Differentiable]
@ {n}(@ x, @ y)
{{
    {n}_derived d = {{}};
    d.a = x;
    d.b = y;
    {self.pick([f"{n}_change(d, y);", "d.grow(y);", "d.b = d.scaled(x);", f"if (y > 0.0~) {n}_change(d, x);"])}
    return {n}_read(d) * d.b + d.scaled(y);
}}
""", (n,)))
        self.add_callable(Callable(n, [Param("in", REAL, "x"), Param("in", REAL, "y")], REAL, 3, degree=4))

    def substitute(self):
        """A primal substitute that computes the same, to the last digit: loops may amplify what differs."""
        n = self.fresh("u")
        self.items.append(Text(f"[Differentiable]\n@ {n}_s(@ x, @ y) {{ @ s = sin(y); s += y; return s * x; }}\n"
                               f"[PrimalSubstitute({n}_s)]\n@ {n}(@ x, @ y) {{ return x * (y + sin(y)); }}\n", (n,)))
        self.add_callable(Callable(n, [Param("in", REAL, "x"), Param("in", REAL, "y")], REAL, 2, degree=2))

    def constant_function(self):
        """Calls that are constant for derivatives."""
        if not self.may_freeze:
            return
        n = self.fresh("n")
        attribute = self.pick(["", "[TreatAsDifferentiable] "])
        self.items.append(Text(f"{attribute}@ {n}(@ x) {{ return cos(x) * x; }}\n", (n,)))
        text = f"{n}($)" if attribute else f"no_diff {n}($)"
        self.add_callable(Callable(n, [Param("in", REAL, "x")], REAL, 2, text, (n,), frozen=True))


def rename_uses(node, names):
    """The fields of `this` are known as fields of the struct."""
    parts = [[rename_uses(n, names) for n in part] if isinstance(part, list) else rename_uses(part, names) for part in node.parts]
    out = node.with_parts(parts)
    out.uses = tuple(names.get(use, use) for use in node.uses)
    return out
