"""Helpers with derivatives that keep, load or store something: forward passes with a state, tensors, stores of one's own; optionals, tuples
and interface values where generic code meets them."""
from expressions import Callable, Variable
from higher import reals, whole
from tree import REAL, Param, Text


class Stores:
    def forward_pass(self):
        """A custom backward derivative with a state that its forward pass has kept; called in loops, too."""
        n, pair = self.fresh("w"), "DifferentialPair<@>"
        state, keep, slope = self.pick([
            ("@", "kept = cos(x);", "kept"),
            (f"{n}_K", "kept.all[0] = sin(x); kept.all[1] = cos(x); kept.n = 1;", "kept.all[kept.n]"),
            ("Tuple<@2, int>", "kept = makeTuple(@2(cos(x), x), 3);", "kept._0.x")])
        struct = f"struct {n}_K {'' if self.chance(0.5) else ': IDifferentiable '}{{ @ all[2]; int n; }}\n" if state.endswith("_K") else ""
        mark = "[Differentiable] " if "IDifferentiable" in struct or not struct else ""
        self.items.append(Text(f"""{struct}[ForwardPass({n}_p)] [BackwardDerivative({n}_b)] [Differentiable]
@ {n}(@ x, inout @ y) {{ y = sin(y) * x; return sin(x); }}
{mark}@ {n}_p(@ x, inout @ y, out {state} kept) {{ {keep} return {n}(x, y); }}
{mark}void {n}_b(inout {pair} x, inout {pair} y, @ d, {state} kept)
{{ @ g = y.d; x = diffPair(x.p, {slope} * d + g * sin(y.p)); y = diffPair(y.p, g * x.p * cos(y.p)); }}
""", (n,)))
        self.add_callable(Callable(n, [*reals("x"), Param("inout", REAL, "y")], REAL, 3, again=bool(mark), degree=2))

    def over_memory(self, kind, type, texts, over, head=""):
        """A function of an array that a body, which `type` gives it through, reads and writes in global buffers."""
        n = self.fresh("n")
        self.memory_body(f"{n}_w", kind, [("m", type)], [Variable("m", REAL, False, text=text) for text in texts])
        self.memory_wrapper(n, type, lambda memory: over(memory, n), head.replace("$", n))

    def memory_wrapper(self, n, type, over, head=""):
        """Around a function `n_w` of a reference, which `over` makes of a buffer: a function of an array."""
        array, pair, pointers = "DifferentialPair<@[4]>", "DifferentialPair<@>", f"DifferentialPtrPair<{type}>"
        fill = "for (int i = 0; i < 4; i++) { memory_@[i] = a.p[i]; gradient_@[i] = a.d[i]; }"
        memory, gradient = over("memory_@"), over("gradient_@")
        self.items.append(Text(f"""{head}[ForwardDerivative({n}_f)] [BackwardDerivative({n}_b)]
@ {n}(inout @ a[4], @ x, int k)
{{
    for (int i = 0; i < 4; i++) memory_@[i] = a[i];
    @ r = {n}_w({memory}, x, k);
    for (int i = 0; i < 4; i++) a[i] = memory_@[i];
    return r;
}}
{pair} {n}_f(inout {array} a, {pair} x, int k)
{{
    {fill}
    let r = fwd_diff({n}_w)({pointers}({memory}, {gradient}), x, k);
    @ p[4], d[4];
    for (int i = 0; i < 4; i++) {{ p[i] = memory_@[i]; d[i] = gradient_@[i]; }}
    a = diffPair(p, d);
    return r;
}}
void {n}_b(inout {array} a, inout {pair} x, int k, @ g)
{{
    {fill}
    bwd_diff({n}_w)({pointers}({memory}, {gradient}), x, k, g);
    @ d[4];
    for (int i = 0; i < 4; i++) d[i] = gradient_@[i];
    a = diffPair(a.p, d);
}}
""", (n,), (f"{n}_w",)))
        params = [Param("inout", ("arr", REAL, 4), "a"), *reals("x"), *whole("k")]
        self.add_callable(Callable(n, params, REAL, 40, again=False))

    def buffer_function(self):
        self.over_memory("buffer", "DiffBuffer<@>", ["m.load(k & 3)", "m.load(1)", "m.loadOnce((k + 1) & 3)"],
                         lambda memory, n: f"{{ {memory} }}")

    def tensor_function(self):
        """A tensor with its sizes and strides, by index and by load."""
        self.over_memory("tensor", "DiffTensor<@, 2>", ["m.load({ k & 1, 1 })", "m[1, k & 1]", "m.loadOnce({ 0, (k + 1) & 1 })"],
                         lambda memory, n: f"DiffTensor<@, 2>({memory}, {n}_sizes)", "static const int $_sizes[2] = { 2, 2 };\n")

    def own_store(self):
        """Loads and stores on global buffers with derivatives by hand: nothing differentiable goes in, or comes out. Some are out of
        range, where what was written reads as zero."""
        n, pair, at = self.fresh("n"), "DifferentialPair<@>", self.pick(["i & 3", "(i & 3) | (i & 4) << 5"])
        body = self.pick([
            f"{n}_put(k, x * {n}_get(1)); {n}_put(1, sin({n}_get(k)));",
            f"for (int i = 0; i < 4; i++) if (i != (k & 3)) {n}_put(i, {n}_get(i + 1) * x); else {n}_put(i, tanh({n}_get(i)));",
            f"if (x > 0.2~) {n}_put(k + 1, x); {n}_put(0, {n}_get(k) * {n}_get(1) + x);",
            f"{n}_put(k, {n}_set(k + 2, x) + {n}_set(k + 4, {n}_get(k) * x)); {n}_put(2, {n}_get(k + 2) + tanh({n}_get(k + 4)));",
            f"for (int i = 0; i < 8; i++) {n}_put(i, {n}_set(i + k, sin({n}_get(i) + x)) * {n}_get(i + 3) + {n}_get(i + k));",
            f"int i = 0; while (i < (k & 3)) {{ {n}_put(i, {n}_get(k) * 0.5~ + x); i++; if ({n}_get(i) > 1.1~) break; }}"])
        self.items.append(Text(f"""[ForwardDerivative({n}_get_f)] [BackwardDerivative({n}_get_b)]
@ {n}_get(int i) {{ return memory_@[{at}]; }}
{pair} {n}_get_f(int i) {{ return diffPair(memory_@[{at}], gradient_@[{at}]); }}
void {n}_get_b(int i, @ d) {{ gradient_@[{at}] += d; }}
[ForwardDerivative({n}_put_f)] [BackwardDerivative({n}_put_b)]
void {n}_put(int i, @ v) {{ memory_@[{at}] = v; }}
void {n}_put_f(int i, {pair} v) {{ memory_@[{at}] = v.p; gradient_@[{at}] = v.d; }}
void {n}_put_b(int i, inout {pair} v) {{ v = diffPair(v.p, gradient_@[{at}]); gradient_@[{at}] = 0.0~; }}
[ForwardDerivative({n}_set_f)] [BackwardDerivative({n}_set_b)]
@ {n}_set(int i, @ v) {{ memory_@[{at}] = v; return memory_@[{at}]; }}
{pair} {n}_set_f(int i, {pair} v) {{ {n}_put_f(i, v); return {n}_get_f(i); }}
void {n}_set_b(int i, inout {pair} v, @ d) {{ {n}_get_b(i, d); {n}_put_b(i, v); }}
[Differentiable] void {n}_w(@ x, int k) {{ {body} }}
void {n}_fill(@ x, @ y) {{ memory_@[0] = x; memory_@[1] = y; memory_@[2] = x * y; memory_@[3] = 0.5~; }}
@ {n}_sum(RWStructuredBuffer<@> b) {{ return b[0] - b[1] + 0.5~ * b[2] + b[3]; }}
[ForwardDerivative({n}_f)] [BackwardDerivative({n}_b)]
@ {n}(@ x, @ y, int k) {{ {n}_fill(x, y); {n}_w(x, k); return {n}_sum(memory_@); }}
{pair} {n}_f({pair} x, {pair} y, int k)
{{
    {n}_fill(x.p, y.p);
    gradient_@[0] = x.d; gradient_@[1] = y.d; gradient_@[2] = x.d * y.p + x.p * y.d; gradient_@[3] = 0.0~;
    fwd_diff({n}_w)(x, k);
    return diffPair({n}_sum(memory_@), {n}_sum(gradient_@));
}}
void {n}_b(inout {pair} x, inout {pair} y, int k, @ g)
{{
    {n}_fill(x.p, y.p);
    gradient_@[0] = g; gradient_@[1] = -g; gradient_@[2] = 0.5~ * g; gradient_@[3] = g;
    var inner = diffPair(x.p);
    bwd_diff({n}_w)(inner, k);
    x = diffPair(x.p, inner.d + gradient_@[0] + y.p * gradient_@[2]);
    y = diffPair(y.p, gradient_@[1] + x.p * gradient_@[2]);
}}
""", (n,)))
        self.add_callable(Callable(n, [*reals("x", "y"), *whole("k")], REAL, 20, again=False, degree=2))

    def many_optionals(self):
        """Optionals and tuples in arrays, structs and each other, with elements that have no derivative."""
        n = self.fresh("g")
        self.items.append(Text(f"""struct {n}_S : IDifferentiable {{ Optional<@> o; Tuple<@, int> t; }}
[Differentiable] Tuple<int, Optional<@2>, @> {n}_make(@ x, int k)
{{
    Optional<@2> o = none;
    if ((k & 1) == 0) o = @2(x, x * x);
    return makeTuple(k, o, sin(x));
}}
[Differentiable] void {n}_fill(inout Optional<@> o, @ x, int k) {{ if (let v = o) o = v * x; else if (k > 1) o = x; }}
[Differentiable] @ {n}_sum({n}_S s) {{ return (s.o.hasValue ? s.o.value : 0.4~) * s.t._0 + 0.1~ * @(s.t._1); }}
[Differentiable]
@ {n}(@ x, @ y, int k)
{{
    Optional<@> list[3] = {{ none, x, none }};
    {n}_S s = {{ none, makeTuple(y, 2) }};
    @ r = 0.0~;
    for (int i = 0; i < 4; i++)
    {{
        {n}_fill(list[(i + k) % 3], tanh(r) + y, i);
        let t = {n}_make(r, i + k);
        if (let v = t._1) r += 0.3~ * v.x * v.y;
        if (t._0 > 3) s.o = list[i % 3];
        if (i == 2) s.t = makeTuple(t._2 * x, i);
        r = sin(r + {n}_sum(s));
    }}
    for (int i = 0; i < 3; i++) if (list[i].hasValue) r += tanh(list[i].value);
    return r;
}}
""", (n,)))
        self.add_callable(Callable(n, [*reals("x", "y"), *whole("k")], REAL, 20, degree=2))

    def custom_optional(self):
        """Derivatives by hand of a function with optional outputs: their differentials must say which of them have a value."""
        n = self.fresh("c")
        mark, pair, both = self.pick(["", "[Differentiable] "]), "DifferentialPair<@>", "DifferentialPair<Optional<@>>"
        self.items.append(Text(f"""[ForwardDerivative({n}_f)] [BackwardDerivative({n}_b)]
Optional<@> {n}_o(@ x, inout Optional<@> y) {{ if (let v = y) {{ y = none; if (x > 0.2~) return v * x; return none; }} y = x * x; return x; }}
{mark}{both} {n}_f({pair} x, inout {both} y)
{{
    Optional<@> p = y.p, d = none, e = none;
    let r = {n}_o(x.p, p);
    if (let v = y.p) {{ if (r.hasValue) d = y.d.value * x.p + v * x.d; }}
    else {{ e = 2.0~ * x.p * x.d; d = x.d; }}
    y = {both}(p, e);
    return {both}(r, d);
}}
{mark}void {n}_b(inout {pair} x, inout {both} y, Optional<@> d)
{{
    @ g = y.d.hasValue == y.p.hasValue || d.hasValue != (!y.p.hasValue || x.p > 0.2~) ? 100.0~ : 0.0~;
    Optional<@> e = none;
    if (let v = y.p) {{ e = 0.0~; if (let s = d) {{ g += s * v; e = s * x.p; }} }}
    else {{ if (let s = y.d) g += 2.0~ * x.p * s; if (let s = d) g += s; }}
    x = diffPair(x.p, g);
    y = {both}(y.p, e);
}}
[Differentiable]
@ {n}(@ x, @ y, int k)
{{
    Optional<@> o = none;
    if (k > 0) o = y;
    @ r = y;
    for (int i = 0; i < 3; i++)
    {{
        if (let v = {n}_o(sin(x + @(i)), o)) r += v; else r = tanh(r);
        if (let v = o) r = sin(r * v);
    }}
    return r;
}}
""", (n,)))
        self.add_callable(Callable(n, [*reals("x", "y"), *whole("k")], REAL, 10, again=bool(mark), degree=2))

    def opened_generic(self):
        """Interface values given to generic functions and kept in generic structs, chosen in loops."""
        n = self.fresh("g")
        self.items.append(Text(f"""interface {n}_I : IDifferentiable {{ [Differentiable] @ at(@ x); [Differentiable] static @ unit(@ x); static const int N; }}
struct {n}_A : {n}_I
{{ @ a; static const int N = 2; [Differentiable] @ at(@ x) {{ return sin(a * x); }} [Differentiable] static @ unit(@ x) {{ return x * x; }} }}
struct {n}_B : {n}_I
{{ @ b[2]; int n; static const int N = 1; [Differentiable] @ at(@ x) {{ return b[n & 1] * x + b[0]; }} [Differentiable] static @ unit(@ x) {{ return tanh(x); }} }}
struct {n}_X<T : {n}_I> : IDifferentiable {{ T t; @ w; [Differentiable] @ at(@ x) {{ return t.at(x) * w + T.unit(w); }} }}
[Differentiable] {n}_I {n}_pick(@ x, int k) {{ if ((k & 1) == 0) return {n}_A(x); return {n}_B({{ x, x * x }}, k); }}
[Differentiable] @ {n}_all<T : {n}_I>(T t, inout @ y)
{{
    {n}_X<T> box = {{ t, y }};
    @ r = 0.0~;
    for (int i = 0; i < T.N; i++) {{ r += tanh(box.at(y)); y = sin(y + r); }}
    return r;
}}
[Differentiable] @ {n}_two<T : {n}_I, U : {n}_I>(T t, U u, @ x) {{ T list[2] = {{ t, t }}; return list[1].at(x) * u.at(x) + U.unit(x); }}
[Differentiable]
@ {n}(@ x, @ y, int k)
{{
    {n}_I s = {n}_pick(x, k);
    {n}_I kept[2] = {{ s, {n}_pick(y, k + 1) }};
    @ r = y;
    for (int i = 0; i < 3; i++)
    {{
        r = tanh(r + {n}_all(kept[(i + k) & 1], y));
        if (i == 1) kept[0] = {n}_pick(r, i);
    }}
    {self.pick([f"return r + {n}_two(kept[0], {n}_A(y), x);", f"return r * {n}_two({n}_B({{ x, y }}, k), kept[1], r);",
                f"if (let v = s as {n}_A) r += v.a; return r + {n}_all({n}_A(r), y);"])}
}}
""", (n,)))
        self.add_callable(Callable(n, [*reals("x", "y"), *whole("k")], REAL, 30, degree=2))
