"""Shapes of code that are known to break compilers of this kind, and helpers that a function under test may call."""
from expressions import Callable, Variable
from statements import Scope
from tree import INT, REAL, VOID, Field, Function, Node, Param, Struct, Text, declarator, is_differentiable_type, type_text


class Patterns:
    def network(self):
        """Nested loops over the weights of a small network, kept in arrays."""
        n, w, h, o, i, j = self.rng.randint(2, 3), *(self.fresh(x) for x in "whoij")
        if self.scope.trips * n * n > 100 or self.scope.depth > 2:
            return None
        fill = Node(f"for (int {i} = 0; {i} < {n * n}; {i}++) {w}[{i}] = sin($ * @({i} + 1));", [self.real(1)], binds=(i,),
                    uses=(f"{w} unset",), declares=(w,))
        hidden = Node(f"{declarator(('arr', REAL, n), h)} = {{ {', '.join('$' * n)} }};", [self.real(1) for _ in range(n)],
                      declares=(h,))
        inner = Node(f"for (int {j} = 0; {j} < {n}; {j}++) sum += {w}[{i} * {n} + {j}] * {h}[{j}];", binds=(j,),
                     uses=(w, h, i))
        body = [Node("@ sum = $;", [self.real(1)], declares=("sum",)), inner,
                Node(f"{o}[{i}] = tanh(sum);", uses=(o, i, "sum"))]
        over = Node(f"for (int {i} = 0; {i} < {n}; {i}++) #", [body], binds=(i, o, "<break>", "<continue>"), uses=(f"{o} unset",),
                    declares=(o,))
        arrays = [Node(f"{declarator(('arr', REAL, n * n), w)};", declares=(f"{w} unset",)), fill, hidden,
                  Node(f"{declarator(('arr', REAL, n), o)};", declares=(f"{o} unset",))]
        if self.chance(0.5):    # the layer feeds itself
            k = self.fresh("k")
            back = Node(f"{h} = {o};", uses=(h, o))
            over = Node(f"for (int {k} = 0; {k} < 2; {k}++) #", [[over, back]], binds=(k, "<break>", "<continue>"), declares=(o,))
        self.scope.variables += [Variable(o, ("arr", REAL, n)), Variable(w, ("arr", REAL, n * n))]
        return arrays + [over]

    def exit_two_deep(self):
        """An early return, or a continue, two loops deep."""
        if self.scope.trips * 9 > 100 or self.scope.depth > 2:
            return None
        i, first = self.index_variable("int", 0, 2)
        j, second = self.index_variable("int", 0, 2)
        with self.inside([first], 3, True):
            before = self.block(1)
            with self.inside([second], 3, True):
                choices = [Node("continue;", uses=("<continue>",)), Node("break;", uses=("<break>",))]
                jump = self.return_statement() if self.scope.returns and self.chance(0.5) else self.pick(choices)
                inner = [Node("if ($) #", [self.test(1), [jump]])] + self.block(2)
            after = self.block(1)
        loop = Node(f"for (int {j} = 0; {j} < 3; {j}++) #", [inner], binds=(j, "<break>", "<continue>"))
        return [Node(f"for (int {i} = 0; {i} < 3; {i}++) #", [before + [loop] + after], binds=(i, "<break>", "<continue>"))]

    def carried_struct(self):
        """A struct with an array inside, changed by every iteration."""
        names = [s for s in self.structs.values() if any(f.type[0] == "arr" for f in s.fields)]
        if not names or self.scope.trips * 4 > 100 or self.scope.depth > 2:
            return None
        struct = self.pick(names)
        declared = self.declare(("struct", struct.name), self.struct_value(("struct", struct.name), 1))
        name = declared.declares[0]
        i, variable = self.index_variable("int", 0, 3)
        body = []
        with self.inside([variable], 4, True):
            for field in struct.fields:
                if field.constant or not is_differentiable_type(field.type):
                    continue
                inner = [path for path in self.paths(field.type, REAL) if not self.is_constant_path(path)]
                for path in inner[:1]:
                    place = Node(f"{name}.{field.name}", type=field.type, uses=(name, f"{struct.name}.{field.name}"))
                    for step in path:
                        place = self.step(place, step, REAL)
                    body.append(Node("$ = $;", [place, self.tame(self.real(2))]))
            if self.chance(0.5):
                body += self.block(1)
        return [declared, Node(f"for (int {i} = 0; {i} < 4; {i}++) #", [body], binds=(i, "<break>", "<continue>"))]

    def same_twice(self):
        """The same variable passed to two inout parameters."""
        for callee in self.shuffled(self.callables):
            places = [k for k, p in enumerate(callee.params) if p.dir != "in" and p.type == REAL and not p.constant]
            if len(places) < 2 or callee.cost * self.scope.trips > 1000 or not self.scope.calls or callee.frozen:
                continue
            node, _ = self.place(REAL, write=True, constant=False)
            parts = [node if k in places[:2] else self.argument(p) for k, p in enumerate(callee.params)]
            if all(parts):
                self.scope.cost += callee.cost * self.scope.trips
                self.scope.again &= callee.again
                return [Node("$;", [Node(callee.text, parts, callee.result, uses=callee.uses, call=callee.name)])]
        return None

    def remainder(self):
        """fmod by its second argument."""
        place, _ = self.place(REAL, write=True, constant=False)
        return [Node("$ = fmod(2.3~ + $, 0.7~ + 0.2~ * sin($));", [place, self.real(1), self.real(1)])] if place else None

    def running_vector(self):
        """A loop that makes, and may return, a vector."""
        if self.scope.trips * 4 > 100 or self.scope.depth > 2:
            return None
        n = self.rng.randint(2, 3)
        declared = self.declare(("vec", n), self.vector(n, 1))
        name = declared.declares[0]
        i, variable = self.index_variable("int", 0, n - 1)
        with self.inside([variable], n, True):
            body = [Node(f"{name}[{i}] = $;", [self.tame(self.real(2))], uses=(name, i)),
                    Node(f"{name} = cos($) * {name}.{'yx' if n == 2 else 'zxy'};", [self.real(1)], uses=(name,))]
            if self.scope.result == ("vec", n) and self.scope.returns:
                body.append(Node("if ($) #", [self.test(1), [Node(f"return {name};", uses=(name,))]]))
        return [declared, Node(f"for (int {i} = 0; {i} < {n}; {i}++) #", [body], binds=(i, "<break>", "<continue>"))]

    def deferred(self):
        place, _ = self.place(REAL, write=True, constant=False)
        return [Node("defer { $ = $; }", [place, self.tame(self.real(1))])] if place else None

    def tuple_value(self):
        name = self.fresh("t")
        declared = Node(f"let {name} = makeTuple($, $);", [self.real(2), self.vector(2, 1)], declares=(name,))
        self.scope.variables += [Variable(f"{name}", REAL, False, text=f"{name}._0"),
                                 Variable(f"{name}", ("vec", 2), False, text=f"{name}._1")]
        return [declared]

    def optional_value(self):
        name, inner = self.fresh("t"), self.fresh("v")
        place, _ = self.place(REAL, write=True, constant=False)
        if not place:
            return None
        declared = Node(f"Optional<@> {name} = none;", declares=(name,))
        with self.inside([Variable(inner, REAL, False)]):
            use = Node("$ = $;", [place, self.tame(self.real(2))])
        return [declared, Node(f"if ($) {name} = $;", [self.test(1), self.real(2)], uses=(name,)),
                Node(f"if (let {inner} = {name}) #", [[use]], uses=(name,), binds=(inner,))]


class Helpers:
    """Functions and types around the function under test. Each adds items to the program and callables."""

    def add_callable(self, callee):
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
            ([p("in", REAL, "x"), p("inout", REAL, "y")], VOID, f"""void {n}(@ x, inout @ y) {{ y = x * y; }}
{mark}void {n}_f({pair} x, inout {pair} y) {{ y = diffPair(x.p * y.p, x.d * y.p + x.p * y.d); }}
{mark}void {n}_b(inout {pair} x, inout {pair} y) {{ @ d = y.d; x = diffPair(x.p, y.p * d); y = diffPair(y.p, x.p * d); }}
"""),
            ([p("in", REAL, "x"), p("in", ("vec", 2), "v"), p("out", REAL, "z")], REAL,
             f"""@ {n}(@ x, @2 v, out @ z) {{ z = x * v.y; return v.x * v.x; }}
{mark}{pair} {n}_f({pair} x, DifferentialPair<@2> v, out {pair} z)
{{ z = diffPair(x.p * v.p.y, x.d * v.p.y + x.p * v.d.y); return diffPair(v.p.x * v.p.x, 2.0~ * v.p.x * v.d.x); }}
{mark}void {n}_b(inout {pair} x, inout DifferentialPair<@2> v, @ dz, @ d)
{{ @ xp = x.p; x = diffPair(xp, v.p.y * dz); v = diffPair(v.p, @2(2.0~ * v.p.x * d, xp * dz)); }}
"""),
            ([p("in", ("arr", REAL, 3), "a"), p("in", INT, "i")], REAL,
             f"""@ {n}(@ a[3], int i) {{ return a[uint(i) % 3] * a[0]; }}
{mark}{pair} {n}_f(DifferentialPair<@[3]> a, int i)
{{ uint k = uint(i) % 3; return diffPair(a.p[k] * a.p[0], a.d[k] * a.p[0] + a.p[k] * a.d[0]); }}
{mark}void {n}_b(inout DifferentialPair<@[3]> a, int i, @ d)
{{ uint k = uint(i) % 3; @ g[3] = {{ 0.0~, 0.0~, 0.0~ }}; g[k] += a.p[0] * d; g[0] += a.p[k] * d; a = diffPair(a.p, g); }}
"""),
        ]
        params, result, text = self.pick(forms)
        params[-1].constant = params[-1].type == INT
        attributes = f"[ForwardDerivative({n}_f)]\n[BackwardDerivative({n}_b)]\n"
        self.items.append(Text(attributes + text, (n,)))
        self.add_callable(Callable(n, params, result, 2, again=bool(mark), degree=2))

    def substitute(self):
        """A primal substitute that computes the same."""
        n = self.fresh("u")
        self.items.append(Text(f"[Differentiable]\n@ {n}_s(@ x, @ y) {{ return y * x + x * sin(y); }}\n"
                               f"[PrimalSubstitute({n}_s)]\n@ {n}(@ x, @ y) {{ return x * (y + sin(y)); }}\n", (n,)))
        self.add_callable(Callable(n, [Param("in", REAL, "x"), Param("in", REAL, "y")], REAL, 2))

    def constant_function(self):
        """Calls that are constant for derivatives."""
        if not self.may_freeze:
            return
        n = self.fresh("n")
        attribute = self.pick(["", "[TreatAsDifferentiable] "])
        self.items.append(Text(f"{attribute}@ {n}(@ x) {{ return cos(x) * x; }}\n", (n,)))
        text = f"{n}($)" if attribute else f"no_diff {n}($)"
        self.add_callable(Callable(n, [Param("in", REAL, "x")], REAL, 2, text, (n,), frozen=True))

    def interface(self):
        """Values behind an interface, chosen when the program runs."""
        name, a, b = self.fresh("I"), self.fresh("A"), self.fresh("B")
        carries = self.chance(0.6)
        base = " : IDifferentiable" if carries else ""
        self.items.append(Text(f"interface {name}{base} {{ [Differentiable] @ value(@ x, inout @ y); }}\n", (name,)))
        for struct, field in ((a, ("k",)), (b, ("k", "m"))):
            fields = [Variable(f, REAL, False, not carries) for f in field]
            params = [Param("in", REAL, "x"), Param("inout", REAL, "y")]
            made = Struct(struct, [Field(f, REAL) for f in field], name)
            saved, self.callables = self.callables, [c for c in self.callables if c.cost < 20]
            method = self.function("value", (REAL, params), fields=fields, size=2)
            self.callables = saved
            method.body = [rename_uses(node, {f: f"{struct}.{f}" for f in field}) for node in method.body]
            made.methods.append(method)
            self.items.append(made)
        n = self.fresh("g")
        text, uses = self.dispatch(name, a, b, n, carries)
        if not text:
            return
        self.items.append(Text(text, (n,), uses))
        params = [Param("in", REAL, "k", not carries), Param("in", REAL, "x"), Param("in", INT, "which", True)]
        self.add_callable(Callable(n, params, REAL, 60, again=self.chance(0.3), degree=2))

    def dispatch(self, name, a, b, n, carries):
        head = f"[Differentiable]\n@ {n}({'' if carries else 'no_diff '}@ k, @ x, int which)\n{{\n"
        forms = [
            f"    {name} s = {a}(k);\n    if ((which & 1) == 0) s = {b}(k, 0.5~);\n    @ y = x;\n"
            "    return s.value(x, y) * y;\n}\n",
            f"    {name} s[2] = {{ {a}(k), {b}(0.3~, k) }};\n    @ y = x, r = 0.0~;\n"
            "    for (int i = 0; i < 3; i++) r += s[(i + (which & 1)) % 2].value(x, y);\n    return tanh(r) + y;\n}\n",
            f"    {name} s = {b}(k, k);\n    @ y = x, r = 0.0~;\n    for (int i = 0; i < (which & 3); i++)\n    {{\n"
            f"        r += tanh(s.value(y, y));\n        if (i == 1) s = {a}(k{' * r' if carries else ''});\n    }}\n    return r;\n}}\n",
        ]
        return head + self.pick(forms), (name, a, b, f"{a}.k", f"{b}.k", f"{b}.m", f"{a}.value", f"{b}.value")

    def nested_derivative(self):
        """A function that differentiates another one."""
        def fits(c):
            return c.again and not c.frozen and c.cost < 40 and c.result == REAL and "$." not in c.text and \
                all(p.dir == "in" and (p.type in (REAL, INT) or p.type[0] == "vec") and
                    not (p.constant and is_differentiable_type(p.type)) for p in c.params) and \
                any(is_differentiable_type(p.type) for p in c.params)
        choices = [c for c in self.callables if fits(c)]
        if not choices:
            return
        callee, n = self.pick(choices), self.fresh("d")
        reverse = self.chance(0.5)
        params, prefix, args, results = [Param("in", REAL, "w")], [], [], []
        for k, param in enumerate(callee.params):
            name = f"p{k}"
            params.append(Param("in", param.type, name, param.type == INT))
            if param.name == "depth":
                params[-1].name = "depth"
            if not is_differentiable_type(param.type):
                args.append(params[-1].name)
            elif reverse:
                prefix.append(f"    var q{k} = diffPair({name});\n")
                args.append(f"q{k}")
                results.append(f"q{k}.d" if param.type == REAL else f"q{k}.d.x + q{k}.d.y")
            else:
                args.append(f"diffPair({name}, {'w' if param.type == REAL else type_text(param.type) + '(w)'})")
        if reverse:
            body = "".join(prefix) + f"    bwd_diff({callee.name})({', '.join(args)}, w);\n    return {' + '.join(results)};\n"
        else:
            body = f"    return fwd_diff({callee.name})({', '.join(args)}).d;\n"
        head = ", ".join(declarator(p.type, p.name) for p in params)
        self.items.append(Text(f"[Differentiable]\n@ {n}({head})\n{{\n{body}}}\n", (n,), callee.uses))
        again = self.order < 2 and self.chance(0.3)
        self.order += 1
        self.add_callable(Callable(n, params, REAL, callee.cost * 8, again=again, degree=3))


def rename_uses(node, names):
    """The fields of `this` are known as fields of the struct."""
    parts = [[rename_uses(n, names) for n in part] if isinstance(part, list) else rename_uses(part, names) for part in node.parts]
    out = node.with_parts(parts)
    out.uses = tuple(names.get(use, use) for use in node.uses)
    return out
