"""The generator's expressions: values of every type, in terms of what is in scope.

Values stay moderate, so that differences of nearby values mean something: functions are applied inside their domains, and
what grows is wrapped in something bounded. Points where a function is not smooth are left to the check.
"""
from tree import BOOL, INDEX, INT, REAL, VOID, Node, is_differentiable_type, type_text

ARITHMETIC = ["($ + $)", "($ - $)", "($ * $)", "($ + $)", "($ * $)", "($ / (1.5~ + sin($)))", "(-$)", "(0.5~ * $)"]
SMOOTH = [
    "sin($)", "cos($)", "tanh($)", "atan($)", "exp(sin($))", "sqrt(1.2~ + sin($))", "log(1.5~ + cos($))", "asinh($)",
    "pow(1.5~ + sin($), cos($))", "atan2($, 1.5~ + sin($))", "asin(0.9~ * sin($))", "acos(0.9~ * cos($))", "rcp(1.5~ + sin($))",
    "sinh(sin($))", "cosh(cos($))", "tan(0.7~ * sin($))", "exp2(sin($))", "log2(1.5~ + sin($))", "log10(1.5~ + sin($))",
    "acosh(1.5~ + exp(sin($)))", "atanh(0.8~ * sin($))", "rsqrt(1.2~ + sin($))", "lerp($, $, $)", "fma($, $, $)",
    "mad($, $, $)", "radians($)", "degrees(0.02~ * $)", "pow(abs(sin($)) + 0.5~, 1.5~)", "sinpi(0.3~ * $)",
]
ROUGH = [
    "max($, $)", "min($, $)", "abs($)", "clamp($, -0.8~, 0.9~)", "saturate($)", "frac($)", "fmod($, 1.5~ + sin($))",
    "($ % (1.5~ + cos($)))", "smoothstep(-1.1~, 1.3~, $)", "floor($)", "step($, $)", "copysign($, 0.3~ + sin($))", "round($)",
    "trunc($)", "ceil($)", "(@)sign($)", "max($, 0.0~)", "sqrt(max($, 0.1~))",
]
BOUNDED = ["tanh($)", "sin($)", "cos($)", "atan($)", "tanh($)"]
VECTOR_FORMS = ["($ + $)", "($ - $)", "($ * $)", "(-$)", "sin($)", "tanh($)", "max($, $)", "min($, $)", "abs($)", "cos($)",
                "($ / (1.5~ + sin($)))", "exp(sin($))", "normalize($ + 3.0~)", "reflect($, normalize($ + 3.0~))",
                "clamp($, -0.7~, 0.8~)", "frac($)"]
SLOW = ("sin", "cos(", "tanh", "atan", "exp", "sqrt(1", "log", "asin", "acos", "rcp", "tan(", "rsqrt", "sinpi", "clamp", "saturate",
        "frac", "fmod", "smoothstep", "step", "normalize", "cosh", "pow(1", "(@)sign")
PRODUCTS = ("lerp", "fma", "mad", "dot", "mul(", "cross", "reflect", "determinant", "pow(abs")
LANES = "xyzw"
MOST_COST = 6000        # of all calls in a function, roughly in statements that are run


class Variable:
    def __init__(self, name, type, writable=True, constant=False, low=None, high=None, text=None):
        self.name, self.type, self.writable = name, type, writable
        self.constant = constant              # writing to it needs a value without derivative
        self.low, self.high = low, high       # an int is known to be in this range
        self.text = text or name


class Callable:
    """Something that can be called: its parameters, in order, are the parts of the call."""
    def __init__(self, name, params, result, cost=1, text=None, uses=None, again=True, frozen=False, degree=1,
                 order=0):
        self.name, self.params, self.result, self.cost = name, params, result, cost
        self.text = text or f"{name}({', '.join('$' * len(params))})"
        self.uses = uses or (name,)
        self.again = again                    # its derivative may be differentiated again
        self.frozen = frozen                  # the call is constant for derivatives: frozen in the reference
        self.degree = degree                  # of its results in its arguments
        self.order = order                    # derivatives of derivatives inside


class Expressions:
    # ---- places: variables and what is inside them

    def paths(self, type, want):
        """The ways from an object to a part of the wanted type; lists of steps."""
        if type == want:
            yield ()
        kind = type[0]
        if kind == "struct":
            for field in self.structs[type[1]].fields:
                for rest in self.paths(field.type, want):
                    yield ((type[1], field), *rest)
        elif kind == "arr":
            for rest in self.paths(type[1], want):
                yield (("index", type[2]), *rest)
        elif kind == "vec" and want == REAL:
            yield (("lane", type[1]),)
        elif kind == "mat" and want == REAL:
            yield (("entry", type[1], type[2]),)
        elif kind == "mat" and want == ("vec", type[2]):
            yield (("row", type[1]),)

    def is_constant_path(self, path):
        """Does the way lead through a field that has no derivative?"""
        return any(getattr(step[1], "constant", False) for step in path)

    def place(self, want, write=False, constant=None):
        """A node for a part of a variable, and whether it is constant for derivatives; or (None, False)."""
        found = []
        for variable in self.scope.variables:
            if write and not variable.writable:
                continue
            for path in self.paths(variable.type, want):
                is_constant = variable.constant or self.is_constant_path(path)
                if constant is None or is_constant == constant:
                    found.append((variable, path, is_constant))
        if not found:
            return None, False
        if self.chance(0.5):                  # arrays and structs more often than their number
            found = [item for item in found if item[1]] or found
        variable, path, is_constant = self.pick(found)
        node = Node(variable.text, type=variable.type, uses=(variable.name,))
        for step in path:
            node = self.step(node, step, want)
        node.place = write
        return node, is_constant

    def step(self, node, step, want):
        kind = step[0]
        if kind == "index":
            return Node("$[$]", [node, self.index(step[1])], node.type[1])
        if kind == "lane":
            if self.chance(0.3):
                return Node("$[$]", [node, self.index(step[1])], REAL)
            return Node(f"$.{LANES[self.rng.randrange(step[1])]}", [node], REAL)
        if kind == "row":
            return Node("$[$]", [node, self.index(step[1])], want)
        if kind == "entry":
            row, column = self.rng.randrange(step[1]), self.rng.randrange(step[2])
            if self.chance(0.3):
                return Node("$[$][$]", [node, self.index(step[1]), self.index(step[2])], REAL)
            return Node(self.pick([f"$._m{row}{column}", f"$[{row}][{column}]", f"$[{row}].{LANES[column]}"]), [node], REAL)
        return Node(f"$.{step[1].name}", [node], step[1].type, uses=(f"{kind}.{step[1].name}",))

    def index(self, count):
        """An index into that many elements, always in range."""
        direct = [v for v in self.scope.variables if v.type == INT and v.low is not None and 0 <= v.low and v.high < count]
        roll = self.rng.random()
        if direct and roll < 0.5:
            v = self.pick(direct)
            return Node(v.text, type=INDEX, uses=(v.name,))
        if roll < 0.7:
            return Node(str(self.rng.randrange(count)), type=INDEX)
        return Node(f"uint($) % {count}", [self.integer(1)], INDEX)

    def freeze(self):
        """Something is constant for derivatives here: differences need the reference, and it is not differentiated again."""
        self.frozen, self.scope.again = True, False

    # ---- growth: powers of powers would soon be too large for differences to see anything

    def varies(self, node):
        return bool(node.uses) or any(self.varies(part) for part in node.parts if not isinstance(part, list))

    def degree(self, node):
        """How fast a value or its derivative grows with the variables in it: 0 bounded, 1 linear, 2 a product. What is bounded in a
        product still has a derivative that grows with the others."""
        parts = [part for part in node.parts if not isinstance(part, list)]
        inner = [self.degree(part) for part in parts]
        if node.call:
            return self.degrees.get(node.call, 1) * max([1, *inner])
        if node.text.startswith(SLOW):
            return 0
        if any(sign in node.text for sign in "*/") or node.text.startswith(PRODUCTS):
            inner = [max(degree, self.varies(part)) for degree, part in zip(inner, parts)]
            return sum(inner) * (3 if node.text.startswith("determinant") else 1)
        return max([1 if node.uses else 0, *inner])

    def tame(self, node):
        if node.type[0] not in ("real", "vec", "mat") or self.degree(node) < 2 or (self.scope.once and not self.scope.loops and self.chance(0.05)):
            return node
        return Node(self.pick(BOUNDED), [node], node.type)

    # ---- values by type

    def value(self, type, depth):
        """A value to be kept, passed or returned."""
        return self.tame(self.untamed(type, depth))

    def untamed(self, type, depth):
        kind = type[0]
        if kind == "real":
            return self.real(depth)
        if kind == "int":
            return self.integer(depth)
        if kind == "vec":
            return self.vector(type[1], depth)
        if kind == "mat":
            return self.matrix(type, depth)
        if kind == "arr":
            return self.array(type, depth)
        return self.struct_value(type, depth)

    def target_value(self, type, constant, depth):
        """A value to be stored where constants belong, or not."""
        return self.constant_value(type, depth) if constant and is_differentiable_type(type) else self.value(type, depth)

    def constant_value(self, type, depth):
        """A value that carries no derivative."""
        if self.may_freeze and type[0] in ("real", "vec", "mat") and self.chance(0.6):
            self.freeze()
            return Node("detach($)", [self.value(type, depth)], type, reference="frozen($)")
        node, _ = self.place(type, constant=True)
        if node and self.chance(0.5):
            return node
        if type == REAL:
            return Node("@($)", [self.integer(1)], REAL) if self.chance(0.3) else self.number()
        if type[0] == "vec":
            return Node(f"{type_text(type)}({', '.join('$' * type[1])})", [self.number() for _ in range(type[1])], type)
        if type[0] == "mat":
            return Node(f"{type_text(type)}($)", [self.number()], type)
        if type[0] == "arr":
            return Node(f"{{ {', '.join('$' * type[2])} }}", [self.constant_value(type[1], 0) for _ in range(type[2])], type)
        fields = self.structs[type[1]].fields
        return Node(f"{type[1]}({', '.join('$' * len(fields))})",
                    [self.constant_value(f.type, 0) if is_differentiable_type(f.type) else self.integer(0) for f in fields],
                    type, uses=(type[1],), make=type[1])

    def number(self):
        value = f"{self.rng.uniform(-1.6, 1.6):.2f}~"
        return Node(f"({value})" if value[0] == "-" else value, type=REAL)

    def form(self, forms, depth, make, type):
        text = self.pick(forms)
        return Node(text, [make(depth - 1) for _ in range(text.count("$"))], type)

    def real(self, depth):
        roll = self.rng.random()
        if depth <= 0 or roll < 0.2:
            node, _ = self.place(REAL)
            return node if node and self.chance(0.92) else self.number()
        if roll < 0.5:
            return self.form(ARITHMETIC, depth, self.real, REAL)
        if roll < 0.68:
            return self.form(SMOOTH, depth, self.real, REAL)
        if roll < 0.73:
            return self.form(ROUGH, depth, self.real, REAL)
        if roll < 0.78:
            return self.ternary(REAL, depth)
        if roll < 0.87:
            return self.call(REAL) or self.real(depth - 1)
        if roll < 0.94:
            return self.from_vector(depth)
        if roll < 0.96:
            return Node("(@($) * 0.25~)", [self.integer(depth - 1)], REAL)
        if roll < 0.97 and self.may_freeze:
            self.freeze()
            return Node("detach($)", [self.real(depth - 1)], REAL, reference="frozen($)")
        if roll < 0.98:
            node, constant = self.place(REAL, write=True, constant=False)
            return Node("($ = $)", [node, self.tame(self.real(depth - 1))], REAL) if node else self.real(depth - 1)
        return self.guarded(depth)

    def mixture(self, type):
        """A value that depends on many variables: what was computed must show."""
        if type[0] == "vec":
            return Node(f"{type_text(type)}({', '.join('$' * type[1])})", [self.mixture(REAL) for _ in range(type[1])], type)
        if type != REAL:
            return self.value(type, 2)
        terms = []
        for variable in self.shuffled(self.scope.variables)[:7]:
            paths = list(self.paths(variable.type, REAL))
            if paths:
                node = Node(variable.text, type=variable.type, uses=(variable.name,))
                for step in self.pick(paths):
                    node = self.step(node, step, REAL)
                terms.append(node)
        forms = ["$", "0.7~ * $", "sin($)", "$ * 1.3~", "tanh($)"]
        text = " + ".join(self.pick(forms) for _ in terms)
        return Node(f"({text} + $)", [*terms, self.real(2)], REAL) if terms else self.real(3)

    def guarded(self, depth):
        """The side not taken is not a number. (Below 1e-7 the derivative of a square root is that at 1e-7, by definition.)"""
        node, _ = self.place(REAL)
        if not node:
            return self.real(depth - 1)
        text = self.pick(["($ > 0.001~ ? sqrt($) : $)", "($ <= 0.0~ ? -0.3~ : log($) * $)", "select($ > 0.1~, log($), $)",
                          "($ > 0.2~ ? rcp($) * $ : 0.5~)", "($ < -0.3~ ? $ : acosh(1.31~ + $))"])
        parts = [node, self.real(depth - 1), node] if "acosh" in text else [node, node, self.real(depth - 1)]
        self.note("the side not taken is not a number")
        return Node(text, parts, REAL)

    def ternary(self, type, depth):
        sides = [self.untamed(type, depth - 1) for _ in range(2)]
        node = Node("($ ? $ : $)", [self.test(depth - 1), *sides], type)
        if type[0] in ("real", "vec") and self.chance(0.15):
            node.text = "select($, $, $)"
        return node

    def from_vector(self, depth):
        n = self.rng.randint(2, 4)
        v = lambda: self.vector(n, depth - 1)
        form = self.rng.randrange(7)
        if form == 0:
            return Node("dot($, $)", [v(), v()], REAL)
        if form == 1:
            return Node("length($ + 2.0~)", [v()], REAL)
        if form == 2:
            return Node("distance($, $ + 2.5~)", [v(), v()], REAL)
        if form == 3:
            m = self.pick([2, 3])
            return Node("determinant($)", [self.matrix(("mat", m, m), depth - 1)], REAL)
        if form == 4:
            m = self.matrix(("mat", 2, 2), depth - 1)
            return Node(f"$[{self.rng.randrange(2)}].{self.pick('xy')}", [m], REAL)
        return Node(f"$.{LANES[self.rng.randrange(n)]}", [v()], REAL)

    def vector(self, n, depth):
        type = ("vec", n)
        node, _ = self.place(type)
        roll = self.rng.random()
        if depth <= 0 or roll < 0.25:
            if node and self.chance(0.9):
                return node
            return self.construct(n, 0)
        if roll < 0.5:
            return self.form(VECTOR_FORMS, depth, lambda d: self.vector(n, d), type)
        if roll < 0.62:
            return self.construct(n, depth - 1)
        if roll < 0.72:
            return self.swizzled(n, depth)
        if roll < 0.80:
            return Node(self.pick(["($ * $)", "($ + $)", "($ - $)"]), [self.real(depth - 1), self.vector(n, depth - 1)], type)
        if roll < 0.83:
            return Node("lerp($, $, $)", [self.vector(n, depth - 1), self.vector(n, depth - 1), self.real(depth - 1)], type)
        if roll < 0.90:
            m = self.rng.randint(2, 3)
            if self.chance(0.5):
                return Node("mul($, $)", [self.matrix(("mat", n, m), depth - 1), self.vector(m, depth - 1)], type)
            return Node("mul($, $)", [self.vector(m, depth - 1), self.matrix(("mat", m, n), depth - 1)], type)
        if roll < 0.93 and n == 3:
            return Node("cross($, $)", [self.vector(3, depth - 1), self.vector(3, depth - 1)], type)
        if roll < 0.96:
            return self.ternary(type, depth)
        return self.call(type) or self.vector(n, depth - 1)

    def construct(self, n, depth):
        text = type_text(("vec", n))
        if n > 2 and self.chance(0.3):
            return Node(f"{text}($, {', '.join('$' * (n - 2))})",
                        [self.vector(2, depth), *(self.real(depth) for _ in range(n - 2))], ("vec", n))
        return Node(f"{text}({', '.join('$' * n)})", [self.real(depth) for _ in range(n)], ("vec", n))

    def swizzled(self, n, depth):
        m = self.rng.randint(2, 4)
        lanes = "".join(self.pick(LANES[:m]) for _ in range(n))
        return Node(f"$.{lanes}", [self.vector(m, depth - 1)], ("vec", n))

    def matrix(self, type, depth):
        rows, columns = type[1:]
        node, _ = self.place(type)
        roll = self.rng.random()
        make = lambda d: self.matrix(type, d)
        if node and (depth <= 0 or roll < 0.3):
            return node
        if depth > 0 and roll < 0.45:
            return self.form(["($ + $)", "($ - $)", "($ * $)", "sin($)", "(-$)"], depth, make, type)
        if depth > 0 and roll < 0.55:
            return Node("($ * $)", [self.real(depth - 1), make(depth - 1)], type)
        if depth > 0 and roll < 0.65:
            inner = self.rng.randint(2, 3)
            return Node("mul($, $)", [self.matrix(("mat", rows, inner), depth - 1), self.matrix(("mat", inner, columns), depth - 1)],
                        type)
        if depth > 0 and roll < 0.72:
            return Node("transpose($)", [self.matrix(("mat", columns, rows), depth - 1)], type)
        if roll < 0.85:
            return Node(f"{type_text(type)}({', '.join('$' * rows)})", [self.vector(columns, 0) for _ in range(rows)], type)
        return Node(f"{type_text(type)}({', '.join('$' * (rows * columns))})", [self.real(0) for _ in range(rows * columns)], type)

    def array(self, type, depth):
        node, _ = self.place(type)
        if node and self.chance(0.7):
            return node
        call = self.call(type) if self.chance(0.3) else None
        return call or Node(f"{{ {', '.join('$' * type[2])} }}", [self.value(type[1], depth - 1) for _ in range(type[2])], type)

    def struct_value(self, type, depth):
        node, _ = self.place(type)
        roll = self.rng.random()
        if node and roll < 0.6:
            return node
        if depth > 0 and roll < 0.7 and node:
            other, _ = self.place(type)
            return Node("($ ? $ : $)", [self.test(0), node, other], type)
        if depth > 0 and roll < 0.85:
            call = self.call(type)
            if call:
                return call
        struct = self.structs[type[1]]
        return Node(f"{struct.name}({', '.join('$' * len(struct.fields))})",
                    [self.target_value(f.type, f.constant, depth - 1) for f in struct.fields], type, uses=(struct.name,),
                    make=struct.name)

    # ---- integers and tests

    def integer(self, depth):
        roll = self.rng.random()
        if depth <= 0 or roll < 0.5:
            node, _ = self.place(INT)
            return node if node and self.chance(0.8) else Node(str(self.rng.randint(0, 5)), type=INT)
        e = lambda: self.integer(depth - 1)
        form = self.rng.randrange(9)
        if form == 0:
            return Node("int(clamp($, -4.0~, 4.0~) * 2.0~)", [self.real(depth - 1)], INT)
        if form == 1:
            return Node("($ ? $ : $)", [self.test(depth - 1), e(), e()], INT)
        if form == 2:
            return self.call(INT) or e()
        text = self.pick(["($ + $)", "($ - $)", "($ * 3)", "($ & 3)", "max($, $)", "($ % 3)"])
        return Node(text, [e() for _ in range(text.count("$"))], INT)

    def test(self, depth):
        form = self.rng.randrange(10)
        variable, _ = self.place(REAL if form < 4 else INT)     # a comparison of constants decides nothing
        if form < 4:
            text = self.pick(["$ < $", "$ > $", "$ >= $", "$ <= $"])
            return Node(text, [variable or self.real(depth), self.real(depth)], BOOL)
        left, right = variable or self.integer(depth), self.integer(depth)
        if form < 6:
            return Node(self.pick(["$ < $", "$ == $", "$ != $", "$ >= $"]), [left, right], BOOL)
        if form < 8 or depth <= 0:
            return Node(f"(($ + $) & {self.pick([1, 1, 2, 3])}) {self.pick(['==', '!='])} 0", [left, right], BOOL)
        if form == 8:
            return Node(self.pick(["($ && $)", "($ || $)"]), [self.test(depth - 1), self.test(depth - 1)], BOOL)
        return Node("!($)", [self.test(depth - 1)], BOOL)

    # ---- calls

    def call(self, want=None, callee=None):
        """A call of a known function that gives the wanted type (None: any), or of this one; or None."""
        scope = self.scope
        choices = [c for c in self.callables if (want is None or c.result == want) and scope.calls
                   and c.cost * scope.trips < 1500 and scope.cost < MOST_COST and not (c.frozen and not self.may_freeze)]
        if not choices or self.open_calls > 2:
            return None
        if callee and callee not in choices:
            return None
        callee = callee or self.pick(choices)
        self.open_calls += 1
        parts = [self.argument(param) for param in callee.params]
        self.open_calls -= 1
        if not all(parts):
            return None
        scope.cost += callee.cost * scope.trips
        scope.again &= callee.again
        scope.order = max(scope.order, callee.order)
        self.called.add(callee.name)
        if callee.frozen:
            self.freeze()
        self.note("call " + ("of a method" if "$." in callee.text else "of a function"))
        reference = None
        text = callee.text
        if callee.frozen:
            reference = f"frozen({text.removeprefix('no_diff ')})"
        return Node(text, parts, callee.result, uses=callee.uses, call=callee.name, reference=reference)

    def argument(self, param):
        if param.name == "depth":
            return Node("depth - 1", type=INT, uses=("depth",)) if self.scope.recursive else \
                Node(str(self.rng.randint(0, 3)), type=INT)
        if param.dir == "in":
            if param.generic:
                return self.place(param.type)[0]
            if param.constant and is_differentiable_type(param.type):
                return self.constant_value(param.type, 1)
            return self.value(param.type, 1)
        node, _ = self.place(param.type, write=True, constant=param.constant if is_differentiable_type(param.type) else None)
        return node
