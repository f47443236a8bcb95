"""Helpers of higher kinds: values behind interfaces, derivatives of derivatives, pointers and buffers with gradients, functions as
values, types with everything that a type can have."""
from expressions import Callable, Variable
from helpers import rename_uses
from tree import INT, REAL, VOID, Field, Node, Param, Struct, Text, declarator, is_differentiable_type, type_text


MOST_ORDER = 3      # of derivatives in helpers; the check adds one more


def reals(*names):
    return [Param("in", REAL, name) for name in names]


def whole(*names):
    return [Param("in", INT, name, True) for name in names]


def components(text, type):
    """The real numbers in an object."""
    if type == REAL:
        return [text]
    if type[0] == "vec":
        return [f"{text}.{'xyzw'[i]}" for i in range(type[1])]
    return [f"{text}[{i}]" for i in range(type[2])]


def spread(text, type):
    """An object of the type, made of one real number."""
    if type == REAL:
        return text
    if type[0] == "vec":
        return f"{type_text(type)}({text})"
    return f"{type_text(type)}({', '.join(f'{text} * {i + 1}.0~' for i in range(type[2]))})"


class Interfaces:
    def interface(self):
        """Values behind an interface, chosen when the program runs."""
        name, a, b = self.fresh("I"), self.fresh("A"), self.fresh("B")
        carries = self.chance(0.7)
        base = " : IDifferentiable" if carries else ""
        self.items.append(Text(f"interface {name}{base} {{ [Differentiable] @ value(@ x, inout @ y); }}\n", (name,)))
        again = True
        for struct, field in ((a, ("k",)), (b, ("k", "m"))):
            fields = [Variable(f, REAL, False, not carries) for f in field]
            params = [Param("in", REAL, "x"), Param("inout", REAL, "y")]
            made = Struct(struct, [Field(f, REAL) for f in field], name)
            saved, self.callables = self.callables, [c for c in self.callables if c.cost < 20]
            method = self.function("value", (REAL, params), fields=fields, size=2)
            self.callables = saved
            again &= self.scope.again
            method.body = [rename_uses(node, {f: f"{struct}.{f}" for f in field}) for node in method.body]
            made.methods.append(method)
            self.items.append(made)
        n = self.fresh("g")
        uses = (name, a, b, f"{a}.k", f"{b}.k", f"{b}.m", f"{a}.value", f"{b}.value")
        text = self.carrying(name, a, b, n) if carries else self.plain(name, a, b, n)
        self.items.append(Text(text, (n,), uses))
        params = [Param("in", REAL, "k", not carries), *reals("x"), *whole("which")]
        self.add_callable(Callable(n, params, REAL, 30, again=again and self.chance(0.5), degree=2))

    def plain(self, name, a, b, n):
        """The objects have no derivatives."""
        forms = [
            f"    {name} s = {a}(k);\n    if ((which & 1) == 0) s = {b}(k, 0.5~);\n    @ y = x;\n    return s.value(x, y) * y;\n",
            f"    {name} s[2] = {{ {a}(k), {b}(0.3~, k) }};\n    @ y = x, r = 0.0~;\n"
            "    for (int i = 0; i < 3; i++) r += s[(i + (which & 1)) % 2].value(x, y);\n    return tanh(r) + y;\n",
            f"    {name} s = {b}(k, k);\n    @ y = x, r = 0.0~;\n    for (int i = 0; i < (which & 3); i++)\n    {{\n"
            f"        r += tanh(s.value(y, y));\n        if (i == 1) s = {a}(k);\n    }}\n    return r;\n",
        ]
        return f"[Differentiable]\n@ {n}(no_diff @ k, @ x, int which)\n{{\n{self.pick(forms)}}}\n"

    def carrying(self, name, a, b, n):
        """The objects have derivatives, and are kept in structs, arrays, optionals; made by functions, passed to generic ones."""
        third = f"{n}_C"
        around = f"""struct {third} : {name}
{{
    @ k[2];
    no_diff @ w;
    [ForwardDerivative(value_f)] [BackwardDerivative(value_b)] @ value(@ x, inout @ y) {{ return sin(x) * k[0] * w; }}
    [Differentiable] static DifferentialPair<@> value_f(DifferentialPair<{third}> s, DifferentialPair<@> x, inout DifferentialPair<@> y)
    {{ return diffPair(sin(x.p) * s.p.k[0] * s.p.w, (cos(x.p) * x.d * s.p.k[0] + sin(x.p) * s.d.k[0]) * s.p.w); }}
    [Differentiable] static void value_b(inout DifferentialPair<{third}> s, inout DifferentialPair<@> x, inout DifferentialPair<@> y, @ d)
    {{
        {third}.Differential g = {{}};
        g.k[0] = sin(x.p) * s.p.w * d;
        @ dx = cos(x.p) * s.p.k[0] * s.p.w * d;
        s = diffPair(s.p, g);
        x = diffPair(x.p, dx);
    }}
}}
[Differentiable] {name} {n}_choose(@ k, @ m, int which)
{{
    switch (which & 3)
    {{
    case 0: return {a}(k * m);
    case 1: return {third}({{ k, m }}, 0.4~);
    default: {name} s = {b}(k, m); return s;
    }}
}}
struct {n}_H : IDifferentiable
{{
    {name} s;
    @ scale;
    [Differentiable] @ go(@ x) {{ @ y = scale; return s.value(x, y) + y; }}
    [Differentiable] [mutating] void turn(@ x, int which) {{ @ y = x; scale = tanh(s.value(x, y)); s = {n}_choose(y, scale, which); }}
}}
[Differentiable] {n}_H {n}_hold(@ k, @ m, int which) {{ {n}_H h; h.s = {n}_choose(k, m, which); h.scale = m; return h; }}
[Differentiable] @ {n}_twice<T : {name}>(T s, @ x) {{ @ y = x * x; return s.value(x, y) * tanh(s.value(y, y)); }}
"""
        forms = [
            f"    {name} s = {a}(k);\n    if ((which & 1) == 0) s = {b}(k, 0.5~);\n    @ y = x;\n    return s.value(x, y) * y;\n",
            f"    {name} s[3] = {{ {a}(k), {b}(0.3~, k), {third}({{ x, k }}, 0.7~) }};\n    @ y = x, r = 0.0~;\n"
            "    for (int i = 0; i < 4; i++) r += s[(i + (which & 1)) % 3].value(x, y);\n    return tanh(r) + y;\n",
            f"    {name} s = {b}(k, k);\n    @ y = x, r = 0.0~;\n    for (int i = 0; i < (which & 3); i++)\n    {{\n"
            f"        r += tanh(s.value(y, y));\n        if (i == 1) s = {a}(k * r);\n    }}\n    return r;\n",
            f"    {n}_H h = {n}_hold(k, x, which);\n    return h.go(x);\n",
            f"    {n}_H h[2] = {{ {n}_hold(k, x, which), {n}_hold(x, k, which + 1) }};\n    @ r = x;\n"
            f"    for (int i = 0; i < 4; i++)\n    {{\n        r = tanh(h[i & 1].go(r));\n        if (i == 2) h[1].s = {b}(r, r);\n"
            "        if (i == 1) h[which & 1].turn(r, i + which);\n    }\n    return r;\n",
            f"    return {n}_twice({n}_choose(k, x, which), x) + {n}_twice({b}(k, x), k);\n",
            f"    Optional<{name}> s = none;\n    if (which > 2) s = {n}_choose(k, x, which);\n    @ y = x;\n"
            "    if (let v = s) return v.value(x, y) * y;\n    return x * k;\n",
            f"    {name} s = {n}_choose(k, x, which);\n    if (let v = s as {a}) return v.k * x;\n    if (s is {b}) return k;\n"
            "    @ y = k;\n    return s.value(x, y);\n",
            f"    @ r = x;\n    int i = 0;\n    while (i < 4 && r < 2.0~)\n    {{\n        let s = {n}_choose(r, k, which + i);\n"
            "        @ y = r;\n        r = tanh(s.value(r, y)) + 0.3~ * y;\n        if (y > 1.7~) break;\n        i++;\n    }\n    return r;\n",
        ]
        return f"{around}[Differentiable]\n@ {n}(@ k, @ x, int which)\n{{\n{self.pick(forms)}}}\n"


class Nesting:
    def derivable(self, ways=("in", "inout"), kinds=("real", "int", "vec", "arr"), results=None, most=MOST_ORDER - 1):
        """Functions whose derivative may be differentiated again, with parameters of a simple kind."""
        def fits(c):
            return c.again and not c.frozen and c.cost < 200 and c.order <= most and "$." not in c.text and (results or c.result) == c.result and \
                (c.result == VOID or c.result == REAL or c.result[0] == "vec") and \
                all(p.dir in ways and p.type[0] in kinds and (p.type[0] != "arr" or p.type[1] == REAL) and not p.generic and
                    not (p.dir == "inout" and p.type == INT) and
                    not (p.constant and is_differentiable_type(p.type)) for p in c.params) and \
                any(is_differentiable_type(p.type) for p in c.params)
        choices = [c for c in self.callables if fits(c)]
        if not choices:
            self.simple_function()
            choices = [c for c in self.callables if fits(c)]
        if not choices:
            return None
        return choices[-1] if self.chance(0.5) else self.pick(choices)      # derivatives of derivatives

    def simple_function(self):
        params = [*reals(self.fresh("p")), Param("in", self.pick([REAL, REAL, ("vec", 2)]), self.fresh("p")), *whole(self.fresh("p"))]
        saved, self.may_freeze = self.may_freeze, False
        name = self.fresh("g")
        self.items.append(self.function(name, (REAL, params[:self.rng.randint(1, 3)])))
        self.may_freeze = saved
        self.add_callable(Callable(name, self.items[-1].params, REAL, self.scope.cost, again=self.scope.again))

    def parameters(self, callee):
        """Parameters like those of the callee, and a weight before them."""
        copies = [Param("in", p.type, "depth" if p.name == "depth" else f"p{k}", p.type == INT) for k, p in enumerate(callee.params)]
        return [Param("in", REAL, "w"), *copies]

    def add_derivative(self, callee, params, body, cost=4, order=1):
        n = self.fresh("d")
        head = ", ".join(declarator(p.type, p.name) for p in params)
        self.items.append(Text(f"[Differentiable]\n@ {n}({head})\n{{\n{body}}}\n", (n,), callee.uses))
        self.order += 1
        self.add_callable(Callable(n, params, REAL, callee.cost * cost, degree=3, order=callee.order + order))

    def nested_derivative(self):
        """A function that differentiates another one."""
        callee = self.derivable()
        if not callee:
            return
        params = self.parameters(callee)
        reverse, before, args, results = self.chance(0.5), [], [], []
        for k, (param, own) in enumerate(zip(callee.params, params[1:])):
            if not is_differentiable_type(param.type):
                args.append(own.name)
                continue
            given = "" if reverse and param.dir == "in" else f", {spread('w', param.type)}"
            if reverse or param.dir == "inout":
                before.append(f"    var q{k} = diffPair({own.name}{given});\n")
                args.append(f"q{k}")
                results += components(f"q{k}.d", param.type)
            else:
                args.append(f"diffPair({own.name}{given})")
        if reverse:
            seed = [] if callee.result == VOID else [spread("w", callee.result)]
            body = "".join(before) + f"    bwd_diff({callee.name})({', '.join(args + seed)});\n"
        elif callee.result == VOID:
            body = "".join(before) + f"    fwd_diff({callee.name})({', '.join(args)});\n"
        else:
            body = "".join(before) + f"    let r = fwd_diff({callee.name})({', '.join(args)});\n"
            results += components("r.d", callee.result) + components("0.5~ * r.p", callee.result)[:1]
        if results:
            self.add_derivative(callee, params, f"{body}    return {' + '.join(results)};\n")

    def nested_operator(self):
        """fwd_diff(bwd_diff(f)) and its like, as written."""
        callee = self.derivable(("in",), ("real", "int", "vec"), REAL, MOST_ORDER - 2)
        if not callee or callee.cost > 60:
            return
        params = self.parameters(callee)
        outer, inner = self.pick(["fwd_diff", "bwd_diff"]), self.pick(["fwd_diff", "bwd_diff"])
        before, args, results = [], [], []
        for k, (param, own) in enumerate(zip(callee.params, params[1:])):
            if not is_differentiable_type(param.type):
                args.append(own.name)
                continue
            w, zero, p = spread("w", param.type), spread("0.0~", param.type), own.name
            pair = {("fwd_diff", "fwd_diff"): f"diffPair(diffPair({p}, {w}), diffPair({w}, {p}))",
                    ("fwd_diff", "bwd_diff"): f"diffPair(diffPair({p}), diffPair({w}, {zero}))",
                    ("bwd_diff", "fwd_diff"): f"diffPair(diffPair({p}, {w}))",
                    ("bwd_diff", "bwd_diff"): f"diffPair(diffPair({p}), diffPair({zero}, {w}))"}[outer, inner]
            before.append(f"    var q{k} = {pair};\n")
            args.append(f"q{k}")
            if (outer, inner) != ("fwd_diff", "fwd_diff"):
                results += components(f"q{k}.d.{'d' if outer == 'fwd_diff' else 'p'}", param.type)
        call = f"{outer}({inner}({callee.name}))"
        body = "".join(before)
        if (outer, inner) == ("fwd_diff", "fwd_diff"):
            body += f"    return {call}({', '.join(args)}).d.d;\n"
        else:
            seed = {"fwd_diff": "diffPair(w, 0.5~)" if outer == "fwd_diff" else "diffPair(0.3~, w)", "bwd_diff": "diffPair(w, w)"}[inner]
            if (outer, inner) == ("bwd_diff", "bwd_diff"):
                body += "    var s = diffPair(w);\n"
                seed = "s"
                results.append("s.d")
            body += f"    {call}({', '.join(args + [seed])});\n    return {' + '.join(results)};\n"
        self.add_derivative(callee, params, body, 8, 2)

    def library_operator(self):
        """grad, jvp, vjp, jacobian, hvp, hessian of the prelude; the other arguments are fixed."""
        callee = self.derivable(("in",), ("real", "int", "vec"), REAL, MOST_ORDER - 2)
        if not callee or callee.cost > 60:
            return
        chosen = self.pick([k for k, p in enumerate(callee.params) if is_differentiable_type(p.type)])
        type = callee.params[chosen].type
        others = [spread(f"{self.rng.uniform(-1, 1):.1f}~", p.type) if is_differentiable_type(p.type) else "1" for p in callee.params]
        others[chosen] = "t"
        f = f"({type_text(type)} t) => {callee.name}({', '.join(others)})"
        w = spread("w", type)
        forms = [(f"grad({f}, x)", type), (f"jvp({f}, x, {w})", REAL), (f"vjp({f}, x, w)", type), (f"hvp({f}, x, {w})", type)]
        if type == REAL:
            forms.append((f"hessian({f}, x)", REAL))
        params = [Param("in", REAL, "w"), Param("in", type, "x")]
        others[chosen] = spread("(a[1] + 0.1~ * a[3])", type)
        wide = f"(@ a[5]) => {callee.name}({', '.join(others)}) * a[0]"
        forms += [(f"jacobian({f}, x)", type), (wide, None)]
        text, result = self.pick(forms)
        if not result:      # by rows
            self.add_derivative(callee, params, f"    @ at[5] = {{ w, {components('x', type)[0]}, 0.5~, w * w, 1.0~ }};\n    let r = jacobian({wide}, at);\n"
                                "    return r[0] + r[1] * w + r[3];\n", 8, 1)
            return
        self.add_derivative(callee, params, f"    let r = {text};\n    return {' + '.join(components('r', result))} + w;\n", 8,
                            2 if text.startswith("h") else 1)

    def custom_twice(self):
        """Custom derivatives whose own derivatives are custom."""
        n = self.fresh("c")
        pair, two = "DifferentialPair<@>", "DifferentialPair<DifferentialPair<@>>"
        self.items.append(Text(f"""[ForwardDerivative({n}_f)] [BackwardDerivative({n}_b)] @ {n}(@ x) {{ return x * x * x; }}
[ForwardDerivative({n}_ff)] [BackwardDerivative({n}_fb)]
{pair} {n}_f({pair} x) {{ return diffPair(x.p * x.p * x.p, 3.0~ * x.p * x.p * x.d); }}
{two} {n}_ff({two} x)
{{ return diffPair({n}_f(x.p), diffPair(3.0~ * x.p.p * x.p.p * x.d.p, 6.0~ * x.p.p * x.p.d * x.d.p + 3.0~ * x.p.p * x.p.p * x.d.d)); }}
void {n}_fb(inout {two} x, {pair} d)
{{ x = diffPair(x.p, diffPair(3.0~ * x.p.p * x.p.p * d.p + 6.0~ * x.p.p * x.p.d * d.d, 3.0~ * x.p.p * x.p.p * d.d)); }}
[ForwardDerivative({n}_bf)] [BackwardDerivative({n}_bb)]
void {n}_b(inout {pair} x, @ d) {{ x = diffPair(x.p, 3.0~ * x.p * x.p * d); }}
void {n}_bf(inout {two} x, {pair} d)
{{ x = diffPair(diffPair(x.p.p, 3.0~ * x.p.p * x.p.p * d.p), diffPair(x.d.p, 6.0~ * x.p.p * x.d.p * d.p + 3.0~ * x.p.p * x.p.p * d.d)); }}
void {n}_bb(inout {two} x, inout {pair} d)
{{ @ a = x.p.p, g = x.d.d; x = diffPair(x.p, diffPair(x.d.p + 6.0~ * a * d.p * g, 0.0~)); d = diffPair(d.p, 3.0~ * a * a * g); }}
[Differentiable] @ {n}_df(@ x, @ w) {{ return fwd_diff({n})(diffPair(sin(x), w)).d; }}
[Differentiable] @ {n}_db(@ x, @ w) {{ var p = diffPair(sin(x)); bwd_diff({n})(p, w); return p.d * x; }}
""", (n, f"{n}_df", f"{n}_db")))
        self.add_callable(Callable(n, reals("x"), REAL, 2, again=False, degree=3))
        for name in (f"{n}_df", f"{n}_db"):
            self.add_callable(Callable(name, reals("x", "w"), REAL, 4, again=False, degree=3))


class Memory:
    """Values in memory, with their gradients beside them. Around the function that works on the memory there is one that copies
    numbers there and back, with the derivatives that this has."""

    def set_memory(self):
        """A statement that writes to the memory that this function works on."""
        if not self.memory:
            return None
        value = self.tame(self.real(2))
        if self.memory == "buffer":
            return [Node("m.store($ & 3, $);", [self.integer(1), value], uses=("m",))]
        if self.memory == "tensor":
            return [Node("m.store({ $ & 1, $ & 1 }, $);", [self.integer(1), self.integer(1), value], uses=("m",))]
        return [Node(f"{self.pick('pq')}.set($);", [value], uses=("p", "q"))]

    def memory_body(self, name, memory, pointers, variables):
        saved, self.callables = self.callables, [c for c in self.callables if c.cost < 20]
        self.memory = memory
        params = [Param("in", ("other", type), p, True) for p, type in pointers] + reals("x") + whole("k")
        hidden = {p for p, _ in pointers}
        function = self.function(name, (REAL, params), size=3, hidden=hidden, fields=variables)
        function.body[-1:-1] = self.set_memory()
        self.memory, self.callables = None, saved
        self.items.append(function)

    def pointer_function(self):
        n = self.fresh("n")
        self.memory_body(f"{n}_w", "pointer", [("p", "DiffPtr<@>"), ("q", "DiffPtr<@>")],
                         [Variable(v, REAL, False, text=f"{v}.get()") for v in "pq"])
        pair, pointers = "DifferentialPair<@>", "DifferentialPtrPair<DiffPtr<@>>"
        self.items.append(Text(f"""[ForwardDerivative({n}_f)] [BackwardDerivative({n}_b)]
@ {n}(@ a, inout @ b, @ x, int k) {{ @ s = a, t = b; @ r = {n}_w({{ &s }}, {{ &t }}, x, k); b = t + s; return r; }}
{pair} {n}_f({pair} a, inout {pair} b, {pair} x, int k)
{{
    @ s = a.p, ds = a.d, t = b.p, dt = b.d;
    let r = fwd_diff({n}_w)({pointers}({{ &s }}, {{ &ds }}), {pointers}({{ &t }}, {{ &dt }}), x, k);
    b = diffPair(t + s, dt + ds);
    return r;
}}
void {n}_b(inout {pair} a, inout {pair} b, inout {pair} x, int k, @ d)
{{
    @ s = a.p, t = b.p, ds = b.d, dt = b.d;
    bwd_diff({n}_w)({pointers}({{ &s }}, {{ &ds }}), {pointers}({{ &t }}, {{ &dt }}), x, k, d);
    a = diffPair(a.p, ds);
    b = diffPair(b.p, dt);
}}
""", (n,), (f"{n}_w",)))
        self.add_callable(Callable(n, [*reals("a"), Param("inout", REAL, "b"), *reals("x"), *whole("k")], REAL, 40, again=False))


class Kinds:
    def function_value(self):
        """Functions as arguments: named ones, and lambdas."""
        n = self.fresh("h")
        scaled = self.pick(["t * sin(t)", "tanh(t) * t + 0.3~", "t > 0.0~ ? t * t : 0.5~ * t"])
        self.items.append(Text(f"""[Differentiable] @ {n}_apply(functype (@) -> @ g, @ x)
{{
    @ r = x;
    for (int i = 0; i < 3; i++) r = tanh(g(r)) + x;
    return r;
}}
[Differentiable] @ {n}_square(@ x) {{ return x * x; }}
[Differentiable] @ {n}(@ x, @ y) {{ return {n}_apply({n}_square, x) * {n}_apply((@ t) => {scaled}, y); }}
""", (n,)))
        self.add_callable(Callable(n, reals("x", "y"), REAL, 10, degree=2))

    def rich_struct(self):
        """Constructors, properties, subscripts, operators, static and mutating methods."""
        n, s = self.fresh("g"), self.fresh("R")
        self.items.append(Text(f"""struct {s} : IDifferentiable
{{
    @ a; @ b[2]; int n;
    [Differentiable] __init(@ x, @ y) {{ a = x * y; b = {{ x, y }}; n = 1; }}
    property @ sum {{ [Differentiable] get {{ return a + b[0] * b[1]; }} [Differentiable] set {{ a = newValue * 0.5~; b[1] = sin(newValue); }} }}
    __subscript(int i) -> @ {{ [Differentiable] get {{ return b[i & 1] * a; }} [Differentiable] set {{ b[i & 1] = tanh(newValue); }} }}
    [Differentiable] static {s} join({s} x, {s} y) {{ {s} r = x; r.b[0] = y.a; r.n = y.n + 1; return r; }}
    [Differentiable] [mutating] void step(@ t) {{ a = sin(a + t); b[n & 1] += a; n++; }}
}}
[Differentiable] {s} operator*({s} x, {s} y) {{ {s} r = {s}(x.a, y.a); r.b[1] = x.b[1] * y.b[0]; return r; }}
[Differentiable] {s} operator+({s} x, @ y) {{ x.sum = y; return x; }}
[Differentiable]
@ {n}(@ x, @ y, int k)
{{
    {s} r = {s}(sin(x), y);
    r[k] = r.sum * x;
    r.sum += r[k + 1];
    for (int i = 0; i < (k & 3); i++) r.step(y);
    {s} q = {s}.join(r, r * r) + y;
    {s} list[2] = {{ q, r }};
    list[k & 1].step(x);
    list[1].sum *= 0.5~;
    return tanh(q.sum + q[k] * q.b[0]) + list[0].a * list[1][k];
}}
""", (n,)))
        self.add_callable(Callable(n, [*reals("x", "y"), *whole("k")], REAL, 12, degree=2))

    def manual_differential(self):
        """A type whose Differential is another one, written by hand; or itself."""
        n, s = self.fresh("g"), self.fresh("Q")
        own = self.chance(0.4)
        d = s if own else f"{s}_D"
        names = ("a", "v") if own else ("s", "t")
        other = "" if own else f"struct {d} : IDifferentiable {{ @ s; @2 t; }}\n"
        count = "" if own else " int n;"
        number = "" if own else " k,"
        bump = "" if own else "    r.n++;\n"
        self.items.append(Text(f"""{other}struct {s} : IDifferentiable
{{
    typealias Differential = {d};
    [DerivativeMember({d}.{names[0]})] @ a;{count} [DerivativeMember({d}.{names[1]})] @2 v;
    static {d} dzero() {{ return {{ 0.0~, @2(0.0~) }}; }}
    static {d} dadd({d} x, {d} y) {{ return {{ x.{names[0]} + y.{names[0]}, x.{names[1]} + y.{names[1]} }}; }}
    [Differentiable] @ get(@ x) {{ return a * v.x + x * v.y; }}
}}
[Differentiable] {s} {n}_turn({s} q, @ x)
{{
    {s} r = q;
    r.a = sin(q.v.x * x);
    r.v = r.v.yx * q.a;
{bump}    return r;
}}
[Differentiable]
@ {n}(@ x, @ y, int k)
{{
    {s} q = {{ x,{number} @2(y, x * y) }};
    {s} list[2] = {{ q, q }};
    for (int i = 0; i < (k & 3); i++)
    {{
        q = {n}_turn(q, y);
        list[i & 1] = q;
        if (i == 1) q.v.y = x;
    }}
    return q.get(y) + list[0].a * list[1].v.y;
}}
""", (n,)))
        self.add_callable(Callable(n, [*reals("x", "y"), *whole("k")], REAL, 12, degree=3))

    def tuple_and_optional(self):
        """Results that are tuples and optionals."""
        n = self.fresh("g")
        self.items.append(Text(f"""[Differentiable] Tuple<@, @2> {n}_t(@ x, @2 v) {{ return makeTuple(x * v.y, v * sin(x)); }}
[Differentiable] Optional<@2> {n}_o(@ x, @2 v) {{ if (x > 0.5~) return v * tanh(x); return none; }}
[Differentiable] @ {n}(@ x, @2 v)
{{
    var t = {n}_t(x, v);
    t._1.y = t._0;
    t._0 *= x;
    @ r = t._0 + t._1.x;
    if (let o = {n}_o(x, v)) r += dot(o, t._1);
    let q = {n}_o(r, v);
    if (q.hasValue) r = tanh(r) * q.value.x;
    return r;
}}
""", (n,)))
        self.add_callable(Callable(n, [*reals("x"), Param("in", ("vec", 2), "v")], REAL, 6, degree=3))

    def associated_type(self):
        """A generic function over an interface with an associated type and static members."""
        n = self.fresh("g")
        self.items.append(Text(f"""interface {n}_I
{{
    associatedtype V : IDifferentiable;
    [Differentiable] static V make(@ x, @ y);
    [Differentiable] static @ read(V v, @ x);
}}
struct {n}_A : {n}_I
{{
    typealias V = @2;
    [Differentiable] static V make(@ x, @ y) {{ return @2(x * y, sin(y)); }}
    [Differentiable] static @ read(V v, @ x) {{ return dot(v, @2(x, 0.4~)); }}
}}
struct {n}_P : IDifferentiable {{ @ a; @ b[2]; int n; }}
struct {n}_B : {n}_I
{{
    typealias V = {n}_P;
    [Differentiable] static V make(@ x, @ y) {{ V v = {{ x, {{ y, x + y }}, 2 }}; v.b[0] = v.a; return v; }}
    [Differentiable] static @ read(V v, @ x) {{ return v.a * tanh(v.b[0] + x * v.b[1]); }}
}}
[Differentiable] @ {n}_run<T : {n}_I>(@ x, @ y, int k)
{{
    T.V v = T.make(x, y);
    for (int i = 0; i < (k & 3); i++) v = T.make(tanh(T.read(v, y)), x);
    return T.read(v, x);
}}
[Differentiable] @ {n}(@ x, @ y, int k) {{ return {n}_run<{n}_A>(x, y, k) * {n}_run<{n}_B>(y, x, k + 1); }}
""", (n,)))
        self.add_callable(Callable(n, [*reals("x", "y"), *whole("k")], REAL, 12, degree=3))


class Higher(Interfaces, Nesting, Memory, Kinds):
    """All of them."""
