"""Programs that check themselves: a module of many functions under test and the code that tests them.

Each function `f` gets four wrappers around flat arrays: X differentiable inputs, C and K constant inputs (real, int),
Y differentiable outputs, N other outputs; D a direction, J the derivative along it; W weights of the outputs, G their gradient.
`check`, written once, does the rest (see CHECK) and prints one line for each function.
"""
import re

from tree import INT, REAL, VOID, Writer, declarator, is_differentiable_type, type_text

BUFFERS = ["memory_double", "gradient_double", "memory_float", "gradient_float"]   # for programs that want buffers
BUFFER_SIZE = 64
FAILURES = ["", "primal changed by forward mode", "other outputs changed by forward mode", "forward mode is not a number",
            "forward mode is wrong", "backward mode is not a number", "backward mode is wrong", "backward mode changed a primal",
            "backward mode gives another result the second time", "the reference differs"]

CHECK = """
RWStructuredBuffer<double> memory_double; RWStructuredBuffer<double> gradient_double;
RWStructuredBuffer<float> memory_float; RWStructuredBuffer<float> gradient_float;
static double X[ROOM]; static double C[ROOM]; static int K[ROOM];
static double Y[ROOM]; static double N[ROOM];
static double D[ROOM]; static double J[ROOM]; static double W[ROOM]; static double G[ROOM];
static double frozen_values[4096]; static int frozen_count; static bool frozen_replay;
static bool changed;
static uint random_state;

// What is constant for derivatives: recorded at the point itself, played back in its neighbourhood.
[TreatAsDifferentiable]
double frozen(double x)
{
    int at = min(frozen_count++, 4095);
    if (!frozen_replay) frozen_values[at] = x;
    return frozen_values[at];
}
[TreatAsDifferentiable]
vector<double, N> frozen<let N : int>(vector<double, N> x)
{
    for (int i = 0; i < N; i++) x[i] = frozen(x[i]);
    return x;
}
[TreatAsDifferentiable]
matrix<double, R, C> frozen<let R : int, let C : int>(matrix<double, R, C> x)
{
    for (int i = 0; i < R; i++) x[i] = frozen(x[i]);
    return x;
}

uint next() { random_state = random_state * 1664525u + 1013904223u; return random_state >> 8; }
double draw() { return double(next() % 4096u + (next() % 4096u) * 4096u) / 16777216.0l * 2.0l - 1.0l; }
void same(double a, double b) { if (a != b) changed = true; }
void sameInt(int a, int b) { if (a != b) changed = true; }
bool isClose(double a, double b, double tolerance) { return abs(a - b) <= tolerance * (1.0l + abs(a) + abs(b)); }
bool isModerate(double a[ROOM], int n)
{
    for (int i = 0; i < n; i++)
        if (!(abs(a[i]) < 1e5l)) return false;
    return true;
}

struct Shape { int seed; int nx; int ny; int nc; int nk; int nn; bool reference; bool single; double tolerance; double fdTolerance; }
struct Outcome { int failure; int sample; double got; double wanted; int rough; int unfit; int good; double size; double digest; }

void move(double base[ROOM], double t, int n) { for (int i = 0; i < n; i++) X[i] = base[i] + t * D[i]; }
void differ(int k, Shape s, double base[ROOM], double t, out double y[ROOM])
{
    move(base, t, s.nx);
    frozen_count = 0;
    call(k, s.reference ? 3 : 0);
    y = Y;
}

void fail(inout Outcome o, int failure, int sample, double got, double wanted)
{
    if (o.failure != 0) return;
    o.failure = failure;
    o.sample = sample;
    o.got = got;
    o.wanted = wanted;
}

// Where a loop amplifies its input again and again, values differ wildly within less than a step: smaller ones show that.
bool isChaotic(int k, Shape s, double base[ROOM], int j, double fine)
{
    double h = 2e-8l, right[ROOM], left[ROOM];
    frozen_replay = true;
    differ(k, s, base, h, right);
    differ(k, s, base, -h, left);
    frozen_replay = false;
    X = base;
    return !isClose((right[j] - left[j]) / (2.0l * h), fine, s.fdTolerance / 2.0l);
}

// The function in float and its reference in double may part at a step, a test or a rounded index: then they do so nearby, too, or their
// values show it, or the derivative changes with the last digits of its input. That it does also where differences see the mean of
// something that oscillates fast.
bool isShaky(int k, Shape s, double base[ROOM], double tangent[ROOM])
{
    uint state = random_state;
    bool shaky = false;
    for (int trial = 0; trial < 8 && !shaky; trial++)
    {
        double size = (trial == 0 ? 0.0l : trial < 5 ? 1e-6l : 1e-4l) * (s.single ? 1.0l : 1e-4l);
        for (int i = 0; i < s.nx; i++) X[i] = base[i] * (1.0l + size * draw());
        frozen_count = 0;
        call(k, 1);
        double value[ROOM] = Y, slope[ROOM] = J;
        frozen_count = 0;
        call(k, 3);
        for (int j = 0; j < s.ny; j++)
            if (!isClose(value[j], Y[j], 1e-3l) || !isClose(slope[j], tangent[j], s.fdTolerance / 2.0l + 100.0l * size)) shaky = true;
    }
    X = base;
    random_state = state;
    return shaky;
}

// In float, a rounded index or a test may part from those of the reference all around: then its own differences tell.
bool isOwnSlope(int k, Shape s, double base[ROOM], int j, double tangent)
{
    double h = 4e-3l, y[4];
    for (int i = 0; i < 4; i++)
    {
        move(base, i < 2 ? h * (1.0l - 2.0l * i) : h * (2.5l - i), s.nx);
        call(k, 0);
        y[i] = Y[j];
    }
    X = base;
    double coarse = (y[0] - y[1]) / (2.0l * h), fine = (y[2] - y[3]) / h;
    return isClose((4.0l * fine - coarse) / 3.0l, tangent, s.fdTolerance);
}

// A kink right here, too small to be seen by itself: differences give the mean of both sides, the derivative is that of one.
bool isKinked(double y0, double p1, double p2, double m1, double m2, double h, double error)
{
    double right = (-3.0l * y0 + 4.0l * p2 - p1) / h, left = (3.0l * y0 - 4.0l * m2 + m1) / h;
    return !(abs(right - left) <= error);
}

// Forward mode along D against differences; false: not smooth here.
bool compareForward(int k, Shape s, double base[ROOM], double tangent[ROOM], inout Outcome o, int sample)
{
    double h = 2e-4l;
    double y0[ROOM], p1[ROOM], p2[ROOM], p3[ROOM], m1[ROOM], m2[ROOM], m3[ROOM];
    frozen_replay = false;
    differ(k, s, base, 0.0l, y0);
    frozen_replay = true;
    differ(k, s, base, h, p1);
    differ(k, s, base, -h, m1);
    differ(k, s, base, h / 2.0l, p2);
    differ(k, s, base, -h / 2.0l, m2);
    differ(k, s, base, h / 4.0l, p3);
    differ(k, s, base, -h / 4.0l, m3);
    frozen_replay = false;
    X = base;
    for (int j = 0; j < s.ny; j++)
    {
        double d1 = (p1[j] - m1[j]) / (2.0l * h), d2 = (p2[j] - m2[j]) / h, d3 = (p3[j] - m3[j]) / (h / 2.0l);
        double coarse = (4.0l * d2 - d1) / 3.0l, fine = (4.0l * d3 - d2) / 3.0l;
        double scale = 1.0l + abs(fine);
        if (!(abs(coarse - fine) <= 1e-5l * scale) || isKinked(y0[j], p1[j], p2[j], m1[j], m2[j], h, 1e-2l * scale)) return false;
    }
    for (int j = 0; j < s.ny; j++)
    {
        double d2 = (p2[j] - m2[j]) / h, d3 = (p3[j] - m3[j]) / (h / 2.0l);
        double fine = (4.0l * d3 - d2) / 3.0l;
        int failure = isnan(tangent[j]) ? 3 : isClose(fine, tangent[j], s.fdTolerance) ? 0 : 4;
        if (failure == 0 || o.failure != 0) continue;
        if (failure == 4 && isKinked(y0[j], p1[j], p2[j], m1[j], m2[j], h, abs(fine - tangent[j]))) return false;
        if (failure == 4 && (isChaotic(k, s, base, j, fine) || isShaky(k, s, base, tangent))) return false;
        if (failure == 4 && s.single && isOwnSlope(k, s, base, j, tangent[j])) return false;
        fail(o, failure, sample, tangent[j], fine);
    }
    return true;
}

// Do the last digits of the input decide the first of the result? Then so does every rounding, and a derivative may round otherwise.
bool isTouchy(int k, Shape s, double base[ROOM], double y0[ROOM])
{
    double size = s.single ? 4e-7l : 4e-15l, constants[ROOM] = C;
    bool touchy = false;
    for (int trial = 0; trial < 2; trial++)
    {
        for (int i = 0; i < s.nx; i++) X[i] = base[i] * (1.0l + ((i + trial) % 2 == 0 ? size : -size));
        for (int i = 0; i < s.nc; i++) C[i] = constants[i] * (1.0l + ((i + trial) % 2 == 0 ? size : -size));
        call(k, 0);
        for (int j = 0; j < s.ny; j++)
            if (!isClose(Y[j], y0[j], s.tolerance / 4.0l)) touchy = true;
    }
    X = base;
    C = constants;
    return touchy;
}

// What the weights and the direction give by way of the gradient.
double weighted(Shape s, double gradient[ROOM])
{
    double sum = 0.0l;
    for (int i = 0; i < s.nx; i++) sum += gradient[i] * D[i];
    return sum;
}

// Do the last digits of the input change it by as much as it is wrong? Then large terms cancel, and reverse mode adds them in another order.
bool isCancelled(int k, Shape s, double base[ROOM], double right, double error)
{
    double size = s.single ? 4e-7l : 4e-15l;
    bool cancelled = false;
    for (int trial = 0; trial < 4; trial++)
    {
        for (int i = 0; i < s.nx; i++) X[i] = base[i] * (1.0l + (((i >> (trial / 2)) + trial) % 2 == 0 ? size : -size));
        call(k, 2);
        if (!(8.0l * abs(weighted(s, G) - right) < error)) cancelled = true;
    }
    X = base;
    return cancelled;
}

void checkSample(int k, Shape s, int sample, inout Outcome o)
{
    for (int i = 0; i < s.nx; i++) { X[i] = draw() * 1.5l; D[i] = draw(); }
    for (int i = 0; i < s.nc; i++) C[i] = draw() * 1.5l;
    for (int i = 0; i < s.nk; i++) K[i] = int(next() % 6u);
    for (int j = 0; j < s.ny; j++) W[j] = draw();
    double base[ROOM] = X;
    call(k, 0);
    double y0[ROOM] = Y, n0[ROOM] = N;
    if (s.ny == 0 || !isModerate(y0, s.ny)) { o.unfit++; return; }
    if (isTouchy(k, s, base, y0)) { o.rough++; return; }
    call(k, 1);
    double tangent[ROOM] = J;
    for (int j = 0; j < s.ny; j++)
        if (!isClose(Y[j], y0[j], s.tolerance)) fail(o, 1, sample, Y[j], y0[j]);
    for (int j = 0; j < s.nn; j++)
        if (!isClose(N[j], n0[j], s.tolerance)) fail(o, 2, sample, N[j], n0[j]);
    for (int j = 0; j < s.ny; j++)
        if (abs(tangent[j]) >= 1e5l) { o.unfit++; return; }
    if (!compareForward(k, s, base, tangent, o, sample)) { o.rough++; return; }
    if (o.failure == 0)
    {
        changed = false;
        call(k, 2);
        double gradient[ROOM] = G;
        double left = 0.0l, right = weighted(s, gradient), scale = 1.0l;
        for (int j = 0; j < s.ny; j++) { left += W[j] * tangent[j]; scale += abs(W[j] * tangent[j]); }
        for (int i = 0; i < s.nx; i++) scale += abs(gradient[i] * D[i]);
        for (int i = 0; i < s.nx; i++) if (isnan(gradient[i])) fail(o, 5, sample, gradient[i], 0.0l);
        if (o.failure == 0 && !(abs(left - right) <= s.tolerance * scale))
        {
            if (isCancelled(k, s, base, right, abs(left - right))) { o.rough++; return; }
            fail(o, 6, sample, right, left);
        }
        if (changed) fail(o, 7, sample, 0.0l, 0.0l);
        call(k, 2);
        for (int i = 0; i < s.nx; i++) if (gradient[i] != G[i]) fail(o, 8, sample, G[i], gradient[i]);
        o.size += abs(left);
        for (int i = 0; i < s.nx; i++) o.digest += sin(double(i + 1)) * gradient[i];
    }
    for (int j = 0; j < s.ny; j++) o.digest += cos(double(j + 1)) * (y0[j] + 0.7l * tangent[j]);
    o.good++;
}

void check(int k, Shape s)
{
    Outcome o = {};
    random_state = uint(s.seed) * 7919u + 17u;
    for (int sample = 0; sample < SAMPLES && o.failure == 0; sample++) checkSample(k, s, sample, o);
    printf("%d %d %d %.17g %.17g %d %d %d %.3g %.17g\\n", k, o.failure, o.sample, o.got, o.wanted, o.rough, o.unfit, o.good, o.size,
           o.digest);
}
"""


# A kernel of one program: each item has its own random point, and writes what it finds there.
KERNEL = """
RWStructuredBuffer<double> found;
static double X[ROOM]; static double C[ROOM]; static int K[ROOM];
static double Y[ROOM]; static double N[ROOM];
static double D[ROOM]; static double J[ROOM]; static double W[ROOM]; static double G[ROOM];
static bool changed;
static uint random_state;

[TreatAsDifferentiable] double frozen(double x) { return x; }
[TreatAsDifferentiable] vector<double, N> frozen<let N : int>(vector<double, N> x) { return x; }
[TreatAsDifferentiable] matrix<double, R, C> frozen<let R : int, let C : int>(matrix<double, R, C> x) { return x; }

uint next() { random_state = random_state * 1664525u + 1013904223u; return random_state >> 8; }
double draw() { return double(next() % 4096u + (next() % 4096u) * 4096u) / 16777216.0l * 2.0l - 1.0l; }
void same(double a, double b) { if (a != b) changed = true; }
void sameInt(int a, int b) { if (a != b) changed = true; }

[shader("compute")] [numthreads(ITEMS, 1, 1)]
void main(uint3 id : SV_DispatchThreadID)
{
    random_state = SEEDu * 7919u + id.x * 2654435761u;
    for (int i = 0; i < NX; i++) { X[i] = draw() * 1.5l; D[i] = draw(); }
    for (int i = 0; i < NC; i++) C[i] = draw() * 1.5l;
    for (int i = 0; i < NK; i++) K[i] = int(next() % 6u);
    for (int j = 0; j < NY; j++) W[j] = draw();
    p.evaluate();
    p.forward();
    p.backward();
    uint at = id.x * uint(TOTAL);
    for (int j = 0; j < NY; j++) { found[at++] = Y[j]; found[at++] = J[j]; }
    for (int j = 0; j < NN; j++) found[at++] = N[j];
    for (int i = 0; i < NX; i++) found[at++] = G[i];
    found[at] = changed ? 1.0l : 0.0l;
}
"""
ITEMS = 19      # of a group: some are left over, whatever the number of lanes


class Wrapper:
    """The text of the four wrappers of one program, in one type of real numbers."""
    def __init__(self, program, real):
        self.program, self.real = program, real
        self.nx = self.ny = self.nc = self.nk = self.nn = 0

    def text(self, type):
        return type_text(type).replace("@", self.real)

    def leaves(self, type, path="", constant=False):
        """(path, kind) of every scalar: kind x has a derivative, c has none, k is an int."""
        kind = type[0]
        if kind == "struct":
            for field in self.program.structs[type[1]].fields:
                yield from self.leaves(field.type, f"{path}.{field.name}", constant or field.constant)
        elif kind == "arr":
            for i in range(type[2]):
                yield from self.leaves(type[1], f"{path}[{i}]", constant)
        elif kind == "vec":
            for i in range(type[1]):
                yield f"{path}.{'xyzw'[i]}", "c" if constant else "x"
        elif kind == "mat":
            for i in range(type[1]):
                for j in range(type[2]):
                    yield f"{path}[{i}][{j}]", "c" if constant else "x"
        else:
            yield path, "k" if kind == "int" else "c" if constant else "x"

    def load(self, type, leaf, constant=False, differential=False):
        """An initialiser of an object, or of its differential; `leaf(kind)` gives the next scalar."""
        kind = type[0]
        if kind == "struct":
            fields = self.program.structs[type[1]].fields
            kept = [f for f in fields if not differential or not f.constant]
            return "{ " + ", ".join(self.load(f.type, leaf, constant or f.constant, differential) for f in kept) + " }"
        if kind == "arr":
            return "{ " + ", ".join(self.load(type[1], leaf, constant, differential) for _ in range(type[2])) + " }"
        one = lambda: leaf("k" if kind == "int" else "c" if constant else "x")
        if kind == "vec":
            return f"{self.text(type)}({', '.join(one() for _ in range(type[1]))})"
        if kind == "mat":
            return f"{self.text(type)}({', '.join(one() for _ in range(type[1] * type[2]))})"
        return one()

    def reader(self, starts, arrays):
        """A `leaf` function that counts through flat arrays."""
        counts = dict(starts)

        def leaf(kind):
            at = counts[kind]
            counts[kind] += 1
            text = f"{arrays[kind]}[{at}]"
            return text if kind == "k" or self.real == "double" else f"{self.real}({text})"
        return leaf, counts

    def layout(self):
        """For each parameter, where its scalars are in the flat arrays: (param, inputs at, outputs at)."""
        places, inputs, outputs = [], {"x": 0, "c": 0, "k": 0}, {"x": 0, "n": 0}
        for param in self.program.main.params:
            at_in, at_out = dict(inputs), dict(outputs)
            kinds = [kind for _, kind in self.leaves(param.type, "", param.constant)]
            if param.dir != "out":
                for kind in kinds:
                    inputs[kind] += 1
            if param.dir != "in":
                for kind in kinds:
                    outputs["x" if kind == "x" else "n"] += 1
            places.append((param, at_in, at_out))
        result_at = dict(outputs)
        if self.program.main.result != VOID:
            for _, kind in self.leaves(self.program.main.result):
                outputs["x" if kind == "x" else "n"] += 1
        self.nx, self.nc, self.nk, self.ny, self.nn = inputs["x"], inputs["c"], inputs["k"], outputs["x"], outputs["n"]
        return places, result_at

    def room(self):
        """How many elements the flat arrays need; no more, since NVIDIA's compiler takes copies of arrays apart."""
        return max(1, self.nx, self.ny, self.nc, self.nk, self.nn)

    def store(self, type, object, constant, at, primal, differential=None):
        """Copies an object's scalars to the outputs; of a pair, both halves."""
        at, out = dict(at), []
        for path, kind in self.leaves(type, "", constant):
            where = "x" if kind == "x" else "n"
            name = "Y" if kind == "x" else "N"
            out.append(f"    {name}[{at[where]}] = {primal(object)}{path};\n")
            if differential and kind == "x":
                out.append(f"    J[{at['x']}] = {differential(object)}{path};\n")
            at[where] += 1
        return "".join(out)

    def is_plain(self, param):
        return param.constant or not is_differentiable_type(param.type)

    def declare(self, param, inputs):
        type = declarator(param.type, param.name).replace("@", self.real)
        if param.dir == "out":
            return f"    {type};\n"
        leaf, _ = self.reader(inputs, {"x": "X", "c": "C", "k": "K"})
        return f"    {type} = {self.load(param.type, leaf, param.constant)};\n"

    def declare_differential(self, param, name, at, array):
        """A variable of the Differential of the parameter's type, from a flat array."""
        leaf, _ = self.reader({"x": at}, {"x": array})
        return f"    {self.differential(param.type)} {name} = {self.load(param.type, leaf, False, True)};\n"

    def differential(self, type):
        if type[0] == "arr":
            return f"Array<{self.differential(type[1])}, {type[2]}>"
        return f"{type[1]}.Differential" if type[0] == "struct" else self.text(type)

    def evaluate(self, name, places, result_at):
        main, out = self.program.main, [f"void {name}()\n{{\n"]
        out += [self.declare(param, inputs) for param, inputs, _ in places]
        call = f"f({', '.join(param.name for param, _, _ in places)})"
        out.append(f"    {call};\n" if main.result == VOID else f"    let result = {call};\n")
        for param, _, outputs in places:
            if param.dir != "in":
                out.append(self.store(param.type, param.name, param.constant, outputs, lambda o: o))
        if main.result != VOID:
            out.append(self.store(main.result, "result", False, result_at, lambda o: o))
        return "".join(out) + "}\n"

    def forward(self, places, result_at):
        main, out, args = self.program.main, ["void forward()\n{\n"], []
        for param, inputs, _ in places:
            pair = f"DifferentialPair<{self.text(param.type)}>"
            if self.is_plain(param):
                out.append(self.declare(param, inputs))
                args.append(param.name)
                continue
            args.append(f"pair_{param.name}")
            if param.dir == "out":
                out.append(f"    {pair} pair_{param.name};\n")
                continue
            out += [self.declare(param, inputs), self.declare_differential(param, f"d_{param.name}", inputs["x"], "D"),
                    f"    {pair} pair_{param.name} = diffPair({param.name}, d_{param.name});\n"]
        call = f"fwd_diff(f)({', '.join(args)})"
        out.append(f"    {call};\n" if main.result == VOID else f"    let result = {call};\n")
        for (param, _, outputs), arg in zip(places, args):
            if param.dir != "in":
                plain = self.is_plain(param)
                out.append(self.store(param.type, arg, param.constant, outputs, (lambda o: o) if plain else (lambda o: o + ".p"),
                                      None if plain else lambda o: o + ".d"))
        if main.result != VOID:
            plain = not is_differentiable_type(main.result)
            out.append(self.store(main.result, "result", False, result_at, (lambda o: o) if plain else (lambda o: o + ".p"),
                                  None if plain else lambda o: o + ".d"))
        return "".join(out) + "}\n"

    def backward(self, places, result_at):
        main, out, args = self.program.main, ["void backward()\n{\n"], []
        after = []
        for param, inputs, outputs in places:
            if self.is_plain(param):
                if param.dir != "out":
                    out.append(self.declare(param, inputs))
                    args.append(param.name)
                continue
            seed = f"d_{param.name}"
            if param.dir == "out":
                out.append(self.declare_differential(param, seed, outputs["x"], "W"))
                args.append(seed)
                continue
            out.append(self.declare(param, inputs))    # an `in` parameter starts with a differential that must be ignored
            if param.dir == "inout":
                out.append(self.declare_differential(param, seed, outputs["x"], "W"))
            else:
                out.append(self.declare_differential(param, seed, inputs["x"], "D"))
            out.append(f"    DifferentialPair<{self.text(param.type)}> pair_{param.name} = diffPair({param.name}, {seed});\n")
            args.append(f"pair_{param.name}")
            after.append(self.collect(param, inputs["x"]))
        if main.result != VOID and is_differentiable_type(main.result):
            type = self.differential(main.result)
            leaf, _ = self.reader({"x": result_at["x"]}, {"x": "W"})
            out.append(f"    {type} d_result = {self.load(main.result, leaf, False, True)};\n")
            args.append("d_result")
        out.append(f"    bwd_diff(f)({', '.join(args)});\n")
        return "".join(out + after) + "}\n"

    def collect(self, param, at):
        """The gradient of a parameter; and its primal must be what it was."""
        out = []
        for path, kind in self.leaves(param.type):
            same = "sameInt" if kind == "k" else "same"
            out.append(f"    {same}(pair_{param.name}.p{path}, {param.name}{path});\n")
            if kind == "x":
                out.append(f"    G[{at}] = pair_{param.name}.d{path};\n")
                at += 1
        return "".join(out)


def module_text(programs, samples=5):
    """One source with all of the programs (a dict by number) and their checks."""
    out, cases, checks, room = [], [], [], 1
    for number, program in programs.items():
        real = "float" if program.single else "double"
        wrapper = Wrapper(program, real)
        places, result_at = wrapper.layout()
        room = max(room, wrapper.room())
        body = Writer(real).program(program) + wrapper.evaluate("evaluate", places, result_at) + \
            wrapper.forward(places, result_at) + wrapper.backward(places, result_at)
        out.append(f"namespace p{number}\n{{\n{body}}}\n")
        third = f"p{number}.evaluate()"
        if program.has_reference:
            reference = Wrapper(program, "double")
            body = Writer("double", True).program(program) + reference.evaluate("evaluate", *reference.layout())
            out.append(f"namespace r{number}\n{{\n{body}}}\n")
            third = f"r{number}.evaluate()"
        cases.append(f"    case {number}: if (mode == 0) p{number}.evaluate(); else if (mode == 1) p{number}.forward();\n"
                     f"        else if (mode == 2) p{number}.backward(); else {third}; break;\n")
        tolerance, difference = ("3e-3l", "1e-2l") if program.single else ("1e-8l", "1e-5l")
        flags = ", ".join("true" if flag else "false" for flag in (program.has_reference, program.single))
        checks.append(f"    check({number}, {{ {program.seed}, {wrapper.nx}, {wrapper.ny}, {wrapper.nc}, {wrapper.nk}, {wrapper.nn}, {flags}, "
                      f"{tolerance}, {difference} }});\n")
    call = f"void call(int k, int mode)\n{{\n    switch (k)\n    {{\n{''.join(cases)}    }}\n}}\n"
    start = f'[shader("compute")]\nvoid main()\n{{\n{"".join(checks)}}}\n'
    return "".join(out) + call + CHECK.replace("ROOM", str(room)).replace("SAMPLES", str(samples)) + start


def kernel_text(program):
    """One program as a kernel, and how many numbers a group of items writes; None if items would write to the same memory."""
    real = "float" if program.single else "double"
    wrapper = Wrapper(program, real)
    places, result_at = wrapper.layout()
    body = Writer(real).program(program) + wrapper.evaluate("evaluate", places, result_at) + \
        wrapper.forward(places, result_at) + wrapper.backward(places, result_at)
    if any(name in body for name in BUFFERS):
        return None, 0
    total = 2 * wrapper.ny + wrapper.nn + wrapper.nx + 1
    text = KERNEL
    for name, value in {"ROOM": wrapper.room(), "ITEMS": ITEMS, "SEED": program.seed, "NX": wrapper.nx, "NC": wrapper.nc, "NK": wrapper.nk,
                        "NY": wrapper.ny, "NN": wrapper.nn, "TOTAL": total}.items():
        text = re.sub(rf"\b{name}(?=u?\b)", str(value), text)
    return f"namespace p\n{{\n{body}}}\n{text}", total * ITEMS
