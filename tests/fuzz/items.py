"""Random loops over items, of which several rounds may be done at once: they read and write buffers by their counter, with strides and
offsets, go different ways, have loops inside, add up in order, leave early, and are given one buffer under two names.

What such a program writes is the same whatever the number of lanes, and through C, to the last bit; but for sums of derivatives, which go to a buffer of
their own (LOOSE). Arithmetic alone is that exact: elementary functions of vectors are others, so that programs with some are interpreted.
Machine code may choose either of two zeros in `min` and `max`, and the order of the sums in a derivative (is_near).
"""
import math
import random
import re
import struct

import nests
from tree import BOOL, INDEX, INT, REAL, VOID, Function, Node, Param, Program, Text, Writer

SIZE = 96       # of all buffers: indices run out of them, now and then
LOOSE = nests.LOOSE
BUFFERS = {"fa": "float", "fb": "float", "ia": "int", "ua": "uint", "da": "double", "ha": "half", "la": "int64_t", "pa": "Part", "va": "Five", "vb": "Five",
           LOOSE: "double"}
FORMATS = {"float": "f", "int": "i", "uint": "I", "double": "d", "half": "e", "int64_t": "q", "Part": "fifffxxxxd", "Five": "fffff"}  # in memory

HEAD = """struct Part { float x; int n; float3 v; double w; }
struct Five { float a; float2 b; float c[2]; }
""" + "".join(f"RWStructuredBuffer<{kind}> {name};\n" for name, kind in BUFFERS.items()) + """RWByteAddressBuffer bytes;
static float table[32];
static const float weights[5] = { 0.5, -1.25, 2, 0.75, -0.375 };
static uint state = 1;
float draw() { state = state * 1664525u + 1013904223u; return float((state >> 8) % 4096u) / 1024.0 - 2.0; }
[noinline] float slow(float x, int n) { for (int k = 0; k < n; k++) x = x > 1 ? x * 0.5 : x * x - 0.75; return x; }
float quick(float x, float y) { if (x > y) return x - y * 0.5; return x * y + 0.25; }
groupshared Five held[4];
static Five own;
[noinline] float given(Five f, int k) { held[k & 3].c[k & 1] = f.a * 0.5; held[1].a += 1; own.b.x = k; return f.a - f.c[k & 1] + f.b.x; }
float lent(Five f, inout Five g, int k) { g.a = 2; g.c[k & 1] -= f.c[1]; held[k & 3].b.y = 0.25; return f.a - g.a + f.c[k & 1] * f.b.y; }
float deep(float x, int n) { return n <= 0 ? x : deep(x * 0.5 + 1, n - 1) - x; }
[Differentiable] float curve(float x, float y) { float s = x; for (int k = 0; k < 3; k++) s = s > 0 ? s * y - x : s * s * 0.5 + y; return s; }
void fill() {
    for (int i = 0; i < SIZE; i++) {
        fa[i] = draw(); fb[i] = draw(); ia[i] = int(draw() * 20); ua[i] = uint((i * 37) % 61); da[i] = draw(); ha[i] = half(draw());
        la[i] = int64_t(draw() * 1000); pa[i].x = draw(); pa[i].n = int(draw() * 5); pa[i].v = float3(draw(), draw(), draw()); pa[i].w = draw();
        bytes.Store<float>(4 * i, draw());
        va[i] = { draw(), float2(draw(), draw()), { draw(), draw() } };
        vb[i] = { draw(), float2(draw(), draw()), { draw(), draw() } };
    }
    for (int i = 0; i < 32; i++) table[i] = draw();
}
""".replace("SIZE", str(SIZE))
SIZES = {name: (SIZE * struct.calcsize(FORMATS[kind]), SIZE) for name, kind in BUFFERS.items()} | {"bytes": (4 * SIZE, 4 * SIZE)}  # bytes, elements
MEMORY = dict.fromkeys([*BUFFERS, "bytes"], SIZE)
NAMES = ("slow", "quick", "deep", "curve", "fill", "table", "weights", "bytes", *BUFFERS)
ROW_PARAMS = [Param("in", ("other", "RWStructuredBuffer<Five>"), name) for name in ("one", "two")] + [Param("in", INT, "n"), Param("in", REAL, "x")]
ROW_PARTS = ["a", "b.x", "b.y", "c[0]", "c[1]"]
PARAMS = [Param("in", ("other", "RWStructuredBuffer<float>"), "one"), Param("in", ("other", "RWStructuredBuffer<float>"), "two"), Param("in", INT, "n"),
          Param("in", INT, "k"), Param("in", REAL, "x")]
# What is read and written: memory, a place in it, its value as float or int
PLACES = [("one", "one[$]", "$"), ("one", "one[$]", "$"), ("two", "two[$]", "$"), ("two", "two[$]", "$"), ("da", "da[$]", "float($)"), ("ha", "ha[$]", "float($)"), ("pa", "pa[$].x", "$"),
          ("pa", "pa[$].v.y", "$"), ("pa", "pa[$].v[$ & 1]", "$"), ("pa", "pa[$].w", "float($)"), ("table", "table[$ & 31]", "$"), ("table", "table[$]", "$")]
WHOLE_PLACES = [("ia", "ia[$]", "$"), ("ia", "ia[$]", "$"), ("ua", "ua[$]", "int($)"), ("la", "la[$]", "int($)"), ("pa", "pa[$].n", "$")]
MEMORIES = ["one", "two", "da", "ha", "pa", "ia", "la"]
SMOOTH = ["sin($)", "exp(-abs($))", "cos($)", "tanh($)", "log(1.5~ + abs($))", "atan2($, 1.5~)", "pow(abs($), 0.5~)"]


class Items:
    """Makes one program."""
    def __init__(self, seed):
        self.rng, self.seed = random.Random(seed), seed
        self.names, self.features = 0, set()
        self.is_smooth = self.rng.random() < 0.15   # it has elementary functions

    def pick(self, *items):
        return self.rng.choice(items)

    def chance(self, p):
        return self.rng.random() < p

    def fresh(self, prefix):
        self.names += 1
        return f"{prefix}{self.names}"

    # ---- values

    def index(self, memory=None):
        """Of a buffer: mostly where no other round is. A tidy loop has one place for each round in what it writes."""
        if memory in self.own:
            return self.own[memory]
        i = self.pick(*self.counters)
        c, s = self.rng.randint(0, 9), self.pick(2, 3, 4)
        plain = [i] * 4 + [f"{i} + {c}", f"{s} * {i}", f"{s} * {i} + {c % s}", f"{i} - {c}", f"n - 1 - {i}", f"{i} * k + {c}", f"({i} << 1) + k"]
        odd = [f"{i} / 2", f"{i} & 7", f"{i} ^ 1", f"ua[{i}]", f"ia[{i}] & 31", f"{i} * 536870912", f"{i} % 5", "k", f"{c}", f"int(uint8_t({i} * 50))",
               f"{i} * {i}", f"{i} >> 1", f"int({i} + 4294967290u)", f"max({i}, 5)", f"{i} + int(fa[{i}])"]
        if memory == "own":
            return Node(f"({self.pick(*plain[:-2])})", type=INDEX, uses=(i,))
        text = self.pick(*odd) if self.chance(0.2) else self.pick(*plain)
        if self.inner and self.chance(0.5):
            j = self.pick(*self.inner)
            text = self.pick(f"{i} * 4 + {j}", f"{i} + {j}", f"{j}", f"{i} * 2 + ({j} & 1)", f"{j} * 8 + {i}", f"({text}) + {j}")
        return Node(f"({text})", type=INDEX, uses=tuple(name for name in (*self.counters, *self.inner) if name in text))

    def choose_own(self):
        """Places of what a tidy loop writes: of some buffers, the others are only read."""
        self.own, self.is_tidy = {}, self.chance(0.75)
        if self.is_tidy:
            for memory in self.rng.sample(MEMORIES, self.rng.randint(2, 4)):
                self.own[memory] = self.index("own")

    def real(self, depth=2):
        roll = self.rng.random()
        if depth <= 0 or roll < 0.25:
            return self.leaf()
        one = lambda: self.real(depth - 1)
        if self.is_smooth and roll < 0.4:
            return Node(self.pick(*SMOOTH), [one()], REAL)
        if roll < 0.75:
            form = self.pick("($ + $)", "($ - $)", "($ * $)", "($ * $)", "($ / $)", "min($, $)", "max($, $)", "quick($, $)", "fmod($, 0.75~ + abs($))")
            return Node(form, [one(), one()], REAL)
        if roll < 0.85:
            return Node(self.pick("abs($)", "(-$)", "sqrt(abs($))", "floor($)", "float(half($))", "float(double($) * 1.1l)", "saturate($)", "frac($)", "sign($)",
                                  "float(int($))", "float(uint($))", "float(int64_t($))", "float(uint8_t(int($)))", "(1.0~ / $)"), [one()], REAL)
        if roll < 0.92:
            return Node("($ ? $ : $)", [self.test(), one(), one()], REAL)
        if roll < 0.97:
            return Node(self.pick("float($)", "float(uint($))", "float(int16_t($))"), [self.integer(depth - 1)], REAL)
        if roll < 0.99:
            return Node(self.pick("slow($, $ & 7)", "deep($, $ & 3)"), [one(), self.integer(0)], REAL)
        return Node(self.pick("given(held[$ & 3], $)", "given(own, $ + 0 * $)", "lent(held[$ & 3], held[1], $)", "lent(held[2], own, $ + $)", "lent(own, held[$ & 3], $)"),
                    [self.integer(0), self.integer(0)], REAL)

    def leaf(self):
        roll = self.rng.random()
        if roll < 0.45:
            return self.place(True)
        if roll < 0.7 and self.locals:
            name = self.pick(*self.locals)
            return Node(name, type=REAL, uses=(name,))
        if roll < 0.8:
            i = self.pick(*self.counters)
            return Node(f"float({i})", type=REAL, uses=(i,))
        if roll < 0.88:
            return Node("x", type=REAL)
        return Node(self.pick("0.5~", "(-1.5~)", "3.0~", "0.0~", "1e-3~", "weights[2]"), type=REAL)

    def place(self, is_read, kind=REAL):
        """Where a number is read, or written."""
        forms = WHOLE_PLACES if kind == INT else PLACES
        if not is_read:
            forms = [form for form in forms if form[0] in self.own or not self.is_tidy and form[0] != "table"] or [("fa", "fa[$]", "$") if kind == REAL else ("ia", "ia[$]", "$")]
        memory, text, value = self.pick(*forms)
        node = Node(value.replace("$", text) if is_read else text, [self.index(memory) for _ in range(text.count("$"))], kind)
        node.place = not is_read
        return node

    def integer(self, depth=1):
        roll = self.rng.random()
        if depth <= 0 or roll < 0.4:
            choices = [*self.counters, *self.inner, *self.whole]
            name = self.pick(*choices)
            return Node(f"int({name})", type=INT, uses=(name,)) if self.chance(0.7) else Node(self.pick("k", "n", "3", "(-1)", "1000000007"), type=INT)
        if roll < 0.6:
            return self.place(True, INT)
        if roll < 0.7:
            return Node("int($)", [self.real(depth - 1)], INT)
        return Node(self.pick("($ + $)", "($ - $)", "($ * $)", "($ / $)", "($ % $)", "($ & $)", "($ ^ $)", "($ << ($ & 7))", "($ >> ($ & 7))", "min($, $)",
                              "int(int64_t($) * $ >> 5)", "int(uint8_t($) + $)", "int(uint($) / uint($))"),
                    [self.integer(depth - 1), self.integer(depth - 1)], INT)

    def test(self):
        if self.chance(0.6):
            return Node(self.pick("($ < $)", "($ > $)", "($ >= $)", "($ != $)", "!($ <= $)"), [self.real(1), self.real(1)], BOOL)
        return Node(self.pick("(($ & 3) == 1)", "($ % 3 != 0)", "($ > 4)", "(($ ^ k) & 1) != 0"), [self.integer(1)], BOOL)

    # ---- statements

    def block(self, count):
        kept = list(self.locals), list(self.whole)
        out = [node for _ in range(count) for node in self.statement()]
        self.locals, self.whole = kept
        return out

    def statement(self):
        table = [(4, self.declare), (1, self.declare_integer), (8, self.store), (3, self.update), (2, self.store_integer), (3, self.carry), (1.5, self.carry_integer),
                 (3, self.branch), (2.5, self.inner_loop), (1.5, self.inner_while), (0.7, self.skip), (0.12, self.leave), (1, self.atomic), (1, self.derivative),
                 (0.7, self.array), (0.7, self.whole_part), (0.3, self.switch), (0.5, self.store_bytes)]
        if self.depth > 2:
            table = table[:7]
        if self.is_tidy:
            table = [row for row in table if row[1] not in (self.atomic, self.whole_part, self.store_bytes) or self.chance(0.2)]
        return self.rng.choices([make for _, make in table], [weight for weight, _ in table])[0]()

    def declare(self):
        value, name = self.real(3), self.fresh("v")
        self.locals.append(name)
        return [Node(f"float {name} = $;", [value], declares=(name,))]

    def declare_integer(self):
        value, name = self.integer(2), self.fresh("m")
        self.whole.append(name)
        return [Node(f"int {name} = $;", [value], declares=(name,))]

    def store(self):
        place = self.place(False)
        kind = "half($)" if place.text.startswith("ha") else "$"
        return [Node(f"$ = {kind};", [place, self.real(3)])]

    def update(self):
        return [Node(self.pick("$ += $;", "$ -= $;", "$ *= $;"), [self.real_place(), self.real(2)])]

    def real_place(self):
        place = self.place(False)
        return place if place.text != "ha[$]" else Node("fb[$]", [self.index("two")], REAL)

    def store_integer(self):
        place = self.place(False, INT)
        cast = {"ua": "uint($)", "la": "int64_t($)"}.get(place.text[:2], "$")
        return [Node(f"$ {self.pick('=', '+=', '^=')} {cast};", [place, self.integer(2)])]

    def carry(self):
        if not self.carried:
            return self.store()
        name = self.pick(*self.carried)
        form = self.pick(f"{name} += $;", f"{name} += $;", f"{name} += $;", f"{name} = max({name}, $);", f"{name} = $;", f"{name} -= $ * 0.5~;", f"{name} = {name} * 0.5~ + $;",
                         f"if ($ > {name}) {name} = 0.25~;")
        return [Node(form, [self.real(2)], uses=(name,))]

    def carry_integer(self):
        if not self.counted:
            return self.store_integer()
        name = self.pick(*self.counted)
        form = self.pick(f"{name} += $;", f"{name} += $;", f"{name}++;", f"{name} = {name} * 31 + $;", f"{name} ^= $;", f"{name} = $;", f"{name} = min({name}, $);")
        return [Node(form, [self.integer(1)] if "$" in form else [], uses=(name,))]

    def branch(self):
        self.depth += 1
        form, test = self.pick("if ($) #", "if ($) # else #"), self.test()
        parts = [test, *(self.block(self.rng.randint(1, 2)) for _ in range(form.count("#")))]
        self.depth -= 1
        return [Node(form, parts)]

    def switch(self):
        self.depth += 1
        parts = [self.integer(1)] + [self.block(1) for _ in range(3)]
        self.depth -= 1
        return [Node("switch ($ & 3) { case 0: # break; case 2: # default: # break; }", parts)]

    def inner_loop(self):
        j = self.fresh("j")
        head = self.pick(f"for (int {j} = 0; {j} < {self.rng.randint(2, 5)}; {j}++)", f"for (int {j} = 0; {j} < ($ & 7); {j}++)", f"for (int {j} = 3; {j} >= 0; {j}--)",
                         f"for (uint {j} = 0; {j} < k; {j}++)")
        bound = [self.integer(1)] if "$" in head else []
        self.depth += 1
        self.inner.append(j)
        body = self.block(self.rng.randint(1, 3))
        if self.chance(0.3):
            body.append(Node(f"if ($) {self.pick('break', 'continue')};", [self.test()], uses=(j,)))
        self.inner.pop()
        self.depth -= 1
        return [Node(f"{head} #", [*bound, body], binds=(j,))]

    def inner_while(self):
        v, c = self.fresh("v"), self.fresh("m")
        self.depth += 1
        self.locals.append(v)
        body = self.block(1) + [Node(f"{v} = {v} * 0.5~ - 0.125~;", uses=(v,)), Node(f"if ({c} == 3) break;", uses=(v,))]
        self.locals.remove(v)
        self.depth -= 1
        return [Node(f"{{ int {c} = 0; float {v} = $; while ({v} > $ && {c}++ < 12) # $ += {v}; }}", [self.real(2), self.real(0), body, self.real_place()], binds=(v,))]

    def skip(self):
        return [Node("if ($) #", [self.test(), [Node("continue;")]])] if not self.inner else self.store()

    def leave(self):
        return [Node("if ($ > 90) #", [self.integer(1), [Node("break;")]])]

    def atomic(self):
        if self.chance(0.25):
            was = self.fresh("m")
            return [Node(f"{{ int {was}; InterlockedAdd(ia[$ & 15], $, {was}); ia[$] ^= {was}; }}", [self.index(), self.integer(1), self.index()])]
        return [Node(self.pick("InterlockedAdd(ia[$ & 15], $);", "InterlockedMax(ia[$ & 15], $);", "InterlockedXor(ia[$], $);", "InterlockedExchange(ia[$], $);"),
                     [self.index("ia"), self.integer(1)])]

    def derivative(self):
        p, q = self.fresh("p"), self.fresh("p")
        if self.chance(0.3):
            return [Node("$ = fwd_diff(curve)(diffPair($, 1.0~), diffPair($, x)).d;", [self.real_place(), self.real(1), self.real(1)])]
        return [Node(f"{{ var {p} = diffPair($); var {q} = diffPair($); bwd_diff(curve)({p}, {q}, $); $ = {p}.d; $ += {q}.d; }}",
                     [self.real(1), self.real(1), self.real(0), self.real_place(), self.real_place()])]

    def array(self):
        a, m = self.fresh("a"), self.integer
        return [Node(f"{{ float {a}[4] = {{ $, $, x, 1 }}; {a}[$ & 3] += $; {a}[$ ^ k] = {a}[1]; $ = {a}[$ & 3] - {a}[0]; }}",
                     [self.real(1), self.real(1), m(1), self.real(1), self.integer(0), self.real_place(), m(0)])]

    def whole_part(self):
        p = self.fresh("q")
        return [Node(f"{{ Part {p} = pa[$]; {p}.v *= $; {p}.n += $; {p}.w -= {p}.x; pa[$] = {p}; }}", [self.index("pa"), self.real(1), self.integer(0), self.index("pa")])]

    def store_bytes(self):
        return [Node(self.pick("bytes.Store<float>(4 * $, $);", "bytes.Store<float>(8 * $ + 4, $);", "bytes.Store<float>($, $);"), [self.index(), self.real(2)])]

    # ---- functions

    def head(self):
        """Of the loop: how it counts."""
        i, j = self.fresh("i"), self.fresh("i")
        start = self.pick("0", "0", "0", "1", "k")
        forms = [(10, f"for (int {i} = {start}; {i} < n; {i}++)", (i,)), (2, f"for (int {i} = {start}; {i} < n; {i} += 2)", (i,)), (2, f"for (int {i} = n - 1; {i} >= 0; {i}--)", (i,)),
                 (2, f"for (uint {i} = {start}; {i} < uint(n); {i}++)", (i,)), (1, f"for (int64_t {i} = 0; {i} < n; {i}++)", (i,)), (1, f"for (int {i} = 1; {i} <= n; {i}++)", (i,)),
                 (1, f"for (int {i} = 0; {i} != n; {i}++)", (i,)), (2, f"for (int {i} = 0, {j} = n; {i} < n; {i}++, {j} -= 2)", (i, j)), (0.7, f"for (uint8_t {i} = 0; {i} < n; {i}++)", (i,)),
                 (0.7, f"for (int {i} = -5; {i} < n; {i} += 3)", (i,)), (0.7, f"for (uint {i} = 4294967290u; {i} != uint(n); {i}++)", (i,)), (0.7, f"for (int {i} = 0; {i} < n; {i} += k)", (i,))]
        _, text, self.counters = self.rng.choices(forms, [form[0] for form in forms])[0]
        return text

    def loop(self):
        """A function with one loop, and sums that it carries."""
        self.locals, self.whole, self.inner, self.depth = [], [], [], 0
        self.carried = [self.fresh("c") for _ in range(self.rng.randint(0, 2))]
        self.counted = [self.fresh("h") for _ in range(self.rng.randint(0, 1))]
        head = self.head()
        self.choose_own()
        body = self.block(self.rng.randint(2, 5))
        begin = [Node(f"float {name} = x;", declares=(name,)) for name in self.carried] + [Node(f"int {name} = k;", declares=(name,)) for name in self.counted]
        end = [Node(f"fa[0] += {name};", uses=(name,)) for name in self.carried] + [Node(f"ia[1] ^= {name};", uses=(name,)) for name in self.counted]
        return begin + [Node(f"{head} #", [body], binds=self.counters)] + end

    def row_value(self, depth):
        if depth <= 0 or self.chance(0.2):
            return self.pick(*(f"{name}.{part}" for name in self.items for part in ROW_PARTS), "x", "0.75", "fa[i]")
        return self.pick("({} + {})", "({} - {})", "({} * {})", "min({}, {})", "({} / (1 + {} * {}))".replace("{} * {}", "abs({})")).format(
            self.row_value(depth - 1), self.row_value(depth - 1))

    def rows(self):
        """A function with a loop over structs, which writes whole ones, or a part, often where it has read."""
        self.items = self.rng.sample(["p", "q"], self.rng.randint(1, 2))
        lines = [f"Five {name} = {memory}[i];" for name, memory in (("p", "one"), ("q", "two")) if name in self.items]
        to, values = self.pick("one", "two"), [self.row_value(2) for _ in ROW_PARTS]
        if self.chance(0.5):
            lines.append(f"{to}[i] = {{ {values[0]}, float2({values[1]}, {values[2]}), {{ {values[3]}, {values[4]} }} }};")
        else:
            parts = self.rng.sample(list(zip(ROW_PARTS, values)), self.pick(5, 5, 2))
            lines += [f"{to}[i].{part} = {value};" for part, value in parts]
        if self.chance(0.3):
            lines.insert(self.rng.randint(0, len(lines)), f"{self.pick('fb[i]', 'fb[i]', 'va[i].a')} = {to}[i].{self.pick(*ROW_PARTS)};")
        return [Node("for (int i = 0; i < n; i++) #", [[Node(line) for line in lines]])]

    def loss(self):
        """A differentiable sum over items, in double: its derivatives are added up in any order."""
        forms = ["y = y > 0 ? y * a - fa[i] : y * y * 0.25 + b;", "if (y > 1) y = y * b; else s += y * a * a;", "for (int j = 0; j < (ia[i] & 3); j++) y = y * 0.5 + a * b;",
                 "t[i & 3] += y * b;", "y = min(y, b * fb[i]);", "if (i % 3 == 1) continue;", "s = s * 0.75 + y;", "s += y / (1 + a * a);", "y = y * t[(i + 1) & 3];"]
        chosen = "\n        ".join(self.pick(*forms) for _ in range(self.rng.randint(1, 4)))
        return f"""[Differentiable] double NAME(no_diff int n, double a, double b) {{
    double s = 0;
    double t[4] = {{ a, b, 1, 0.5 }};
    for (int i = 0; i < n; i++) {{
        double y = a * no_diff fa[i] + b;
        {chosen}
        s += y;
    }}
    return s + t[0] * 0.125;
}}
void NAME_grad(int n, int at) {{
    var a = diffPair(0.75l); var b = diffPair(-0.5l);
    bwd_diff(NAME)(n, a, b, 1.0l);
    sums[at] = a.d; sums[at + 1] = b.d; da[at] = NAME(n, 0.75l, -0.5l);
}}
"""

    def program(self):
        items, calls = [Text(HEAD, NAMES)], [Node("fill();", uses=("fill",))]
        for k in range(self.rng.randint(2, 4)):
            name, body = f"loop{k}", self.loop()
            items.append(Function(name, VOID, PARAMS, body, self.pick(["[noinline]"], [])))
            for _ in range(self.pick(1, 1, 2)):
                one, two = self.pick(("fa", "fb"), ("fa", "fb"), ("fb", "fa"), ("fa", "fa"))
                given = [one, two, self.pick("1", "3", "16", "17", "29", "40", "40", "64"), self.pick("1", "2", "3"), self.pick("0.5", "-1.25", "0.0")]
                calls.append(Node(f"{name}($, $, $, $, $);", [Node(text) for text in given], uses=(name,), call=name))
        if self.chance(0.5):
            items.append(Function("rows", VOID, ROW_PARAMS, self.rows(), self.pick(["[noinline]"], [])))
            for _ in range(self.pick(1, 2)):
                given = [*self.pick(("va", "vb"), ("vb", "va"), ("va", "va")), self.pick("17", "64", "96", "99"), self.pick("0.5", "-1.25")]
                calls.append(Node("rows($, $, $, $);", [Node(text) for text in given], uses=("rows",), call="rows"))
        if self.chance(0.35):
            items.append(Text(self.loss().replace("NAME", "loss"), ("loss",)))
            calls.append(Node(f"loss_grad({self.pick(5, 40, 61)}, 3);", uses=("loss",)))
        if self.chance(0.4):
            text, more = nests.Nests(self.seed).program()
            items.append(Text(text, ("nest0",)))
            calls += [Node(call, uses=("nest0",)) for call in more]
        items.append(Function("main", VOID, [], calls, ()))
        return Program(self.seed, items, {}, False, True)


def program_text(program):
    return Writer("float").program(program)


def is_exact(text):
    """Machine code gives the same to the last bit: there are no elementary functions."""
    return not re.search(r"\b(sin|exp|cos|tanh|log|atan2|pow)\(", text)


def as_printed(one, memory):
    """The numbers of the buffers, as they lie in memory one after the other: as those of `one` are printed where they are the same."""
    one, several, offset = one.split(), [], 0
    for kind in "".join(SIZE * FORMATS[name] for name in (*BUFFERS.values(), "uint")):
        if kind != "x":
            found, text = memory[offset:offset + struct.calcsize(kind)], one[len(several)]
            value = struct.unpack(kind, found)[0]
            wanted = float(text) if kind in "fde" else int(text)
            is_same = struct.pack(kind, wanted) == found or value != value and wanted != wanted
            several.append(text if is_same else repr(value))
        offset += struct.calcsize(kind)
    return " ".join(several)


def is_near(one, several, rounding):
    """These numbers, as they are printed: none is whole."""
    if one.lstrip("-").isdigit() or several.lstrip("-").isdigit():
        return False
    one, several = float(one), float(several)
    return one == several or math.isinf(one) and math.isinf(several) or math.isclose(one, several, rel_tol=rounding)


def difference(one, several, is_code=False, text=""):
    """None, or what differs first: numbers of a program, buffer by buffer. Where they are those of machine code, the signs of zeros and of
    what was divided by them do not count, nor does the last digit if there are derivatives."""
    one, several = one.replace("-nan", "nan").split(), several.replace("-nan", "nan").split()
    if len(one) != len(several):
        return f"{len(several)} numbers instead of {len(one)}"
    loose = range(len(one) - 2 * SIZE, len(one) - SIZE)     # sums: the last but one
    rounding = 1e-5 if "_diff(" in text else 0
    wrong = [i for i, (a, b) in enumerate(zip(one, several)) if a != b
             and not (i in loose and math.isclose(float(a), float(b), rel_tol=1e-9, abs_tol=1e-9))
             and not (is_code and is_near(a, b, rounding))]
    return f"number {wrong[0]} of {len(one)}: {several[wrong[0]]} instead of {one[wrong[0]]}, {len(wrong)} differ" if wrong else None
