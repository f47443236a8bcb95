"""Helpers whose objects and lambdas hold something that derivatives go to, numbers and references to memory: called with recursion, by
generic functions and by `functype`s, and differentiated where they are, so that what is checked are derivatives of derivatives.

In the texts `n_` begins the names of one helper. Its model `n_N` has some numbers, objects and lambdas hold the model."""
import re

from expressions import Callable
from higher import reals, whole
from tree import REAL, Function, Node, Param, Text

# What a model consists of, how its numbers are read and how one is set, and how it is made of memory ($).
KINDS = {
    "value": ("IDifferentiable", "@ p; @ q[3];", ["p", "q[0]", "q[1]", "q[c & 1]"], "", ""),
    "buffer": ("IDifferentiablePtrType", "DiffBuffer<@> p;", ["p[0]", "p.load(1)", "p.loadOnce(2)", "p[c & 3]"], "p.store(1, v);",
               "{ { $ }, 3 }"),
    "tensor": ("IDifferentiablePtrType", "DiffTensor<@, 1> p;", ["p[0]", "p.load({ 1 })", "p.loadOnce({ 2 })", "p[c & 3]"],
               "p.store({ 2 }, v);", "{ DiffTensor<@, 1>($, n_sizes), 3 }"),
    "pointer": ("IDifferentiablePtrType", "DiffPtr<@> p; DiffPtr<@> q;", ["p.get()", "q.get()", "p.getOnce()", "q.getOnce()"], "q.set(v);",
                "{ { &$[0] }, { &$[2] }, 3 }"),
    "nested": ("IDifferentiablePtrType", "n_M one; DiffPtr<@> q;", ["one.p[0]", "one.p.load(c & 3)", "q.get()", "one.go()"],
               "one.p.store(3, v);", "{ { { $ } }, { &$[2] }, 3 }"),
}
BODIES = ["A * x * x + sin(B * x)", "tanh(A * x + B) * C", "A * sin(x * C) + B * x", "exp(0.3~ * sin(A * x)) * B + x * C",
          "x > B ? A * x * x : C * x", "(A + x) * (sin(B * x) - C)"]


class Held:
    def held_expression(self, reads):
        """Of x and what a model has; as it is, and with what is read frozen."""
        body, chosen = self.pick(BODIES), [self.pick(reads) for _ in "ABC"]
        fill = lambda form: re.sub("[ABC]", lambda m: form.format(chosen["ABC".index(m[0])]), body)
        return fill("{}"), fill("frozen({})")

    def held_model(self, kind):
        """The type of what is held, as it is and in the reference: `still` is called where it is a constant."""
        base, fields, reads, store, _ = KINDS[kind]
        is_value = kind == "value"
        put = "" if is_value else f"    [Differentiable] void put(@ v) {{ {store} }}\n"
        inner = """struct n_M : IDifferentiablePtrType
{ typealias Differential = n_M; DiffBuffer<@> p; [Differentiable] @ go() { return p[1] * p.loadOnce(2); } }
""" if kind == "nested" else ""
        alias = "" if is_value else "    typealias Differential = n_N;\n"
        sizes = "static const int n_sizes[1] = { 4 };\n" if kind == "tensor" else ""
        at, deep = self.held_expression(reads)[0], self.held_expression(reads)[0]
        factor, slope = self.pick(reads), self.pick(["this.at", "at"])
        return tuple(f"""{sizes}{inner}struct n_N : {base}, n_I
{{
{alias}    {fields} int c;
    [Differentiable] @ at(@ x) {{ return {at}; }}
    [Differentiable] @ deep(@ x, int k) {{ return k <= 0 ? {deep} : tanh(deep(x, k - 1)) * {factor}; }}
    [Differentiable] @ slope(@ x) {{ return fwd_diff({slope})(diffPair(x, 1.0~)).d; }}
    [Differentiable] @ still(@ x) {{ return {still}; }}
{put}}}
""" for still in self.held_expression(reads))

    def held_types(self):
        """What holds a model: an object with numbers of its own, one that can be called, one in which the model is a constant. And what
        the first is made of."""
        inside = self.chance(0.3)
        field, use, made = ("n_W w;", "w.net", "{ m, y }") if inside else ("n_N net;", "net", "m")
        more = self.pick(["", f" + fwd_diff({use}.at)(diffPair(x, q)).d", f" + {use}.deep(x, k & 1)", f" * {use}.slope(q)"])
        return f"""{"struct n_W : IDifferentiable { n_N net; @ u; }" if inside else ""}
struct n_H : IDifferentiable, n_I
{{
    {field} @ q; int k;
    [Differentiable] @ at(@ x) {{ return q * {use}.at(x){more}; }}
}}
struct n_F : IDifferentiableFunc<@, @>
{{
    @ q; n_N net;
    [Differentiable] @ operator()(@ x) {{ return net.at(x * q) + q * net.at(0.5~); }}
}}
struct n_C : IDifferentiable, n_I
{{
    no_diff n_N net; @ q;
    [Differentiable] @ at(@ x) {{ return q * net.still(x) + x; }}
}}
""", f"{{ {made}, x, k }}"

    def held_calls(self):
        """Functions that take something to call, and differentiate it."""
        inline = self.pick(["", "[noinline] ", "[ForceInline] "])
        more = self.pick(["x", "0.2~ * g(x)"])
        return f"""interface n_I {{ [Differentiable] @ at(@ x); }}
[Differentiable] @ n_apply(functype (@) -> @ g, @ x, int k) {{ return k <= 0 ? g(x) : tanh(n_apply(g, x, k - 1)) + x; }}
[Differentiable] {inline}@ n_slope(functype (@) -> @ g, @ x) {{ return fwd_diff(g)(diffPair(x, 1.0~)).d; }}
[Differentiable] {inline}@ n_back(functype (@) -> @ g, @ x) {{ var p = diffPair(x); bwd_diff(g)(p, x); return p.d; }}
[Differentiable] @ n_deep(functype (@) -> @ g, @ x, int k) {{ return k <= 0 ? n_slope(g, x) : sin(n_deep(g, x, k - 1)) * x; }}
[Differentiable] {inline}@ n_generic<F : IDifferentiableFunc<@, @>>(F g, @ x, int k)
{{
    @ r = x;
    for (int i = 0; i < (k & 3); i++) r = tanh(g(r)) + {more};
    return r;
}}
[Differentiable] {inline}@ n_any<M : n_I>(M m, @ x) {{ return fwd_diff(m.at)(diffPair(x, 1.0~)).d * tanh(m.at(x)); }}
[Differentiable] @ n_again<M : n_I>(M m, @ x, int k) {{ return k <= 0 ? n_any(m, x) : n_again(m, sin(x), k - 1) * x; }}
"""

    def held_use(self, objects, functions):
        """A call or a derivative of an object with a method `at`, or of what can be called."""
        o, g, (x, y), p = self.pick(objects), self.pick(functions), self.shuffled(["x", "y"]), self.fresh("p")
        return self.pick([
            f"r += {o}.at({x});", f"r += n_again({o}, {x}, k & 1);", f"r += n_any({o}, {y});",
            f"r += n_apply({g}, {x}, k & 3);", f"r += n_slope({g}, {y});", f"r += n_deep({g}, {x}, k & 1);", f"r += n_back({g}, {y});",
            f"r += n_generic({g}, {x}, k);", f"r += {g}({y});", f"r += grad({g}, {x});", f"r += jvp({g}, {y}, {x});",
            f"r += 0.2~ * hessian({g}, {x});", f"r += 0.2~ * hvp({g}, {y}, {x});",
            f"r += fwd_diff({o}.at)(diffPair({x}, {y})).d;", f"r += fwd_diff({g})(diffPair({y}, {x})).d * x;",
            f"{{ var {p} = diffPair({x}); bwd_diff({o}.at)({p}, {y}); r += {p}.d; }}",
            f"{{ var {p} = diffPair({x}); bwd_diff({g})({p}, r); r = tanh({p}.d); }}",
            f"for (int {p} = 0; {p} < (k & 3); {p}++) r = tanh(r) + fwd_diff({o}.at)(diffPair({x}, r)).d;",
            f"if ({x} > 0.1~) r += n_slope({g}, {x}); else r *= {o}.at({y});",
            f"r += 0.2~ * fwd_diff(fwd_diff({o}.at))(diffPair(diffPair({x}, {y}), diffPair({y}, 0.5~))).d.d;",
            f"{{ var {p} = diffPair(diffPair({x}), diffPair({y}, 0.0~)); fwd_diff(bwd_diff({o}.at))({p}, diffPair(r, 0.5~)); r = tanh({p}.d.d); }}"])

    def held_body(self, name, kind, made, frozen):
        """The function that makes objects and lambdas which hold the model `m`, and uses them."""
        first = self.pick(["m.at(t) * x + y", "sin(t * y) * m.at(x)", "m.at(m.at(t)) * y", "m.slope(t) * x"])
        second = self.pick(["h.at(t) + x", "h.at(x) * t * t", "n_again(h, t, 1)", "tanh(t) * n_any(h, t)"])
        lines = [("y", "@ y = 0.5~ + sin(x);"), ("h", f"n_H h = {made};"), ("o", "n_F o = { y, m };"), ("u", f"let u = (@ t) => {first};"),
                 ("v", f"let v = (@ t) => {second};"), ("s", "n_C s = { m, y };"), ("r", "@ r = 0.2~;")]
        if kind == "value":
            lines.insert(0, ("m", "n_N m = { a[0], { a[1], a[2], a[3] }, 3 };"))
        objects, functions = ["m", "h", "h"] + ["s"] * 3 * frozen, ["o", "u", "v"]
        for _ in range(self.rng.randint(2, 4)):
            lines.append(("", self.held_use(objects, functions)))
            if kind != "value" and self.chance(0.2):
                lines.append(("", "m.put(sin(r));"))
        lines.append(("", "return r;"))
        known = {word for word, _ in lines}
        nodes = [Node(text, declares=(word,) if word else (), uses=tuple(known & set(re.findall(r"\w+", text)) - {word})) for word, text in lines]
        param = Param("in", ("arr", REAL, 4), "a") if kind == "value" else Param("in", ("other", "n_N"), "m", True)
        return Function(name, REAL, [param, *reals("x"), *whole("k")], nodes, ["[Differentiable]"])

    def held_object(self):
        n, kind, frozen = self.fresh("n"), self.pick(list(KINDS)), self.may_freeze and self.chance(0.6)
        rename = lambda text: text.replace("n_", f"{n}_")
        (plain, reference), (types, made) = self.held_model(kind), self.held_types()
        before, after = self.held_calls(), types
        model = Text(rename(before + plain + after), (f"{n}_N",), reference=rename(before + reference + after))
        function = self.held_body(f"{n}_w" if kind != "value" else n, kind, made, frozen)
        for param in function.params:
            param.type = tuple(rename(part) if isinstance(part, str) else part for part in param.type)
        for node in function.body:
            node.text = rename(node.text)
        self.items += [model, function]
        self.order += 1
        if frozen:
            self.freeze()
        if kind == "value":
            self.add_callable(Callable(n, function.params, REAL, 60, again=not frozen, degree=2, order=3))
        else:
            over = KINDS[kind][4]
            self.memory_wrapper(n, f"{n}_N", lambda memory: rename(over).replace("$", memory))
