"""Shapes of code that are known to break compilers of this kind, as statements, and one as a function."""
from expressions import Variable
from tree import REAL, Function, Node, Param, declarator, is_differentiable_type, type_text


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

    def many_branches(self):
        """More branches in a row than what is read before the first can wait for the last (opt/sink.c)."""
        if self.scope.loops or self.scope.depth > 1 or self.scope.trips > 1:
            return None
        declared = [self.declare(REAL, self.real(1)) for _ in range(4)]
        names = [node.declares[0] for node in declared]
        forms = ["if (A < C~) B = 0.5~ * B + 0.3~ * sin(D); else B = 0.75~ * B;", "B = 0.8~ * B + (A > C~ ? 0.2~ * D : 0.0~);", "if (A > C~) B += 0.1~ * cos(D);",
                 "if (A < C~ && D > C~) { B = 0.4~ * D - 0.3~ * B; } else if (A > 0.5~) D = 0.9~ * D;", "B += A < C~ ? 0.0~ : 0.1~ * A * sin(D);"]
        lines = []
        for _ in range(self.rng.randint(64, 80)):
            a, b, d = (self.pick(names) for _ in range(3))
            text = self.pick(forms).replace("C~", f"{self.rng.uniform(-0.8, 0.8):.3f}~").replace("A", a).replace("B", b).replace("D", d)
            lines.append(Node(text, uses=(a, b, d)))
        return declared + lines

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

    def drawn(self):
        """Layers drawn over each other, as many as are known when it runs: rounds that go past most of it (autodiff/taken.c), by one test or two."""
        if self.scope.trips * 8 > 100 or self.scope.depth > 2:
            return None
        left, total, a = self.declare(REAL, Node("1.0~", type=REAL)), self.declare(REAL, self.real(1)), self.fresh("a")
        light, color = left.declares[0], total.declares[0]
        i, variable = self.index_variable("int", 0, 7)
        with self.inside([variable], 8, True):
            tests = [Node(f"if ({a} < {self.rng.uniform(-0.5, 0.5):.2f}~) continue;", uses=(a, "<continue>"))]
            body = [Node(f"@ {a} = sin($ + {i} * {light});", [self.real(2)], declares=(a,), uses=(i, light))]
            if self.chance(0.3):
                body += self.block(1)
            body += tests
            if self.chance(0.4):
                body += self.block(1)
            if self.chance(0.4):
                body.append(Node(f"if (cos({a} * 3~ + {i}) < 0~) continue;", uses=(a, i, "<continue>")))
            body.append(Node(f"{color} += {light} * {a};", uses=(color, light, a)))
            if self.chance(0.4):
                body += self.block(1)
            body.append(Node(f"{light} *= 1~ - 0.4~ * {a};", uses=(light, a)))
            if self.chance(0.5):
                body.append(Node(f"if ({light} < 0.6~) break;", uses=(light, "<break>")))
            if self.chance(0.2):
                body += self.block(1)
        rounds = Node(f"for (int {i} = 0; {i} < 1 + ($ & 7); {i}++) #", [self.integer(1), body], binds=(i, "<break>", "<continue>"))
        return [left, total, rounds]

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
        name, assigned = self.fresh("t"), self.chance(0.5)
        values = [self.value(REAL, 2), self.value(("vec", 2), 1)]
        declared = Node(f"{'var' if assigned else 'let'} {name} = makeTuple($, $);", values, declares=(name,))
        self.scope.variables += [Variable(f"{name}", REAL, assigned, text=f"{name}._0"),
                                 Variable(f"{name}", ("vec", 2), assigned, text=f"{name}._1")]
        return [declared]

    def optional_value(self):
        name, inner = self.fresh("t"), self.fresh("v")
        place, _ = self.place(REAL, write=True, constant=False)
        if not place:
            return None
        type = self.pick([REAL, ("vec", 2)])
        declared = Node(f"Optional<{type_text(type)}> {name} = none;", declares=(name,))
        with self.inside([Variable(inner, type, False)]):
            use = Node("$ = $;", [place, self.tame(self.real(2))])
        return [declared, Node(f"if ($) {name} = $;", [self.test(1), self.value(type, 2)], uses=(name,)),
                Node(f"if (let {inner} = {name}) #", [[use]], uses=(name,), binds=(inner,))]

    def local_function(self):
        """A lambda that keeps what it sees; called afterwards, when that may have changed."""
        place, _ = self.place(REAL, write=True, constant=False)
        if not place or self.memory:
            return None
        name, t = self.fresh("l"), self.fresh("t")
        variables = self.scope.variables
        self.scope.variables = [Variable(v.name, v.type, False, v.constant, v.low, v.high, v.text) for v in variables]
        self.scope.variables.append(Variable(t, REAL, False))
        value = self.tame(self.real(2))
        self.scope.variables = variables
        declared = Node(f"let {name} = (@ {t}) => $;", [value], binds=(t,), declares=(name,))
        between = self.assign() if self.chance(0.5) else None
        call = Node(f"{name}($)", [self.real(1)], REAL, uses=(name,))
        return [declared, *(between or []), Node(self.pick(["$ = $;", "$ = 0.5~ * sin($);"]), [place, call])]

    def local_pointer(self):
        """The address of a local variable or element; what it points to is changed both ways."""
        found = [v for v in self.scope.variables if v.name[0] == "v" and v.text == v.name and v.writable and not v.constant
                 and (v.type == REAL or v.type[0] == "arr" and v.type[1] == REAL)]
        if not found:
            return None
        v, name = self.pick(found), self.fresh("q")
        self.scope.again = False
        at = [self.index(v.type[2])] if v.type != REAL else []
        declared = Node(f"DiffPtr<@> {name} = {{ &{v.name}{'[$]' if at else ''} }};", at, uses=(v.name,), declares=(name,))
        value = self.tame(self.real(2))
        between = self.assign() if self.chance(0.5) else None
        self.scope.variables.append(Variable(name, REAL, False, text=f"{name}.get()"))
        return [declared, Node(f"{name}.set($);", [value], uses=(name,)), *(between or [])]

    def chosen_pointer(self):
        """The address of one of two variables or elements, chosen when the program runs."""
        found = [v for v in self.scope.variables if v.name[0] == "v" and v.text == v.name and v.writable and not v.constant
                 and (v.type == REAL or v.type[0] == "arr" and v.type[1] == REAL)]
        if len(found) < 2:
            return None
        places = [v.name if v.type == REAL else f"{v.name}[{self.rng.randrange(v.type[2])}]" for v in self.rng.sample(found, 2)]
        uses, name = tuple(v.name for v in found if any(p.split("[")[0] == v.name for p in places)), self.fresh("q")
        self.scope.again = False
        declared = Node(f"DiffPtr<@> {name} = {{ &{places[0]} }};", uses=uses, declares=(name,))
        chosen = Node("if ($) #", [self.test(1), [Node(f"{name} = {{ &{places[1]} }};", uses=(name, *uses))]])
        value = self.tame(self.real(2))
        between = self.assign() if self.chance(0.5) else None
        self.scope.variables.append(Variable(name, REAL, False, text=f"{name}.get()"))
        return [declared, chosen, Node(f"{name}.set($);", [value], uses=(name,)), *(between or [])]

    def walking_pointer(self):
        """The address of an element whose index is computed in the loop that chooses it, or that is moved on there."""
        found = [v for v in self.scope.variables if v.name[0] == "v" and v.text == v.name and v.writable and not v.constant
                 and v.type[0] == "arr" and v.type[1] == REAL and v.type[2] > 1]
        if not found:
            return None
        array, name, i = self.rng.choice(found), self.fresh("q"), self.fresh("i")
        length, walks = array.type[2], self.chance(0.4)
        first, rounds = (0, length - 1) if walks else (self.rng.randrange(length), self.rng.randrange(1, 5))
        step = f"{name} = {{ {name}.address + 1 }};" if walks else \
               f"{name} = {{ &{array.name}[({i} * {self.rng.randrange(1, 6)} + {first}) % {length}] }};"
        self.scope.again = False
        uses = (name, array.name)
        declared = Node(f"DiffPtr<@> {name} = {{ &{array.name}[{first}] }};", uses=(array.name,), declares=(name,))
        body = [Node("if ($) #", [self.test(1), [Node(step, uses=uses)]]), Node(f"{name}.set($);", [self.tame(self.real(2))], uses=uses)]
        loop = Node(f"for (int {i} = 0; {i} < {rounds}; {i}++) #", [body], uses=uses)
        self.scope.variables.append(Variable(name, REAL, False, text=f"{name}.get()"))
        return [declared, loop]

    def part_of_chosen(self):
        """The address of a lane of a vector to which an address leads that was itself chosen when the program runs."""
        if self.scope.loops:
            return None
        vectors, row, at, i = self.fresh("w"), self.fresh("q"), self.fresh("q"), self.fresh("i")
        self.scope.again = False
        values = [self.tame(self.real(1)) for _ in range(4)]
        declared = Node(f"@2 {vectors}[2] = {{ @2($, $), @2($, $) }};", values, declares=(vectors,))
        chooses = Node("if ($) #", [self.test(1), [Node(f"{row} = &{vectors}[({i} + 1) % 2];", uses=(row, vectors))]])
        moves = Node("if ($) #", [self.test(1), [Node(f"{at} = &(*{row})[{i} % 2];", uses=(row, at))]])
        stored = Node(f"*{at} = $ + 0.5~ * *{at};", [self.tame(self.real(2))], uses=(at,))
        body = self.pick([[chooses, moves, stored], [moves, chooses, stored], [chooses, Node(f"{at} = &{row}->y;", uses=(row, at)), moves, stored]])
        loop = Node(f"for (int {i} = 0; {i} < {self.rng.randrange(1, 4)}; {i}++) #", [body], uses=(row, at, vectors))
        self.scope.variables.append(Variable(vectors, REAL, False, text=f"dot({vectors}[0], {vectors}[1])"))
        return [declared, Node(f"@2* {row} = &{vectors}[0];", uses=(vectors,), declares=(row,)),
                Node(f"@* {at} = &{vectors}[1].x;", uses=(vectors,), declares=(at,)), loop]

    def untaken(self):
        """What is infinite, or overflows, on the side that is not chosen."""
        place, _ = self.place(REAL, write=True, constant=False)
        if not place:
            return None
        wild = self.pick(["log($ - $)", "rsqrt(abs($ - $))", "exp(900.0~ + abs($)) * $", "1.0~ / ($ - $)", "pow(abs($ - $), 0.5~)",
                          "exp(700.0~ + abs($)) * exp(700.0~ + $)", "acos(2.0~ + abs($) * $)", "1.0~ / (($ - $) * 1e-30~)", "pow(1e30~, 40.0~ + abs($)) * $",
                          "sqrt(-1.0~ - abs($)) * $", "normalize(@2($ - $, 0.0~)).x"])
        same = self.real(1)
        chosen = self.pick(["$ = $ > 1e6~ ? W : $;", "$ = select($ > 1e6~, W, $);", "$ = select($ < 1e6~, $, W);",
                            "if ($ > 1e6~) #", "for (@ once = $; once > 1e6~; once -= 1e7~) #"])
        value, test = self.tame(self.real(2)), Node("sin($)", [self.real(1)], REAL)      # not even where values grow
        if "#" in chosen:
            return [Node(chosen, [test, [Node(f"$ = {wild};", [place, same, same])]], binds=("once", "<break>", "<continue>"))]
        parts = [place, test, value, same, same] if "< 1e6" in chosen else [place, test, same, same, value]
        return [Node(chosen.replace("W", wild), parts)]

    def array_of_constants(self):
        """An array that carries a derivative is assigned one that does not, all at once."""
        found = [v for v in self.scope.variables if v.name[0] == "v" and v.text == v.name and v.writable and not v.constant
                 and v.type[0] == "arr" and v.type[1] == REAL]
        if not found:
            return None
        v, name = self.pick(found), self.fresh("k")
        values = ", ".join(f"{self.rng.uniform(-1, 1):.3f}~" for _ in range(v.type[2]))
        declared = Node(f"{declarator(v.type, name)} = {{ {values} }};", declares=(name,))
        copied = Node(f"{v.name} = {name};", uses=(v.name, name))
        return [declared, Node("if ($) #", [self.test(1), [copied]]) if self.chance(0.5) else copied]

    def raw_pointer(self):
        """The address of an array in the function: its elements are read and written through it, one by one or in a loop that it walks."""
        found = [v for v in self.scope.variables if v.name[0] == "v" and v.text == v.name and v.writable and not v.constant
                 and v.type[0] == "arr" and v.type[1] == REAL]
        if not found or self.scope.loops:
            return None
        v, name = self.pick(found), self.fresh("z")
        self.scope.again = False
        declared = Node(f"@* {name} = &{v.name}[0];", uses=(v.name,), declares=(name,))
        at, from_ = self.rng.randrange(v.type[2]), self.rng.randrange(v.type[2])
        constant = f"{self.rng.uniform(-1, 1):.3f}~"
        walk = self.fresh("z")
        stored = self.pick([
            Node(f"{name}[{at}] = {constant};", uses=(name,)),
            Node(f"{name}[{at}] = $;", [self.tame(self.real(2))], uses=(name,)),
            Node(f"*({name} + {at}) *= $;", [self.tame(self.real(1))], uses=(name,)),
            Node(f"for (@* {walk} = {name}; {walk} != &{v.name}[0] + {v.type[2]}; {walk}++) *{walk} = tanh(*{walk} * $ - {constant});",
                 [self.tame(self.real(1))], uses=(name, v.name))])
        self.scope.variables.append(Variable(name, REAL, False, text=f"{name}[{from_}]"))
        return [declared, stored] if self.chance(0.7) else [declared]

    def wrapping_loop(self):
        """A counter that goes past the end of its type."""
        if self.scope.trips * 6 > 100 or self.scope.depth > 2:
            return None
        i = self.fresh("i")
        head = self.pick([f"for (uint8_t {i} = 200; {i} >= 200; {i} += 23)", f"for (int8_t {i} = 100; {i} > 0; {i} += 9)",
                          f"for (int {i} = 0; {i} >= 0; {i} += 600000000)", f"for (uint {i} = 3; {i} < 10; {i}--)"])
        with self.inside([], 4, True):
            body = self.block(2)
        return [Node(f"{head} #", [body], binds=(i, "<break>", "<continue>"))]

    def march(self):
        """A loop that ends by itself and carries one number."""
        if self.scope.trips * 6 > 100 or self.scope.depth > 2:
            return None
        declared = self.declare(REAL, self.tame(self.real(2)))
        s, n = declared.declares[0], self.fresh("n")
        with self.inside([], 6, True):
            body = [Node(f"{s} = {s} * $ + $;", [self.tame(self.real(1)), self.tame(self.real(2))], uses=(s,))]
            if self.chance(0.4):
                body.append(Node(f"if ($) {s} = sin({s}) - $;", [self.test(1), self.tame(self.real(1))], uses=(s,)))
            body.append(Node(f"if (abs({s}) > 2.5~ || ++{n} > 5) break;", uses=(s, n)))
        loop = Node("while (true) #", [body], binds=("<break>", "<continue>"), uses=(n,))
        return [declared, Node(f"int {n} = 0;", declares=(n,)), loop]

    def taking_turns(self):
        """A function under test. Its arrays have more elements than rounds are run again at once; they are written from each other, replaced, summed."""
        n, arrays = self.pick([34, 40]), ["a", "b", "c"]

        def at(i):
            return self.pick([i, f"({i} + {self.rng.randint(1, 9)}) % {n}", f"({i} * {self.pick([2, 3, 7])}) % {n}", f"{n - 1} - {i}"])

        def term(i):
            element = f"{self.pick(arrays)}[{at(i)}]"
            return self.pick([element, f"sin({element})", f"{self.pick('xys')} * 0.1~", f"({element} - {self.pick(arrays)}[{at(i)}] * 0.2~)"])

        def statement(depth):
            i, kind = self.fresh("i"), self.rng.randrange(6 if depth < 2 else 4)
            head, to = f"for (int {i} = 0; {i} < {n}; {i}++)", self.pick(arrays)
            if kind == 0:
                return f"{head} {to}[{self.pick([i, at(i)])}] = clamp({term(i)} * {term(i)} + {term(i)}, -2.0~, 2.0~) * 0.7~;"
            if kind == 1:
                return f"{head} {self.pick('su')} += {term(i)} * {term(i)} * 0.02~;"
            if kind == 2:
                return f"{{ {declarator(('arr', REAL, n), 'next')}; {head} next[{i}] = {term(i)} * {term(i)} * 0.4~; {to} = next; }}"
            if kind == 3:
                return self.pick([f"{to} = {self.pick(arrays)};", f"s = sin(s) + {to}[{self.rng.randrange(n)}] * u * 0.3~;"])
            inner = " ".join(statement(depth + 1) for _ in range(self.rng.randint(1, 3)))
            around = self.pick([f"for (int {i} = 0; {i} < {self.rng.randint(2, 3)}; {i}++)", f"if ({self.pick('xy')} > 0.1~)"])
            return f"{around} {{ {inner} }}"

        declared = [Node("; ".join(declarator(("arr", REAL, n), array) for array in arrays) + "; @ s = x; @ u = y;", declares=(*arrays, "s", "u")),
                    Node(f"for (int i = 0; i < {n}; i++) {{ a[i] = sin(x * @(i)); b[i] = cos(y + @(i)); c[i] = x * 0.01~ * @(i); }}", uses=arrays)]
        middle = [Node(statement(0), uses=(*arrays, "s", "u")) for _ in range(self.rng.randint(3, 6))]
        end = Node(f"for (int i = 0; i < {n}; i++) s += {term('i')} * {term('i')} * 0.1~;", uses=(*arrays, "s"))
        params = [Param("in", REAL, "x"), Param("in", REAL, "y")]
        return Function("f", REAL, params, [*declared, *middle, end, Node("return s + u;", uses=("s", "u"))], ["[Differentiable]"])
