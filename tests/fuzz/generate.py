"""Random differentiable programs, from a seed: types, helpers, and one function to be tested."""
import random

from expressions import Expressions, Variable
from held import Held
from helpers import Helpers
from higher import Higher
from patterns import Patterns
from stores import Stores
from statements import Scope, Statements
from tree import INT, REAL, VOID, Field, Function, Node, Param, Program, Struct, is_differentiable_type

MOST_LEAVES = 40    # scalars that go into a function, or come out
MOST_STATEMENTS = 24    # more make functions slow to compile, and no more likely to find something


class Generator(Expressions, Statements, Patterns, Helpers, Higher, Stores, Held):
    def __init__(self, seed):
        self.rng, self.seed = random.Random(seed), seed
        self.names, self.items, self.structs, self.callables = 0, [], {}, []
        self.degrees = {}           # of callables, by name
        self.features = set()
        self.frozen, self.may_freeze = False, self.chance(0.25)
        self.single = self.chance(0.12)
        self.order = 0              # derivatives of derivatives so far
        self.open_calls = 0         # calls in arguments of calls
        self.called = set()         # names of callables
        self.memory = None          # what the function that is being made works on: "pointer", "buffer"
        self.scope = Scope(VOID, [])
        self.productions = [
            (12, self.declare_variable), (17, self.assign), (6, self.assign_whole), (15, self.assign_compound), (5, self.assign_swizzle),
            (3, self.assign_twice), (3, self.change_integer), (2, self.post_increment), (4, self.copy_field), (6, self.call_statement),
            (6, self.leave_if), (9, self.branch), (4, self.switch), (16, self.loop), (1, self.network), (1.5, self.exit_two_deep), (2, self.drawn),
            (2, self.carried_struct), (1.5, self.same_twice), (1, self.remainder), (1, self.running_vector), (0.4, self.deferred),
            (0.7, self.tuple_value), (0.7, self.optional_value), (0.8, self.local_function), (0.5, self.local_pointer), (0.4, self.chosen_pointer), (0.4, self.walking_pointer), (0.4, self.part_of_chosen), (12, self.set_memory),
            (1.2, self.untaken), (0.8, self.array_of_constants), (0.6, self.raw_pointer), (0.6, self.wrapping_loop), (1, self.march),
            (0.3, self.many_branches)]
        self.small_productions = [self.declare_variable, self.assign, self.assign_whole, self.assign_compound, self.assign_swizzle,
                                  self.leave_if]
        self.helpers = [(5, self.plain_function), (2, self.recursive_function), (3, self.method), (2, self.generic_function), (1.5, self.throwing_function),
                        (2, self.custom_derivative), (0.7, self.custom_optional), (0.5, self.substitute), (1, self.constant_function), (2, self.interface),
                        (4, self.nested_derivative), (1.5, self.nested_operator), (1.5, self.library_operator), (0.7, self.custom_twice),
                        (1, self.pointer_function), (1, self.buffer_function), (0.7, self.function_value), (0.7, self.rich_struct),
                        (0.7, self.manual_differential), (0.7, self.tuple_and_optional), (0.7, self.associated_type),
                        (0.7, self.inherited), (0.8, self.forward_pass), (0.7, self.tensor_function), (0.7, self.own_store),
                        (0.7, self.many_optionals), (0.7, self.opened_generic), (2, self.held_object)]

    # ---- choosing

    def chance(self, p):
        return self.rng.random() < p

    def pick(self, items):
        return self.rng.choice(items)

    def pick_weighted(self, table):
        return self.rng.choices(table, [row[0] for row in table])[0]

    def shuffled(self, items):
        return self.rng.sample(items, len(items))

    def fresh(self, prefix):
        self.names += 1
        return f"{prefix}{self.names}"

    def note(self, feature):
        self.features.add(feature)

    # ---- types

    def random_type(self, depth=2):
        roll = self.rng.random()
        if roll < 0.35 or depth <= 0:
            return REAL
        if roll < 0.45:
            return INT
        if roll < 0.60:
            return ("vec", self.rng.randint(2, 4))
        if roll < 0.67:
            return ("mat", self.rng.randint(2, 3), self.rng.randint(2, 3))
        if roll < 0.82 and self.structs:
            return ("struct", self.pick(list(self.structs)))
        if roll < 0.97:
            element = self.random_type(depth - 1) if self.chance(0.4) else REAL
            return ("arr", element if element[0] != "int" else REAL, self.rng.randint(2, 4))
        return REAL

    def leaves(self, type):
        kind = type[0]
        if kind == "vec":
            return type[1]
        if kind == "mat":
            return type[1] * type[2]
        if kind == "arr":
            return type[2] * self.leaves(type[1])
        if kind == "struct":
            return sum(self.leaves(f.type) for f in self.structs[type[1]].fields)
        return 1

    def add_struct(self):
        name, fields = self.fresh("S"), []
        self_made = self.chance(0.4)    # all of it differentiable: it is its own Differential
        for k in range(self.rng.randint(1, 4)):
            type = self.random_type()
            if self_made and type == INT:
                type = REAL
            if self.leaves(type) > 9:
                type = REAL
            constant = type == INT or (not self_made and self.chance(0.15))
            fields.append(Field(f"{self.pick('abkuvw')}_{k}", type, constant))
        if all(field.constant for field in fields):
            fields.append(Field("x", REAL))
        struct = Struct(name, fields)
        self.structs[name] = struct
        self.items.append(struct)

    # ---- functions

    def header(self, limit=4, least=1):
        result = self.random_type() if self.chance(0.45) else REAL
        if self.chance(0.12):
            result = VOID
        params, budget = [], MOST_LEAVES
        for k in range(self.rng.randint(least, limit)):
            type = self.random_type()
            dir = self.rng.choices(["in", "inout", "out"], [6, 3, 1])[0]
            if self.leaves(type) > budget // 2:
                type = REAL
            budget -= self.leaves(type)
            constant = not is_differentiable_type(type) or (dir == "in" and self.chance(0.08))
            params.append(Param(dir, type, self.fresh("p"), constant))
        if not any(not p.constant and p.dir != "out" for p in params):
            params.append(Param("in", REAL, self.fresh("x")))
        if not (result != VOID and is_differentiable_type(result)) and \
                not any(not p.constant and p.dir != "in" for p in params):
            params.append(Param("inout", REAL, self.fresh("y")))
        return result, params

    def function(self, name, header, recursive=False, fields=(), attributes=("[Differentiable]",), size=None, hidden=(),
                 throws=""):
        """`fields`: more variables; `hidden`: parameters that are not among them; `throws`: the type of its errors."""
        result, params = header
        late = self.chance(0.15) and not recursive     # out parameters are set at the end only
        variables = [Variable(p.name, p.type, p.name != "depth" and not (p.constant and is_differentiable_type(p.type)), p.constant)
                     for p in params if p.dir != "out" and p.name not in hidden]
        scope = self.scope = Scope(result, list(fields) + variables)
        scope.once, scope.throws = name == "f", throws
        scope.recursive, scope.room = recursive, MOST_STATEMENTS if name == "f" else MOST_STATEMENTS // 3
        body = []
        outs = [p for p in params if p.dir == "out"]
        scope.returns = not (late and outs)
        set_outs = lambda: [Node(f"{p.name} = $;", [self.value(p.type, 1)], declares=(p.name,)) for p in outs]
        if not late:
            scope.calls = not recursive
            body += set_outs()
            scope.variables += [Variable(p.name, p.type, True, p.constant) for p in outs]
        if recursive:
            end = self.return_statement()
            body.append(Node("if (depth <= 0) #", [[end]], uses=("depth",)))
            scope.calls = True
        body += self.block(size or (self.rng.randint(3, 8) if name == "f" else self.rng.randint(2, 4)))
        if name == "f":
            body += self.use_callables()
        if late:
            body += set_outs()
        if result != VOID:
            body.append(self.return_statement())
        attributes = list(attributes)
        if self.chance(0.12):
            attributes.append(self.pick(["[PreferRecompute]", "[PreferCheckpoint]", "[ForceInline]", "[noinline]"]))
        return Function(name, result, params, body, attributes, throws=throws)

    def use_callables(self):
        """Calls of what was made and is not called so far."""
        out = []
        for callee in self.callables:
            call = self.call(callee=callee) if callee.name not in self.called and self.chance(0.8) else None
            if call:
                out.append(Node("$;", [call]) if call.type == VOID else self.declare(call.type, call))
        return out

    def program(self):
        if self.chance(0.03):
            self.note("taking turns")
            return Program(self.seed, [self.taking_turns()], {}, False, self.single)
        for _ in range(self.pick([0, 1, 1, 2])):
            self.add_struct()
        for _ in range(self.pick([0, 1, 1, 2, 2, 3, 4])):
            weight, make = self.pick_weighted(self.helpers)
            before = len(self.callables)
            make()
            if len(self.callables) > before:
                self.note(make.__name__.replace("_", " "))
        self.items.append(self.function("f", self.header(5, 2)))
        single = self.single and not self.order     # higher derivatives soon leave the range of float
        return Program(self.seed, self.items, dict(self.structs), self.frozen, single)
