"""Random gradients over grids: filters, scans, nests of loops over tensors, buffers and views that begin anywhere, have any strides, zero and negative ones
among them, lie in one another, or are one tensor under two names; kernels with a thread for each element, whose groups lanes do not divide.

A program has a function `at` of an element, and `all`, which adds its results up, or stores them in a grid: in one of its own, or, where rounds wait for
each other, in the grid that it reads. `main` computes the gradient of `all`, its forward derivative and, mostly, its second derivatives, and compares these
with differences; the kernel `grid` computes the same gradient. Nothing is chosen by numbers that have a derivative, so that all of it is smooth.
They are text: what fails is small already.
"""
import math
import random
import struct

SIZE = 1536     # of all buffers
BUFFERS = ("base", "seeds", "ways", "data", "ddata", "tdata", "tddata", "outs", "douts", "touts", "tdouts", "grads", "second")
FOUND = 16      # numbers that `main` finds
PRINTED = ("grads", "second", "found")
MEMORY = {**dict.fromkeys(BUFFERS, SIZE), "found": FOUND, "flags": 64}
KINDS = ("int", "int", "int", "int", "uint", "int64_t", "uint64_t", "int16_t", "uint8_t", "int8_t")
LENGTHS = (1, 2, 3, 8, 15, 15, 16, 17, 17, 20, 33, 33)
# What is run: an entry point, and how many groups.
SERIAL = [("both", "1")]
KERNEL = [("prepare", "1"), ("one", "1"), ("finish", "1")]      # what the kernel does, in loops
# Numbers that `main` finds which must be the same; the first is of differences, the last of others, which say whether they settle.
FAULTS = ((2, 1, "forward mode", 6), (1, 3, "backward mode", 1), (4, 5, "second derivative", 7))

HEAD = f"""RWStructuredBuffer<T> {', '.join(BUFFERS)}, found;
RWStructuredBuffer<int> flags;
"""

MAIN = """
[noinline] void begin(T by) {
    for (int i = 0; i < SIZE; i++) {
        data[i] = base[i] + by * ways[i]; outs[i] = base[i] * 0.5; douts[i] = 0; touts[i] = 0; tdouts[i] = 0; ddata[i] = 0; tdata[i] = ways[i]; tddata[i] = 0;
        OUT_SEED[i] = seeds[i];
    }
}
[noinline] T total(T by) {
    begin(by);
    T sum = all(GIVEN) * 0.5;
    if (STORES) for (int i = 0; i < SIZE; i++) sum += seeds[i] * OUT[i];
    return sum;
}
[noinline] void gradient(T by) { begin(by); bwd_diff(all)(PAIRS, T(0.5)); }
void tangent() {
    begin(0);
    found[1] = fwd_diff(all)(TANGENTS).d * 0.5;
    if (STORES) for (int i = 0; i < SIZE; i++) found[1] += seeds[i] * TOUT[i];
}
void twice() {
    begin(0);
    fwd_diff(bwd_diff(all))(TWICE, diffPair(T(0.5)));
    for (int i = 0; i < SIZE; i++) second[i] = tddata[i];
}
void fill() {
    uint state = FIRSTu;
    for (int i = 0; i < 3 * SIZE; i++) {
        state = state * 1664525u + 1013904223u;
        T x = T((state >> 8) % 4096u) / 4096.0 - 0.375;
        if (i < SIZE) base[i] = x; else if (i < 2 * SIZE) seeds[i - SIZE] = x; else ways[i - 2 * SIZE] = x;
        if (i < 64) flags[i] = int((state >> 12) % 6u);
    }
    ODD
}
[shader("compute")] [numthreads(1, 1, 1)] void prepare() { fill(); begin(0); }
[shader("compute")] [numthreads(1, 1, 1)] void finish() { for (int i = 0; i < SIZE; i++) grads[i] = ddata[i]; }
[shader("compute")] [numthreads(1, 1, 1)] void both() {
    fill();
    T e = 1.0 / 256;
    found[0] = total(0);
    found[2] = (8 * (total(e) - total(-e)) - (total(2 * e) - total(-2 * e))) / (12 * e);
    found[6] = (total(e) - total(-e)) / (2 * e);
    tangent();
    gradient(0);
    for (int i = 0; i < SIZE; i++) { grads[i] = ddata[i]; found[3] += ddata[i] * ways[i]; }
    SECOND
}
void main() { both(); }
"""

SECOND = """for (int k = -2; k <= 2; k++) {
        if (k == 0) continue;
        gradient(k * e);
        T by = k == 1 ? 8 : k == -1 ? -8 : k == 2 ? -1 : 1;
        for (int i = 0; i < SIZE; i++) second[i] += by * ddata[i];
    }
    for (int i = 0; i < SIZE; i++) found[4] += (i % 13 - 5) * second[i] / (12 * e);
    gradient(e);
    for (int i = 0; i < SIZE; i++) found[7] += (i % 13 - 5) * ddata[i] / (2 * e);
    gradient(-e);
    for (int i = 0; i < SIZE; i++) found[7] -= (i % 13 - 5) * ddata[i] / (2 * e);
    twice();
    for (int i = 0; i < SIZE; i++) found[5] += (i % 13 - 5) * second[i];"""


class Grid:
    """A parameter of the function: a tensor, buffer or view over `data`, or the grid of results over `outs`."""
    def __init__(self, name, kind, rank, memory, start=0, sizes=(), strides=()):
        self.name, self.kind, self.rank, self.memory = name, kind, rank, memory
        self.start, self.sizes, self.strides = start, sizes, strides

    @property
    def type(self):
        return {"tensor": f"DiffTensor<T, {self.rank}>", "buffer": "DiffBuffer<T>", "view": "DiffTensorView<T>"}[self.kind]

    def maker(self):
        """A function that makes it of a buffer."""
        sizes, strides = (f"{{ {', '.join(map(str, numbers))} }}" for numbers in (self.sizes, self.strides))
        if self.kind == "view":
            return f"TensorView<T> {self.name}_of(RWStructuredBuffer<T> all) {{ uint sizes[{self.rank}] = {sizes}; return TensorView<T>(all, sizes); }}\n"
        made = f"{self.type}(all)" if self.kind == "buffer" else f"{self.type}(all, {self.start}, {sizes}, {strides})"
        return f"{self.type} {self.name}_of(RWStructuredBuffer<T> all) {{ return {made}; }}\n"

    def of(self, before=""):
        return f"{self.name}_of({before}{self.memory})"

    def given(self):
        return f"{self.type}({self.of()}, {self.of()})" if self.kind == "view" else self.of()

    def pair(self, before, second=""):
        """With gradients, or with tangents; both, of second derivatives."""
        if self.kind == "view":
            more = f", {self.of('t')}, {self.of('td')}" if second else ""
            return f"{self.type}({self.of()}, {self.of(before)}{more})"
        pair = f"DifferentialPtrPair<{self.type}>"
        one = f"{pair}({self.of()}, {self.of(before)})"
        return f"DifferentialPtrPair<{pair}>({one}, {pair}({self.of('t')}, {self.of('td')}))" if second else one


class Grids:
    """Makes one program."""
    def __init__(self, seed):
        self.rng, self.seed = random.Random(seed), seed
        self.single, self.odd = self.chance(0.25), self.chance(0.08)
        self.mode = self.pick("sum", "sum", "sum", "map", "map", "scan")
        self.is_once = self.mode != "sum" and self.chance(0.3)
        self.uniforms = {}

    def pick(self, *items):
        return self.rng.choice(items)

    def chance(self, p):
        return self.rng.random() < p

    # ---- grids

    def number(self, value, often=0.6):
        """A constant, or what becomes known when the program runs."""
        if not self.chance(often):
            return str(value)
        name = self.pick(*(n for n, v in self.uniforms.items() if v == value)) if value in self.uniforms.values() and self.chance(0.5) else f"g{len(self.uniforms)}"
        self.uniforms[name] = value
        return name

    def strides(self, sizes):
        """Rows one behind the other, columns, backwards, in one another, or all the same."""
        rows = [math.prod(sizes[i + 1:]) for i in range(len(sizes))]
        way = self.pick("rows", "rows", "rows", "rows", "columns", "backwards", "apart", "same", "any")
        if way == "columns":
            rows = [math.prod(sizes[:i]) for i in range(len(sizes))]
        elif way == "backwards":
            rows = [row * self.pick(1, -1) for row in rows[:-1]] + [-1]
        elif way == "apart":
            rows = [row * self.pick(2, 3) for row in rows]
        elif way == "same":
            rows[self.rng.randrange(len(rows))] = 0
        elif way == "any":
            rows = [self.pick(0, 1, 2, 3, 7, -1, -2, 17) for _ in rows]
        return rows

    def grid(self, name, memory="data"):
        kind = self.pick("tensor", "tensor", "tensor", "tensor", "buffer", "view")
        rank = 1 if kind == "buffer" else self.pick(1, 2, 2, 2, 3)
        sizes = [self.pick(3, 5, 7) for _ in range(rank - 2)] + [self.height + 4, self.width + 4][-min(rank, 2):]
        strides = self.strides(sizes)
        if name == "out":
            strides = self.pick(strides, [math.prod(sizes[i + 1:]) for i in range(rank)])
        start = self.pick(0, 400, 700, 701, SIZE - 1) if min(strides) < 0 else self.pick(0, 0, 1, 3, 400, 600, SIZE - 40)
        return Grid(name, kind, rank, memory, self.number(start), [self.number(size, 0.3) for size in sizes], [self.number(stride) for stride in strides])

    def flat(self, index):
        """Of a buffer."""
        return self.pick(f"({index[0]}) * {self.number(self.width + self.pick(0, 4))} + {index[1]}", f"({index[0]}) * {self.pick(3, 16, 40)} + ({index[1]})", f"{index[1]}", f"({index[1]}) * {self.number(self.pick(1, 1, 2, 3))} + {index[0]}",
                         f"{self.number(self.pick(500, 1000))} - ({index[1]})")

    def place(self, grid, index):
        index = [self.pick("0", "1", "k", index[0]) for _ in range(grid.rank - 2)] + list(index[-min(grid.rank, 2):]) if grid.kind != "buffer" else [self.flat(index)]
        if grid.rank > 1 and self.chance(0.1):
            index.reverse()
        return index

    def element(self, grid, index):
        at = self.place(grid, index)
        listed = ", ".join(at) if grid.kind == "view" or len(at) == 1 else f"{{ {', '.join(at)} }}"
        listed = f"{{ {listed} }}" if grid.kind == "tensor" and len(at) == 1 else listed
        once = "Once" if self.mode == "scan" and self.chance(0.2) else ""
        forms = [f"{grid.name}.load{once}({listed})"]
        if grid.kind != "buffer":
            vector = "uint" if grid.kind == "view" else "int"
            forms += [f"{grid.name}[{', '.join(at)}]", f"{grid.name}[{vector}{len(at)}({', '.join(at)})]" if len(at) > 1 else f"{grid.name}[{at[0]}]"]
        return self.pick(*forms)

    # ---- a function of an element

    def shifted(self, of, counters, extent):
        """An index beside an element."""
        move = self.pick("", "", "", " + 1", " + 2", " - 1")
        by = f"int({self.pick(*counters)})" if counters else "1"
        step = self.pick("", "", "", "2 * ", f"{self.number(self.pick(1, 2, 3))} * ")
        forms = [f"{of} + {step}{by}{move}", f"{of} + {by}{move}", f"{step}{of} + {by}{move}", f"{of}{move}", f"{by}{move}", f"{extent} - 1 - {of}", f"{of} - {by}", f"({of} + {by}) % {extent}",
                 f"{of} / 2 + {by}", f"max({of} - {by}, 0)", f"min({of} + {by}, {extent} - 1)", f"clamp({of} + {by} - 1, 0, {extent} - 1)",
                 f"{of} + {by} / 3", f"{of} + {by} % 3"]
        return self.rng.choices(forms, [6, 6, 2, 3, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1])[0]

    def index(self, counters):
        return self.shifted("y", counters, "h"), self.shifted("x", counters, "w")

    def value(self, counters, depth=2):
        """Smooth, and not large."""
        if depth == 0 or self.chance(0.15):
            grid = self.pick(*self.grids, None)
            return self.element(grid, self.index(counters)) if grid else self.pick("s", "s", "T(0.25)", "t[1]", f"no_diff T(int({self.pick(*counters, 'x')}) % 3)")
        a, b = self.value(counters, depth - 1), self.value(counters, depth - 1)
        return self.pick(f"{a} * {b}", f"{a} * {b}", f"{a} * {b}", f"({a} + {b})", f"({a} - {b} * 0.5)", f"sin({a}) * {b}", f"{a} / (1 + {b} * {b})", f"tanh({a})", f"exp(-({a}) * ({a}))", f"pow({a}, {self.pick(2, 3, 4)})", f"({a}) / (1.5 + s * s)")

    def test(self, counters):
        i, j = f"int({self.pick(*counters, 'x')})", f"int({self.pick(*counters, 'y')})"
        return self.pick(f"{i} + x < w", f"x + {i} >= 1 && x + {i} < w - 1", f"(y + {j} >= 0 && y + {j} < h)", f"flags[({i} * 7 + {j}) & 63] > {self.pick(1, 3)}", f"{i} != {j}", f"{i} > {j}", f"(x + y) % {self.pick(2, 3)} == 0", f"y + {j} < h && x + {i} < w")

    def statement(self, counters):
        value = self.value(counters)
        i = f"int({self.pick(*counters, 'x')})"
        forms = [f"sum += {value};", f"sum = sum * 0.5 + {value};", f"t[{i} & 3] += {value};", f"t[({i} + 1) & 3] = t[{i} & 3] * 0.5 + {value};", f"if ({self.test(counters)}) sum += {value};",
                 f"if ({self.test(counters)}) sum += {value}; else t[2] += sum * 0.25;", f"sum += {self.test(counters)} ? {value} : T(0);", f"u = u * 0.25 + {value};", "sum += u * s;", "{ T v = t[0]; t[0] = t[3]; t[3] = v; sum += v * 0.5; }",
                 f"if ({self.test(counters)}) return sum + {value};", f"for (int m = 0; flags[(m * 5 + x + {i}) & 63] < {self.pick(4, 5)}; m++) {{ {self.pick('u', 'u', 'sum')} = u * 0.5 + s * {value}; if (m > {self.pick(3, 8)}) break; }}"]
        return self.rng.choices(forms, [12, 2, 1, 1, 3, 1, 1, 1, 1, 0.5, 0.5, 1])[0]

    def head(self, i, counters):
        kind, most = self.pick(*KINDS), self.pick(2, 3, 3, 4, 5)
        around = f"{kind}({self.pick(*counters)} & 3)" if counters else f"{kind}(x & 3)"
        high = self.pick(str(most), str(most), f"{kind}({self.number(most)})", f"{kind}(k)", around, f"{around} + 1", f"{kind}(clamp(w - x, 0, 4))")
        plain = f"for ({kind} {i} = {self.pick('0', '0', '0', '1', around)}; {i} {self.pick('<', '<', '<', '<=')} {high}; {i}{self.pick('++', '++', '++', ' += 2')})"
        signed = kind.startswith("int")
        return self.pick(plain, plain, plain, f"for ({kind} {i} = {high}; {i}-- > 0;)", f"for ({kind} {i} = {high}; {i} > 0; {i}--)",
                         f"for ({kind} {i} = {high}; {i} >= 0; {i}--)" if signed else plain, f"for (int {i} = -1; {i} <= 1; {i}++)", f"for (int {i} = 0; {i} != {most}; {i}++)", f"for (uint {i} = 4294967294u; {i} != 2; {i}++)",
                         f"for (int {i} = {most - 1}; {i} >= 0; {i} -= {self.pick(1, 2)})", f"for (int {i} = 0; {i} < {self.pick(6, 9, 9, 12)}; {i}++)",
                         f"for (int {i} = 0, {i}e = {self.pick(3, 6)}; {i} < {i}e; {i}++, {i}e{self.pick('--', ' -= 2')})", f"for (int {i} = 1; {i} < 9; {i} *= 2)", f"for (int {i} = {self.pick(6, 8)}; {i} > 0; {i} /= 2)",
                         f"for (int {i} = 0; {i} < {most}; {i} += k + 1)", f"for ({kind} {i} = 0; {i} + 1 < {kind}({most}); {i}++)", f"for (uint {i} = {self.pick(2, 4)}; {i} != {self.pick('4294967295u', '4294967293u')}; {i}--)",
                         f"for (int {i} = {self.pick(3, 4)}; {i} != {self.pick(-1, -2)}; {i}--)")

    def loop(self, depth, counters):
        i = f"i{len(counters)}"
        inside = [*counters, i]
        lines = [self.statement(inside) for _ in range(self.pick(0, 0, 1) if depth else self.pick(1, 1, 2))]
        if depth:
            lines.insert(self.rng.randint(0, len(lines)), self.loop(depth - 1, inside))
        if self.chance(0.15):
            lines.insert(self.rng.randint(0, len(lines)), f"if ({self.test(inside)}) {self.pick('continue', 'continue', 'break')};")
        inside = " {\n        " + "\n        ".join(lines) + "\n    }"
        if self.chance(0.06):
            return f"{{ int {i} = {self.pick('0', '0', 'k', '2')}; do{inside} while (++{i} < {self.pick('3', 'k', 'min(w - x, 3)')}); }}"
        return self.hint() + self.head(i, counters) + inside

    def hint(self):
        """What changes no number."""
        return self.pick("[MaxIters(3)] ", "[Checkpoint(2)] ", "[ForceUnroll] ", "[loop] ") if self.chance(0.08) else ""

    def at(self):
        lines = [self.loop(self.pick(0, 1, 1, 1, 2), []) for _ in range(self.pick(1, 1, 2))]
        if self.chance(0.3):
            lines.insert(self.pick(0, len(lines)), self.statement([]))
        if self.chance(0.15):
            lines.insert(0, f"if ({self.test([])}) return {self.value([], 1)};")
        mark = self.pick("", "", "", "[ForceInline] ", "[noinline] ", "[PreferRecompute] ", "[PreferCheckpoint] ")
        return f"{mark}[Differentiable] T at({self.params()}, int y, int x, T s) {{\n    T sum = 0, u = s;\n    T t[4] = {{ s, 1, 0.5, 0 }};\n    " + "\n    ".join(lines) + "\n    return sum * 0.5 + u * t[1] * 0.125;\n}\n"

    def params(self):
        return ", ".join(f"{grid.type} {grid.name}" for grid in self.grids + self.outs)

    def names(self):
        return ", ".join(grid.name for grid in self.grids + self.outs)

    # ---- all elements

    def rows(self, body):
        """Two loops, or one after the other, up or down; in a scan their order matters, and is what it is."""
        kind = self.pick("int", "int", "int", "uint", "int64_t")
        y = self.pick("for (int y = 0; y < h; y++)", "for (int y = 0; y < h; y++)", "for (int y = h - 1; y >= 0; y--)", "for (int y = 0; y < h; y += 2)")
        x = self.pick(f"for ({kind} x = 0; x < {kind}(w); x++)", f"for ({kind} x = 0; x < {kind}(w); x++)", "for (int x = w - 1; x >= 0; x--)", f"for (int x = 0; x < {self.width}; x++)", "for (int x = y; x < w; x++)", "for (int x = 0; x <= y; x++)")
        if self.chance(0.1):
            return f"for (int both = 0; both < h * w; both++) {{\n        int y = both / w, x = both % w;\n        {body}\n    }}"
        return f"{y} {x} {{\n        {body}\n    }}" if self.chance(0.85) else f"{x.replace('x = y', 'x = 0').replace('x <= y', 'x < w')} {y} {{\n        {body}\n    }}"

    def all(self):
        call = f"at({self.names()}, int(y), int(x), s)"
        if self.mode == "sum":
            body = self.pick(f"sum += {call};", f"sum += {call} * no_diff T((x + y) & 3);", f"if (flags[(x + 5 * y) & 63] > 2) sum += {call};")
        else:
            out, index = self.outs[0], (f"int(y){self.pick('', ' + 1')}", f"int(x){self.pick('', '', ' + 1', ' + 2', ' + 5')}")
            if self.mode == "map":
                index = ("int(y)", "int(x)")
            place = self.place(out, index)
            listed = ", ".join(place) if out.kind != "tensor" else f"{{ {', '.join(place)} }}"
            once = "Once" if self.is_once else ""
            body = f"{out.name}.store{once}({listed}, {call});"
            if out.kind != "buffer" and not once and self.chance(0.5):
                body = f"{out.name}[{', '.join(place)}] = {call};"
        mark = self.pick("", "", "[ForceInline] ", "[noinline] ")
        return f"{mark}[Differentiable] T all({self.params()}) {{\n    T sum = 0, s = 0.75;\n    {self.hint()}{self.rows(body)}\n    return sum;\n}}\n"

    def kernel(self):
        """Adds up the same gradient, a thread for each element, where `all` does nothing else."""
        group = self.pick((8, 1), (16, 1), (20, 1), (17, 3), (5, 2), (64, 1), (33, 1), (16, 4), (1, 1))
        pairs = ", ".join(grid.pair("d") for grid in self.grids + self.outs)
        border = self.pick("if (id.x < w && id.y < h)", "if (int(id.x) < w && int(id.y) < h)")
        self.groups = f"{-(-self.width // group[0])},{-(-self.height // group[1])}"
        body = f"{{ var s = diffPair(T(0.75)); bwd_diff(at)({pairs}, int(id.y), int(id.x), s, T(0.5)); }}"
        return f"[shader(\"compute\")] [numthreads({group[0]}, {group[1]}, 1)] void grid(uint3 id : SV_DispatchThreadID) {{\n    {border} {body}\n}}\n" \
               f"[shader(\"compute\")] [numthreads(1, 1, 1)] void one() {{ for (int y = 0; y < h; y++) for (int x = 0; x < w; x++) {body.replace('id.y', 'y').replace('id.x', 'x')} }}\n"

    # ---- the program

    def choose(self):
        self.height, self.width = self.pick(1, 2, 3, 5, 7), self.pick(*LENGTHS)
        self.grids = [self.grid(name) for name in ("a", "b", "c")[:self.pick(1, 2, 2, 3)]]
        self.outs = [] if self.mode == "sum" else [self.grid("out", "data" if self.mode == "scan" else "outs")]
        if self.chance(0.1) or self.mode == "scan" and self.chance(0.4):    # one under two names
            twin, other = self.pick(*self.grids), self.outs[0] if self.mode == "scan" else self.grids[-1]
            other.kind, other.rank, other.start, other.sizes, other.strides = twin.kind, twin.rank, twin.start, twin.sizes, twin.strides
        self.is_once &= not self.outs or self.outs[0].kind != "buffer"

    def main(self):
        everything, has_second = self.grids + self.outs, self.chance(0.7) and not self.odd
        out = "data" if self.mode == "scan" else "outs"
        odd = f"base[{self.rng.randrange(99)}] = {self.pick('0', '1', '-1')} / T(0); base[600] = T(0) / T(0);" if self.odd else ""
        text = MAIN.replace("OUT_SEED[i] = seeds[i];", "" if self.mode == "sum" else f"d{out}[i] = seeds[i];")
        words = {"SECOND": SECOND if has_second else "", "PAIRS": ", ".join(grid.pair("d") for grid in everything), "TANGENTS": ", ".join(grid.pair("t") for grid in everything),
                 "GIVEN": ", ".join(grid.given() for grid in everything), "TWICE": ", ".join(grid.pair("d", "twice") for grid in everything),
                 "STORES": "false" if self.mode == "sum" else "true", "ODD": odd, "FIRST": str(self.seed % 99991), "TOUT": f"t{out}", "OUT": out, "SIZE": str(SIZE)}
        for word, meaning in words.items():
            text = text.replace(word, meaning)
        return text

    def program(self):
        """Itself, with its text, and the values of its uniform numbers."""
        self.choose()
        k = self.pick(0, 1, 2, 3)
        functions = self.at() + self.all() + self.kernel() + self.main()
        self.set = {"h": self.height, "w": self.width, "k": k, **self.uniforms}
        numbers = "".join(f"uniform int {name};\n" for name in self.set)
        makers = "".join(grid.maker() for grid in self.grids + self.outs)
        self.text = f"typealias T = {'float' if self.single else 'double'};\n{numbers}{HEAD}{makers}{functions}"
        return self

    def kernel_runs(self):
        """None: rounds wait for each other."""
        return None if self.mode == "scan" else [("prepare", "1"), ("grid", self.groups), ("finish", "1")]

    def options(self, entries):
        return [*(word for name, groups in entries for word in ("--entry", name, "--dispatch", groups)), *(f"--set={name}={value}" for name, value in self.set.items()),
                *(f"--bind={name}=zeros:{size}" for name, size in MEMORY.items()), *(f"--print={name}" for name in PRINTED)]

    def fault(self, numbers):
        """What does not agree with differences, or None. Not where nothing is smooth, nor of what is stored by storeOnce, whose gradients stay."""
        found = numbers[-FOUND:]
        for wanted, got, name, other in FAULTS if not (self.single or self.odd or self.is_once) else ():
            settles = abs(found[other] - found[wanted]) <= 1e-3 * (1 + abs(found[wanted]))
            if settles and not abs(found[got] - found[wanted]) <= 1e-5 * (1 + abs(found[wanted])):
                return f"the {name} is wrong"
        return None

    # ---- through C

    def bytes(self):
        """Of all buffers: bytes, elements."""
        return {name: ((4 if self.single or name == "flags" else 8) * size, size) for name, size in MEMORY.items()}

    def as_printed(self, memory):
        """The numbers of what is printed, of all that lies in memory."""
        parts, at = {}, 0
        for name, (size, count) in self.bytes().items():
            parts[name] = struct.unpack(f"{count}{'i' if name == 'flags' else 'f' if self.single else 'd'}", memory[at:at + size])
            at += size
        return " ".join(str(number) for name in PRINTED for number in parts[name])


def difference(one, several, single):
    """None, or what differs first. Sums of derivatives have no order."""
    one, several = ([float(word) for word in words.replace("-nan", "nan").split()] for words in (one, several))
    if len(one) != len(several):
        return f"{len(several)} numbers instead of {len(one)}"
    tolerance = 2e-2 if single else 1e-8
    wrong = [i for i, (a, b) in enumerate(zip(one, several)) if not (a == b or a != a and b != b or abs(a - b) <= tolerance * (1 + abs(a)))]
    return f"number {wrong[0]} of {len(one)}: {several[wrong[0]]} instead of {one[wrong[0]]}, {len(wrong)} differ" if wrong else None
