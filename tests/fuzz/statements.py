"""The generator's statements: declarations, assignments, branches, and every form of loop."""
import contextlib

from expressions import BOUNDED, LANES, Variable
from tree import BOOL, INT, REAL, VOID, Node, declarator, is_differentiable_type, type_text

INDEX_TYPES = ["int"] * 12 + ["uint", "int8_t", "uint8_t", "int16_t", "uint16_t", "int64_t", "uint64_t"]
MOST_TRIPS = 150    # of nested loops, altogether


class Scope:
    """What the generator knows at one point of a function."""
    def __init__(self, result, variables):
        self.result, self.variables = result, variables
        self.loops, self.trips, self.depth = 0, 1, 0
        self.labels = []
        self.breaks, self.continues = False, False   # is there something to leave?
        self.returns = True                          # may a return stand anywhere?
        self.throws = ""                             # the type of errors
        self.calls, self.recursive = True, False
        self.once = False                            # nobody calls the function in a loop
        self.cost, self.again = 1, True              # of the function so far
        self.order = 0                               # derivatives of derivatives in what it calls
        self.room = 0                                # for so many statements; then only small ones


class Statements:
    @contextlib.contextmanager
    def inside(self, variables=(), trips=1, loop=False, breaks=None, label=None):
        """The scope of a block; what it declares is forgotten afterwards."""
        scope = self.scope
        saved = {name: getattr(scope, name) for name in ("loops", "trips", "depth", "breaks", "continues")}
        saved["labels"], saved["variables"] = list(scope.labels), list(scope.variables)
        scope.variables += variables
        scope.depth += 1
        scope.trips *= trips
        scope.loops += loop
        if loop:
            scope.breaks = scope.continues = True
        if breaks:
            scope.breaks = True
        if label:
            scope.labels.append(label)
        yield
        for name, value in saved.items():
            setattr(scope, name, value)

    def block(self, count):
        out = []
        for _ in range(count):
            out += self.statement()
        return out

    def statement(self):
        self.scope.room -= 1
        for _ in range(8):
            weight, make = self.pick_weighted(self.productions)
            if self.scope.room < 0 and make not in self.small_productions:
                continue
            made = make()
            if made:
                self.note(make.__name__.replace("_", " "))
                return made
        return self.assign() or []

    def declare(self, type, node, constant=False, low=None, high=None):
        name = self.fresh("v")
        self.scope.variables.append(Variable(name, type, True, constant, low, high))
        return Node(f"{declarator(type, name)} = $;", [self.tame(node)], uses=tuple(self.type_names(type)), declares=(name,))

    def type_names(self, type):
        while type[0] == "arr":
            type = type[1]
        return [type[1]] if type[0] == "struct" else []

    # ---- simple statements

    def declare_variable(self):
        type = self.random_type()
        if type[0] == "arr" and self.chance(0.4):
            return self.declare_and_fill(type)
        return [self.declare(type, self.value(type, 2))]

    def declare_and_fill(self, type):
        """An array whose elements are set in a loop."""
        name, i = self.fresh("v"), self.fresh("i")
        before = list(self.scope.variables)
        with self.inside([Variable(i, INT, False, False, 0, type[2] - 1)], type[2], True):
            value = self.value(type[1], 2)
        self.scope.variables = before + [Variable(name, type)]
        fill = Node(f"for (int {i} = 0; {i} < {type[2]}; {i}++) {name}[{i}] = $;", [value], uses=(f"{name} unset",), binds=(i,),
                    declares=(name,))
        return [Node(f"{declarator(type, name)};", declares=(f"{name} unset",), uses=tuple(self.type_names(type))), fill]

    def assign(self):
        place, constant = self.place(REAL, write=True)
        if not place:
            return None
        if constant:
            return [Node("$ = $;", [place, self.constant_value(REAL, 1)])]
        return [Node("$ = $;", [place, self.tame(self.real(3))])]

    def assign_whole(self):
        """A vector, a row, a struct, an array at once."""
        place, constant = self.place(self.random_type(), write=True)
        if not place or (constant and place.type[0] == "arr"):
            return None
        value = self.target_value(place.type, constant, 2)
        return [Node("$ = $;", [place, value])]

    def assign_compound(self):
        type = self.pick([REAL, REAL, REAL, ("vec", self.rng.randint(2, 4))])
        place, constant = self.place(type, write=True, constant=False)
        if not place:
            return None
        roll = self.rng.random()
        if roll < 0.08 and type == REAL:
            return [Node(self.pick(["$++;", "$--;", "++$;"]), [place])]
        if roll < 0.5:
            return [Node(self.pick(["$ += $;", "$ -= $;"]), [place, self.value(type, 2)])]
        if roll < 0.8:
            return [Node("$ *= $;", [place, Node("cos($)", [self.value(type, 2)], type)])]
        divisor = "(2.5~ + sin($))" if self.scope.loops else "(1.5~ + sin($))"      # repeated, it must not make values grow
        return [Node("$ /= $;", [place, Node(divisor, [self.value(type, 1)], type)])]

    def assign_swizzle(self):
        n = self.rng.randint(2, 4)
        place, constant = self.place(("vec", n), write=True, constant=False)
        if not place:
            return None
        lanes = self.rng.sample(LANES[:n], self.rng.randint(2, n))
        operator = self.pick(["=", "=", "=", "+=", "*="])
        value = self.tame(self.vector(len(lanes), 2))
        if operator == "*=":
            value = Node("cos($)", [value], value.type)
        return [Node(f"$.{''.join(lanes)} {operator} $;", [place, value])]

    def assign_twice(self):
        """An element is read, overwritten and read again; through a moving index."""
        arrays = [v for v in self.scope.variables if v.type[0] == "arr" and v.type[1] == REAL and v.writable and not v.constant]
        if not arrays:
            return None
        a = self.pick(arrays)
        at = self.index(a.type[2])

        def element():
            node = Node(f"{a.name}[$]", [at], REAL, uses=(a.name,))
            node.place = True
            return node
        first = self.declare(REAL, Node("($ * $)", [element(), self.real(1)], REAL))
        name = first.declares[0]
        again = Node(f"(sin({name}) + $)", [element()], REAL, uses=(name,))
        if self.scope.loops:
            again = Node(self.pick(BOUNDED), [again], REAL)
        return [first, Node("$ = $;", [element(), again]),
                Node("$ += $;", [element(), Node(f"$ * sin({name})", [element()], REAL, uses=(name,))])]

    def change_integer(self):
        places = [v for v in self.scope.variables if v.type == INT and v.writable]
        if not places:
            return None
        v = self.pick(places)
        node = Node(v.text, type=INT, uses=(v.name,))
        node.place = True
        if self.chance(0.5):
            return [Node(self.pick(["$++;", "$ += 2;", "$--;"]), [node])]
        return [Node("$ = ($) % 7;", [node, self.integer(2)])]

    def post_increment(self):
        """The index changes in the very expression that uses it."""
        ints = [v for v in self.scope.variables if v.type == INT and v.writable]
        arrays = [v for v in self.scope.variables if v.type[0] == "arr" and v.type[1] == REAL and v.writable and not v.constant]
        if not ints or not arrays:
            return None
        k, a = self.pick(ints), self.pick(arrays)
        return [Node(f"{a.name}[uint({k.name}++) % {a.type[2]}] {self.pick(['+= $', '*= cos($)', '= $'])};", [self.tame(self.real(2))],
                     uses=(k.name, a.name))]

    def copy_field(self):
        """s.a = s.b, on parameters too."""
        structs = [v for v in self.scope.variables if v.type[0] == "struct" and v.writable]
        self.rng.shuffle(structs)
        for v in structs:
            fields = self.structs[v.type[1]].fields
            pairs = [(a, b) for a in fields for b in fields if a is not b and a.type == b.type and not a.constant]
            if pairs:
                a, b = self.pick(pairs)
                return [Node(f"{v.name}.{a.name} = {v.name}.{b.name};",
                             uses=(v.name, f"{v.type[1]}.{a.name}", f"{v.type[1]}.{b.name}"))]
        return None

    def call_statement(self):
        node = self.call()
        if not node:
            return None
        if node.type == VOID or self.chance(0.3):
            return [Node("$;", [node])]
        return [self.declare(node.type, node)]

    # ---- branches and jumps

    def leave(self):
        """The statement that ends a block early, if there is something to leave."""
        scope, choices = self.scope, []
        if scope.breaks:
            choices += [Node("break;", uses=("<break>",))] * 2
        if scope.continues:
            choices += [Node("continue;", uses=("<continue>",))] * 2
        choices += [Node(f"break {label};", uses=(label,)) for label in scope.labels]
        if scope.returns and (scope.loops or self.chance(0.4)):
            choices.append(None)
        if scope.throws:
            choices.append(Node(f"throw {scope.throws}($, $, $);", [self.tame(self.mixture(REAL)), self.value(("vec", 2), 1), self.integer(1)],
                                uses=(scope.throws,)))
        if not choices:
            return None
        return self.pick(choices) or self.return_statement()

    def return_statement(self):
        if self.scope.result == VOID:
            return Node("return;")
        return Node("return $;", [self.tame(self.mixture(self.scope.result)) if self.chance(0.6) else self.value(self.scope.result, 2)])

    def leave_if(self):
        jump = self.leave()
        return [Node("if ($) #", [self.test(1), [jump]])] if jump else None

    def branch(self):
        if self.scope.depth > 3:
            return None
        test, parts = self.test(2), []
        forms = self.rng.choice(["if ($) #", "if ($) # else #", "if ($) # else if ($) # else #"])
        for hole in forms:
            if hole == "$":
                parts.append(test if not parts else self.test(1))
            elif hole == "#":
                with self.inside():
                    body = self.block(self.rng.randint(1, 3))
                    jump = self.leave() if self.chance(0.08) else None
                    parts.append(body + ([jump] if jump else []))
        return [Node(forms, parts)]

    def switch(self):
        """With fall-through, a default anywhere or none, labels that share a block."""
        if self.scope.depth > 3:
            return None
        cases = self.rng.sample(range(4), self.rng.randint(1, 3))
        heads = [f"case {k}:" for k in cases]
        if self.chance(0.7):
            heads.insert(self.rng.randint(0, len(heads)), "default:")
        if self.chance(0.2):
            heads[0] = "case 7: " + heads[0]
        text, parts = "switch ($) { ", [Node("($ & 3)", [self.integer(2)])]
        for head in heads:
            with self.inside(breaks=True):
                body = self.block(self.rng.randint(1, 2))
                if self.chance(0.2):
                    jump = self.leave()
                    body.append(Node("if ($) #", [self.test(1), [jump]]))
                if self.chance(0.6):
                    body.append(Node("break;", uses=("<break>",)))
            text += f"{head} # "
            parts.append(body)
        return [Node(text + "}", parts, binds=("<break>",))]

    # ---- loops

    def loop(self):
        if self.scope.depth > 3 or self.scope.trips * 5 > MOST_TRIPS:
            return None
        forms = [(8, self.loop_up), (4, self.loop_down), (3, self.loop_while), (2, self.loop_do), (2, self.loop_forever),
                 (1, self.loop_real), (1, self.loop_two), (2, self.loop_moved), (1, self.loop_until)]
        weight, make = self.pick_weighted(forms)
        made = make()
        self.note(make.__name__.replace("_", " "))
        return made

    def loop_body(self, variables, trips, extra=()):
        """Statements of a loop, and the label if one is used."""
        label = self.fresh("l") if self.chance(0.2) else None
        with self.inside(variables, trips, True, label=label):
            body = self.block(self.rng.randint(1, 4))
            if self.chance(0.2):
                body = self.keep_last(body)
        return list(extra) + body, label

    def keep_last(self, body):
        """A value of the last iteration, used after the loop."""
        place, _ = self.place(REAL, write=True, constant=False)
        return body + [Node("$ = $;", [place, self.tame(self.real(1))])] if place else body

    def make_loop(self, text, parts, label, binds=(), uses=(), known=False):
        attribute = ""
        if self.chance(0.15):
            attribute = self.pick(["[MaxIters(2)] ", "[MaxIters(8)] ", "[loop] ", "[Checkpoint(2)] ", "[Checkpoint(4)] "] + (["[ForceUnroll] "] * 3 if known else []))
        if label:
            attribute, binds = f"{attribute}{label}: ", (*binds, label)
        return Node(attribute + text, parts, uses=uses, binds=(*binds, "<break>", "<continue>"))

    def index_variable(self, kind, low=None, high=None):
        name = self.fresh("i")
        return name, Variable(name, INT, False, False, low, high, None if kind == "int" else f"int({name})")

    def loop_up(self):
        kind = self.pick(INDEX_TYPES)
        signed = not kind.startswith("u")
        low = self.pick([0, 0, 0, 0, 1, -2 if signed else 2])
        count = self.rng.randint(1, 5)
        step = self.pick([1, 1, 1, 2, 3])
        start, bound, stride = Node(str(low)), Node(str(low + count)), Node(str(step))
        fixed = self.chance(0.55) or kind not in ("int", "int64_t")
        i, variable = self.index_variable(kind, low, low + count - 1)
        if not fixed:
            variable.low = variable.high = None
            if self.chance(0.3):
                start = Node("(($ & 3) - 2)", [self.integer(1)])
            if self.chance(0.8):
                bound = Node(f"($ & {self.pick([3, 3, 7])})", [self.integer(1)])
            if self.chance(0.3):
                stride = Node("(1 + ($ & 1))", [self.integer(1)])
        compare = self.pick(["<", "<", "<", "<=" if not fixed else "<", "!=" if fixed and step == 1 else "<"])
        body, label = self.loop_body([variable], 5)
        advance = f"{i}++" if step == 1 and stride.text == "1" else f"{i} += $"
        text = f"for ({kind} {i} = $; {i} {compare} $; {advance}) #"
        parts = [start, bound] + ([stride] if "$" in advance else [])
        return [self.make_loop(text, parts + [body], label, (i,), known=fixed)]

    def loop_down(self):
        kind = self.pick(["int", "int", "int", "int64_t", "int8_t", "int16_t"])
        high = self.rng.randint(1, 4)
        fixed = self.chance(0.5)
        last = self.pick([0, 0, 1])
        i, variable = self.index_variable(kind, 0 if fixed else None, high if fixed else None)
        start = Node(str(high)) if fixed else Node(f"{kind}($ & 3)", [self.integer(1)])
        body, label = self.loop_body([variable], 4)
        advance = self.pick([f"{i}--", f"{i}--", f"--{i}", f"{i} -= 2"])
        text = f"for ({kind} {i} = $; {i} >= {last}; {advance}) #"
        return [self.make_loop(text, [start, body], label, (i,), known=fixed)]

    def loop_while(self):
        i, variable = self.index_variable("int")
        count = self.rng.randint(1, 5)
        test = self.test(1)
        body, label = self.loop_body([variable], count, [Node(f"{i}++;", uses=(i,))])
        self.scope.variables.append(variable)
        return [Node(f"int {i} = 0;", declares=(i,)),
                self.make_loop(f"while ({i} < {count} && ($)) #", [test, body], label, uses=(i,))]

    def loop_do(self):
        i, variable = self.index_variable("int")
        count = self.rng.randint(1, 4)
        test = self.test(1)
        body, label = self.loop_body([variable], count, [Node(f"{i}++;", uses=(i,))])
        self.scope.variables.append(variable)
        return [Node(f"int {i} = 0;", declares=(i,)),
                self.make_loop(f"do # while ({i} < {count} && ($));", [body, test], label, uses=(i,))]

    def loop_forever(self):
        i, variable = self.index_variable("int")
        count = self.rng.randint(1, 4)
        stop = Node(f"if ({i}++ >= {count} || ($)) break;", [self.test(1)], uses=(i, "<break>"))
        body, label = self.loop_body([variable], count, [stop])
        self.scope.variables.append(variable)
        head = self.pick(["while (true) #", "for (;;) #"])
        return [Node(f"int {i} = 0;", declares=(i,)), self.make_loop(head, [body], label)]

    def loop_real(self):
        """The index is a real number, its stride or bound may be differentiable."""
        t = self.fresh("t")
        stride = Node("(0.6~ + 0.2~ * sin($))", [self.real(1)]) if self.chance(0.4) else Node("0.3~")
        start = self.number() if self.chance(0.5) else Node("sin($)", [self.real(0)], REAL)
        body, label = self.loop_body([Variable(t, REAL, False)], 5)
        text = f"for (@ {t} = $; {t} < {self.pick(['1.05', '0.77'])}~; {t} += $) #"
        return [self.make_loop(text, [start, stride, body], label, (t,))]

    def loop_two(self):
        i, first = self.index_variable("int", 0, 2)
        j, second = self.index_variable("int", 2, 5)
        body, label = self.loop_body([first, second], 3)
        return [self.make_loop(f"for (int {i} = 0, {j} = 5; {i} < {j}; {i}++, {j}--) #", [body], label, (i, j))]

    def loop_moved(self):
        """The body moves the index."""
        i, variable = self.index_variable("int")
        move = Node(f"if ($) {i} += {self.rng.randint(1, 2)};", [self.test(1)], uses=(i,))
        body, label = self.loop_body([variable], 6)
        body.insert(self.rng.randint(0, len(body)), move)
        if self.chance(0.4):
            body.insert(0, Node(f"if ({i} == 2) {{ {i} = 4; continue; }}", uses=(i, "<continue>")))
        return [self.make_loop(f"for (int {i} = {self.pick([0, -1])}; {i} < 6; {i}++) #", [body], label, (i,))]

    def loop_until(self):
        """A differentiable value decides when the loop ends."""
        y = self.declare(REAL, Node("(0.5~ + 0.3~ * sin($))", [self.real(1)], REAL))
        name = y.declares[0]
        self.scope.variables[-1].writable = False
        grow = Node(f"{name} += 0.4~ + 0.2~ * sin($);", [self.real(1)], uses=(name,))
        body, label = self.loop_body([], 6, [grow])
        limit = self.pick(["1.93~", "2.61~"])
        text = self.pick([f"while ({name} < {limit}) #", f"do # while ({name} < {limit});"])
        return [y, self.make_loop(text, [body], label, uses=(name,))]
