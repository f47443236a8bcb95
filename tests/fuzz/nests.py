"""Random nests of loops over buffers and arrays: triangles, packed rows, indices of 32 and 64 bits that wrap or run out of range, counters that start and stop anywhere, also behind what is read, ahead of each other, or by steps of each other, two that come nearer to each other, numbers that go round or
are chosen; loops
that set elements which others then add to, or nearly so; and derivatives of such nests. They are text: what fails is small already."""
import random
import re

LOOSE = "sums"    # the buffer for what is added up in any order
KINDS = ("int", "int", "int", "int", "int", "int", "uint", "uint", "int64_t", "int64_t", "uint64_t", "int16_t", "uint16_t", "int8_t", "uint8_t")


class Nests:
    BUFFERS = ("one", "two", "fa")  # whose lengths are asked for

    def __init__(self, seed):
        self.rng = random.Random(seed)

    def pick(self, *items):
        return self.rng.choice(items)

    def chance(self, p):
        return self.rng.random() < p

    # ---- indices

    def term(self, names):
        """Counters are of different types: all is done in int."""
        i = f"int({self.pick(*names)})"
        return self.pick(i, i, i, f"{i} * {self.rng.randint(2, 9)}", f"{i} * k", f"(n - 1 - {i})", f"int(uint({i}) * 3u - 2u)", f"int(int64_t({i}) * k + 4294967296ll)",
                         f"{i} * ({i} + 1) / 2", f"({i} << 1)", f"{i} * 1073741824", f"int(int64_t({i}) * 4294967297ll >> 1)", f"min({i}, 3)",
                         f"({i} - {self.pick(3, 4, 5)}) {self.pick('%', '/', '>>')} {self.pick(2, 3, 'k')}", f"(1 << {i})", f"({i} << k)", f"int(int8_t({i} * 37))", f"{i} * -{self.pick(1, 3)}",
                         f"{i} - {i} / {self.pick(2, 3, 5)}", f"({i} >> 1) - {i}", f"int(int64_t({i}) * (int64_t({i}) + {self.pick(1, -1, 2)}) / 2)", self.diagonal(names))

    def diagonal(self, names):
        """A square of a sum."""
        i, j = (f"int({self.pick(*names)})" for _ in range(2))
        return f"({i} + {j}) * ({i} + {j} + {self.pick(1, 3)}) / 2"

    def chosen(self, names):
        """Not linear: parts of bits, magnitudes, quotients, choices, what is carried on otherwise; and of 64 bits."""
        i, j = (f"int({self.pick(*names)})" for _ in range(2))
        return self.pick(f"({i} & {self.pick(7, 3, -4, 'n', -3)})", f"abs({i} - {j})", f"abs({i} - {self.pick(2, 'k')})", f"{i} / k", f"{i} % k", f"uint({i} - {j}) % uint(m)", f"({i} < {j} ? {i} : {j} - 1)", f"({i} + {j} < n ? {i} + {j} : {i} + {j} - n)",
                         f"({i} - {j} < 0 ? {i} - {j} + m : {i} - {j})", f"({i} == 0 ? {self.pick('0', 'n - 1')} : {i} - 1)", f"({i} + 1 != n ? {i} + 1 : 0)", f"(s > 0 ? {i} : {j})", f"clamp({i} + {j} - 2, 0, n - 1)",
                         "ring", "ring", "ring + 1", "best", "best - 1", "next", "next - k", f"int64_t({i}) * n + {j}", f"int64_t({i}) - k", f"uint64_t({i})", f"uint16_t({i} + {j})", f"uint8_t({i} - {j})", f"uint({i}) - 1u", f"uint({i} - {j})", f"uint64_t({i} - {j})", f"int64_t({i}) * 4294967296ll", f"ring * n + {i}",
                         "clamp(int(s), 0, n - 1)", f"min(max(int(s * 3), {i}), {j})", "min(uint(s), uint(m))", "max(int(s), 0)")

    def index(self, names):
        if self.chance(0.2):
            return self.chosen(names)
        if self.chance(0.6):
            i, j = (f"int({self.pick(*names)})" for _ in range(2))
            return self.pick(i, i, "packed", "packed", f"{i} + {self.pick(1, 2, 'k')}", f"{i} - 1", f"{i} * n + {j}", f"{i} * 8 + {j}", f"{i} + {j}", f"{i} - {j}", f"{i} * m + {j}", f"packed + {i}",
                             f"{i} / 2", f"{i} - {i} / 2 + {j}", f"{self.diagonal(names)} + {i}", f"{i} % 7", f"min({i}, {j})", f"({i} >> 1) + {j}")
        text = " + ".join(self.term(names) for _ in range(self.pick(1, 1, 2, 2, 3)))
        if self.chance(0.5):
            text += f" {self.pick('+', '-')} {self.pick('1', '2', '7', 'k', 'm')}"
        return self.pick(text, text, text, f"uint({text})", f"int64_t({text})", f"packed + {self.pick(0, 1, 5)}", "packed", "packed", f"packed * k + {self.pick(*names)}")

    def head(self, i, names):
        kind = self.pick(*KINDS)
        around = f"{kind}({self.pick(*names, 'k')}{' & 15' if kind[0] == 'u' else ''})"
        low = self.pick("0", "0", "0", "1", "2", around, f"{around} + 1", "-2" if kind[0] != "u" else "0")
        high = self.pick(f"{kind}(n)", f"{kind}(n)", f"{kind}({self.pick(*self.BUFFERS)}.getCount())", str(self.rng.randint(2, 9)), f"{kind}(m)", around, f"{kind}(n) - {around}" if kind[0] != "u" else f"{kind}(n)")
        if kind == "int" and self.chance(0.25):
            low = self.pick(low, f"max({around} - {self.pick(1, 2, 4)}, 0)", f"max(k, {around})", f"{around} / 2", f"({around} + 1) / {self.pick(2, 3)}")
            high = self.pick(high, f"min(n, {around} + {self.pick(1, 3, 5)})", f"min(m, n)", f"max({around}, 2)", f"(n >> 1)", f"n % {self.pick(3, 5)}")
        step = self.pick("++", "++", "++", "++", " += 2", " += 3")
        if kind == "int" and self.chance(0.15):
            return self.pick(f"for (int {i} = {low}; {i} + 1 < {high}; {i}{step})", f"for (int {i} = {low}; {i} - k < {high}; {i}{step})", f"for (int {i} = 0; {i} != {self.pick('n', '6')}; {i}++)")
        return self.pick(f"for ({kind} {i} = {low}; {i} < {high}; {i}{step})", f"for ({kind} {i} = {low}; {i} < {high}; {i}{step})", f"for ({kind} {i} = {low}; {i} <= {high}; {i}{step})",
                         f"for (int {i} = int({high}) - 1; {i} >= 0; {i}--)", f"for (int64_t {i} = int64_t({high}); {i} > int64_t({low}); {i}--)")

    # ---- bodies

    def read(self, names):
        return self.pick(f"one[{self.index(names)}]", f"two[{self.index(names)}]", f"two[{self.index(names)}]", f"a[{self.index(names)}]", f"fb[{self.pick(*names)}]",
                         f"float({self.pick(*names)})", "x", "s", f"(s > 0 ? two[{self.index(names)}] : 0.5)")

    def carried(self, names):
        """What goes round, is chosen, or counts some of the rounds."""
        i = f"int({self.pick(*names)})"
        return self.pick(f"ring = ring + 1 == {self.pick('n', 'm', '5')} ? 0 : ring + 1;", f"ring = (ring + {self.pick(1, 3)}) % {self.pick('n', 'm', '6')};", f"if (++ring >= {self.pick('n', 'm', '4')}) ring = 0;", f"ring = ring == 0 ? {self.pick('n', 'm')} - 1 : ring - 1;",
                         "ring++; if (ring > m) ring -= m;", "if (--ring < 0) ring = n - 1;", "ring = (ring + 1) & 7;", f"if ({self.read(names)} > 0) best = {i};", f"best = s > 0 ? {i} + {self.pick(0, 1, 'k')} : best;", f"if ({self.read(names)} > 0) next++;",
                         "next += s > 0 ? 2 : -1;", f"if ({i} > 1) next--;", f"best = {i} > n ? 2 : best;", f"best = (s > 0 ? best : {i}) + {self.pick(1, 3)};", f"best = s > 0 ? ({i} > 1 ? best : {i}) : 2;", "m = (m + 3) & 7;", "m = m > 2 ? m - 1 : m;")

    def statement(self, names):
        if self.chance(0.15):
            return self.carried(names)
        value = self.pick("{} * 0.5 + {}", "{} - {} * x", "{}", "min({}, {})").format(*(self.read(names) for _ in range(2)))
        if self.chance(0.25):
            i, j = (f"int({self.pick(*names)})" for _ in range(2))
            test = self.pick(f"{i} > {self.pick(0, 1, 3)}", f"{i} < n - {self.pick(1, 2)}", f"{i} < {j}", f"{i} >= k && {j} < m", f"!({i} < 2)", f"{i} + {j} < n", f"{i} != {j}", f"{i} <= {j} + 1", f"{i} + {self.rng.randint(2147483638, 2147483647)} < 2147483647", f"{i} - 2147483647 > -2147483644")
            return f"if ({test}) {{ {self.pick('one', 'two', 'a')}[{self.index(names)}] = {value}; }}{self.pick('', '', f' else s += one[{self.index(names)}];')}"
        return self.pick(f"one[{self.index(names)}] = {value};", f"one[{self.index(names)}] += {value};", f"s += {value};", f"s = s * 0.5 + {value};", f"a[{self.index(names)}] = {value};",
                         f"a[{self.index(names)}] += {value};", "packed++;", "packed++;", f"if ({self.read(names)} > 0) s -= 1; else one[{self.index(names)}] = s;",
                         f"InterlockedAdd(two[{self.index(names)}], {value});", f"ia[{self.index(names)}] ^= packed;",
                         f"if ({self.read(names)} > 3) {self.pick('break', 'continue')};")

    def endless(self, i, lines):
        """Left where a round begins, ends, or in between."""
        exit = f"if ({self.pick(f'{i} >= n', f'{i} == 6', f'{i} > 4', f'!({i} < m)', f's > 2 || {i} >= n')}) break;"
        lines = [*self.pick([exit, *lines, f"{i}++;"], [exit, *lines, f"{i} += 2;"], [f"if ({self.pick(f'{i} < n', f'{i} <= 4')}) {{", *lines, f"{i}++; }} else {{ break; }}"], [*lines, f"{i}++;", exit], [*lines[:1], exit, *lines[1:], f"{i}++;"], [exit, *lines, f"{i}++;", f"if ({self.pick('s > 2', f'{i} > 7')}) break;"])]
        most = [f"if ({i} > 40) break;"] # some would not end
        return f"int {i} = {self.pick('0', '1', 'k')};\n{self.pick('for (;;)', 'while (true)')} {{\n" + "\n".join([*lines[:-1], *most, lines[-1]]) + "\n}"

    def while_loop(self, i, names, lines):
        """By a step that is no constant, by doubling and halving, backwards, with a test that reads, or of two counters."""
        high, around = self.pick("n", "n", "m", "8", f"int({self.pick(*names, 'k')})"), self.pick("0", "0", "1", "k", "-1")
        inside, read, most = "\n".join(lines), self.read([*names, i]), f"if ({i} > 40 || {i} < -40) break;" # some would not end
        other = f"int({self.pick(*names, 'k')})"
        return self.pick(f"for (int {i} = {around}; {i} < {high}; {i} += {self.pick('k', '(m | 1)', '((k & 3) + 1)')}) {{\n{most}\n{inside}\n}}", f"for (int {i} = {high}; {i} > {around}; {i} -= {self.pick('k', '(m | 1)', '((k & 3) + 1)')}) {{\n{most}\n{inside}\n}}",
                         f"for (int {i} = {self.pick(1, 1, 2, 0, 'k')}; {i} < {high}; {i} {self.pick('*= 2', '<<= 1', '*= 3')}) {{\nif ({i} < 1) break;\n{inside}\n}}", f"for (int {i} = {high}; {i} {self.pick('> 0', '>= 1', '> 1', '> -2')}; {i} {self.pick('/= 2', '>>= 1', '/= 3')}) {{\nif ({i} < 1) break;\n{inside}\n}}",
                         f"int {i} = {high};\nwhile ({i}-- > {around}) {{\n{inside}\n}}", f"for (uint {i} = uint({high}) & 31; {i}-- > 0;) {{\n{inside}\n}}", f"int {i} = {around};\nwhile ({i}++ < {high}) {{\n{inside}\n}}", f"int {i} = {high};\nwhile (--{i} >= {around}) {{\n{inside}\n}}",
                         f"int {i} = {around};\nwhile ({i} < {high} && {read} < 2.5) {{\n{inside}\n{i}++;\n}}", f"int {i} = {high} - 1;\nwhile ({i} >= 0 && one[{i}] < 2.5) {{\n{inside}\n{i}--;\n}}", f"for (int {i} = {around}; {i} < {high} && {i} < {self.pick('m', '6', 'n')}; {i}++) {{\n{inside}\n}}",
                         f"int {i} = {around};\nwhile ({i} < {high} && {read} < 2.5 && {i} < {self.pick('m', '4')}) {{\n{inside}\n{i}++;\n}}", f"for (int {i} = {around}; {i} {self.pick('+', '-')} {other} < {high}; {i} += {self.pick(1, 2)}) {{\n{most}\n{inside}\n}}",
                         f"for (int {i} = {self.pick(1, 2)}; {i} + 1 < {high}; {i} *= 3) {{\n{inside}\n}}", f"for (int {i} = {around}; {i} < {high}; {i} += {other}) {{\n{most}\nif ({other} == 0) break;\n{inside}\n}}",
                         f"for (int {i} = {around}; {i} + 5 > 0; {i} /= 2) {{\n{most}\nif ({i} == 0) break;\n{inside}\n}}", f"for (uint64_t {i} = uint64_t({high} & 15); {i} >= uint64_t({other} & 3); {i}--) {{\n{inside}\nif ({i} > 40) break;\n}}")

    def two_counters(self, i, lines):
        one, two = self.pick("0", "0", "1", "k"), self.pick("n", "n - 1", "m", "9")
        moves = self.pick(f"{i}++; {i}e--;", f"{i} += 2; {i}e--;", f"{i}++; {i}e -= 3;", f"if (s > 0) {i}++; else {i}e--;", f"{i}++;", f"{i}e--; if ({i}e > 3) {i}++;")
        return f"int {i} = {one}, {i}e = {two};\nwhile ({self.pick(f'{i} < {i}e', f'{i} <= {i}e', f'{i}e > {i}', f'{i} < n && {i}e > 0')}) {{\n" + "\n".join(lines) + f"\n{moves}\n}}"

    def level(self, depth, names):
        """A loop, and perhaps what it has left its counter at."""
        text, i = self.loop(depth, names), f"i{len(names)}"
        is_there = re.search(rf"^int {i}\b", text, re.M) is not None
        return text + f"\ns += {self.pick('one', 'two', 'a')}[{i}{self.pick('', '', ' - 1', ' + k')}];" if is_there and self.chance(0.3) else text

    def loop(self, depth, names):
        i = f"i{len(names)}"
        inside = [*names, i]
        lines = [self.statement(inside) for _ in range(self.rng.randint(0 if depth else 1, 3))]
        if depth:
            lines.insert(self.rng.randint(0, len(lines)), self.level(depth - 1, inside))
        if not depth and self.chance(0.4):
            lines.append(self.pick("packed++;", "packed++;", "packed += k;", "packed += 3;", f"packed -= {self.pick(1, 2)};"))
        if self.chance(0.08):
            return f"int {i} = {self.pick('0', '1', 'k')};\ndo {{\n" + "\n".join(line for line in lines if "continue" not in line) + f"\n}} while (++{i} < {self.pick('n', '7', 'm')});"
        if self.chance(0.15):
            return self.while_loop(i, names, [line for line in lines if "continue" not in line])
        if self.chance(0.06):
            lines = [self.statement([*inside, f"{i}e"]), *lines]
            return self.two_counters(i, [line for line in lines if "continue" not in line])
        if self.chance(0.12):
            return self.endless(i, [line for line in lines if "continue" not in line])
        return self.head(i, names) + " {\n" + "\n".join(lines) + "\n}"

    def nest(self, name):
        body = self.level(self.pick(0, 1, 1, 2), [])
        begin = f"int m = {self.pick('7', 'ia[0] & 7', 'k + 3')};\n    float s = x;\n    int packed = {self.pick('0', '1', 'k')}, ring = {self.pick(0, 0, 2)}, best = {self.pick(0, 'k')}, next = 0;\n    float a[{self.pick(4, 7, 16)}] = {{}};\n"
        return f"{self.pick('[noinline] ', '')}void {name}(RWStructuredBuffer<float> one, RWStructuredBuffer<float> two, int n, int k, float x) {{\n    {begin}    {body}\n" \
               "    fa[1] += s; ia[2] ^= packed + ring * 64 + best * 128 + next * 256; fb[2] += a[1] + a[3];\n}\n"

    # ---- set, then added to

    def filled(self, name):
        part = self.pick("", "", ".a", ".b.y", ".c[1]")
        one, kind = ("one", "float") if not part else ("one", "Five")
        low, high, step = self.pick("0", "0", "0", "1", "k"), self.pick("n", "n", "n", "n - 1", "n + 1"), self.pick("1", "1", "1", "2")
        other = self.pick((low, high, step), (low, high, step), (low, high, step), ("0", high, step), (low, "n", step), (low, high, "1"))
        value = self.pick("0", "0", "0", "1.5", "-2")
        sets = [f"{one}[i]{part} = {value};"]
        if part and self.chance(0.5):
            sets = [f"{one}[i] = {{ {value}, float2({self.pick('0, 0', '1, 2', '0, -1')}), {{ 0, {value} }} }};"]
        index = self.pick("i", "i", "i", "i", "i + 1", "i - 1", "n - 1 - i")
        term = self.pick("two[i] * x + 0.0", "fb[i] - 0.5", "x", f"{one}[i]{part} + 0.0", f"{one}[i + 1]{part} + 0.0", "two[n - 1 - i] + 0.0").replace("two[", "fb[" if part else "two[")
        adds = [f"InterlockedAdd({one}[{index}]{part}, {term});" for _ in range(self.pick(1, 1, 2))]
        if self.chance(0.3):
            adds.insert(self.pick(0, 1), self.pick(f"if (fb[i] > 0) {self.pick('continue', 'break')};", f"fa[i] = {one}[i]{part};", "fb[i] = 0.25;", f"{one}[i]{part} = 1;"))
        between = self.pick("", "", "", f"fa[0] += {one}[1]{part};", f"{one}[2]{part} = 5;")
        loops = [f"for (int i = {at[0]}; i < {at[1]}; i += {at[2]}) {{ {' '.join(lines)} }}" for at, lines in (((low, high, step), sets), (other, adds))]
        if self.chance(0.25):
            loops = [f"for (int i = {low}; i < {high}; i += {step}) {{ {' '.join([*sets, *adds])} }}"]
        body = f"\n    {between}\n    ".join(loops)
        two = "float" if not part else "Five"
        return part != "", f"{self.pick('[noinline] ', '')}void {name}(RWStructuredBuffer<{kind}> one, RWStructuredBuffer<{two}> two, int n, int k, float x) {{\n    {body}\n}}\n"

    def program(self):
        """The functions, and calls of them."""
        texts, calls = [], []
        for number in range(self.rng.randint(1, 3)):
            name = f"nest{number}"
            texts.append(self.nest(name))
            calls.append(f"{name}({self.pick('fa, fb', 'fb, fa', 'fa, fa')}, {self.pick(0, 1, 3, 5, 9, 12)}, {self.pick(1, 2, 3, -1)}, {self.pick('0.5', '-1.25')});")
        for number in range(self.rng.randint(0, 2)):
            name = f"filled{number}"
            is_struct, text = self.filled(name)
            texts.append(text)
            given = self.pick("va, vb", "vb, va", "va, va") if is_struct else self.pick("fa, fb", "fb, fa", "fa, fa")
            calls.append(f"{name}({given}, {self.pick(0, 5, 17, 64, 96, 99)}, {self.pick(1, 2, 3)}, {self.pick('0.5', '-1.25')});")
        for number in range(self.rng.randint(0, 2)):
            texts.append(Slopes(self.rng.random()).nest(f"slopes{number}"))
            calls.append(f"slopes{number}_grad({self.pick(0, 1, 3, 5, 9, 12, 40, 95, 96, 97)}, {self.pick(1, 2, 3, -1)});")
        return "".join(texts), calls


class Slopes(Nests):
    """The same loops where nothing but the sum and a local array is written, and its derivatives in both modes. These are doubles that are added up in any order, in the buffer for that."""
    BUFFERS = ("da",)

    def read(self, names):
        return self.pick(f"one[{self.index(names)}]", f"one[{self.index(names)}]", f"two[{self.index(names)}]", f"two[{self.index(names)}]", f"a[{self.index(names)}]", f"double({self.pick(*names)})", "x", "s",
                         f"(s > 0 ? two[{self.index(names)}] : 0.5)")

    def statement(self, names):
        if self.chance(0.15):
            return self.carried(names)
        value = self.pick("{} * 0.5 + {}", "{} - {} * x", "{}", "min({}, {})", "{} * {}").format(*(self.read(names) for _ in range(2)))
        sums = (f"s += 0.125 * ({value});", f"s = s * 0.5 + 0.125 * ({value});", f"a[{self.index(names)}] = 0.125 * ({value});", f"a[{self.index(names)}] += 0.125 * ({value});")
        if self.chance(0.25):
            i, j = (f"int({self.pick(*names)})" for _ in range(2))
            test = self.pick(f"{i} > {self.pick(0, 1, 3)}", f"{i} < n - {self.pick(1, 2)}", f"{i} < {j}", f"{i} >= k && {j} < m", f"!({i} < 2)", f"{i} + {j} < n", f"{i} != {j}", f"{i} <= {j} + 1", f"{self.read(names)} > 0.5")
            return f"if ({test}) {{ {self.pick(*sums)} }}{self.pick('', '', f' else s += one[{self.index(names)}];')}"
        return self.pick(*sums, *sums, "packed++;", "packed++;", f"if ({self.read(names)} > 3) {self.pick('break', 'continue')};")

    def nest(self, name):
        body = self.level(self.pick(0, 1, 1, 2), [])
        begin = f"int m = {self.pick('7', 'k + 3')};\n    double s = x;\n    int packed = {self.pick('0', '1', 'k')}, ring = {self.pick(0, 0, 2)}, best = {self.pick(0, 'k')}, next = 0;\n    double a[{self.pick(4, 7, 16)}] = {{}};\n"
        inline = self.pick("", "", "[ForceInline] ")
        return f"""{inline}[Differentiable] double {name}(DiffBuffer<double> one, DiffBuffer<double> two, no_diff int n, no_diff int k, double x) {{
    {begin}    {body}
    return s + a[1] * a[3];
}}
void {name}_grad(int n, int k) {{
    let pair = DifferentialPtrPair<DiffBuffer<double>>(DiffBuffer<double>(da), DiffBuffer<double>({LOOSE}));
    var x = diffPair(0.75l, 0.5l);
    {LOOSE}[7] += fwd_diff({name})(pair, pair, n, k, x).d * 0.015625;
    bwd_diff({name})(pair, pair, n, k, x, 0.5l);
    {LOOSE}[8] += x.d;
    for (int i = 0; i < 96; i++) {LOOSE}[i] = clamp({LOOSE}[i], -4, 4);
}}
"""
