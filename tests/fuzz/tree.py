"""Programs as trees: what the generator makes, what the shrinker takes apart, and how they become text.

A Node is text with holes: `$` is the next part, `#` the next part as a block (a list of nodes), `@` the type of real
numbers, `~` the suffix of its literals. Every name that a node needs stands in `uses`: a variable, a function, `S.field`, a
label, `<break>`. What a node makes known is in `declares` (to the nodes after it) and `binds` (to its parts). So a tree
can be changed blindly and then asked whether it still makes sense: `is_sound`.

Types are tuples: ("real",) ("int",) ("bool",) ("vec", n) ("mat", rows, columns) ("arr", element, n) ("struct", name), and
("other", text) for anything that the generator only passes on.
"""
import re

REAL, INT, BOOL, VOID = ("real",), ("int",), ("bool",), ("void",)
INDEX = ("index",)      # an int that is in range where it stands: no other may take its place


class Node:
    __slots__ = ("text", "parts", "type", "uses", "declares", "binds", "call", "make", "reference", "place")

    def __init__(self, text, parts=(), type=None, uses=(), declares=(), binds=(), call=None, make=None, reference=None):
        self.text, self.parts, self.type = text, list(parts), type
        self.uses, self.declares, self.binds = tuple(uses), tuple(declares), tuple(binds)
        self.call = call            # the function whose parameters the parts are
        self.make = make            # the struct whose fields the parts are
        self.reference = reference  # text in the reference program: what is constant for derivatives is frozen there
        self.place = False          # it is written to

    def with_parts(self, parts):
        out = Node(self.text, parts, self.type, self.uses, self.declares, self.binds, self.call, self.make, self.reference)
        out.place = self.place
        return out


class Param:
    def __init__(self, dir, type, name, constant=False):
        self.dir, self.type, self.name = dir, type, name
        self.constant = constant    # no_diff, or of a type that has no derivative
        self.generic = False        # its type is to be inferred: an initialiser list will not do

    @property
    def keyword(self):
        no_diff = "no_diff " if self.constant and is_differentiable_type(self.type) else ""
        return no_diff + ("" if self.dir == "in" else self.dir + " ")


class Function:
    """A free function, or a method of the struct that holds it."""
    def __init__(self, name, result, params, body, attributes=("[Differentiable]",), word="", throws=""):
        self.name, self.result, self.params, self.body = name, result, params, body
        self.attributes, self.word = attributes, word
        self.throws = throws        # the type of its errors


class Field:
    def __init__(self, name, type, constant=False):
        self.name, self.type, self.constant = name, type, constant


class Struct:
    def __init__(self, name, fields, bases="IDifferentiable", methods=()):
        self.name, self.fields, self.bases, self.methods = name, fields, bases, list(methods)


class Text:
    """A declaration that is not taken apart: all or nothing."""
    def __init__(self, text, declares, uses=(), reference=None):
        self.text, self.declares, self.uses = text, tuple(declares), tuple(uses)
        self.reference = reference      # its text in the reference program, if that is another


class Program:
    def __init__(self, seed, items, structs, frozen, single):
        self.seed = seed            # of the samples
        self.items = items          # the last one is the function under test
        self.structs = structs      # name -> Struct: types that parameters may have
        self.frozen = frozen        # derivatives are cut on purpose: differences need the reference
        self.single = single        # in float, the reference in double

    def with_items(self, items):
        structs = {item.name: item for item in items if isinstance(item, Struct)}
        return Program(self.seed, items, {**self.structs, **structs}, self.frozen, self.single)

    @property
    def main(self):
        return self.items[-1]

    @property
    def has_reference(self):
        return self.frozen or self.single


def is_differentiable_type(type):
    if type[0] == "arr":
        return is_differentiable_type(type[1])
    return type[0] in ("real", "vec", "mat", "struct")


# ---- text

def type_text(type):
    kind = type[0]
    if kind == "real":
        return "@"
    if kind == "vec":
        return f"@{type[1]}"
    if kind == "mat":
        return f"@{type[1]}x{type[2]}"
    if kind == "arr":
        return f"Array<{type_text(type[1])}, {type[2]}>"
    return type[1] if kind in ("struct", "other") else kind


def declarator(type, name):
    """`type name`, with the sizes of arrays after the name."""
    sizes = ""
    while type[0] == "arr":
        sizes += f"[{type[2]}]"
        type = type[1]
    return f"{type_text(type)} {name}{sizes}"


class Writer:
    """The text of trees, for one type of real numbers, as the program or as its reference."""
    def __init__(self, real, reference=False):
        self.real, self.suffix, self.reference = real, "l" if real == "double" else "", reference

    def finish(self, text):
        return text.replace("@", self.real).replace("~", self.suffix)

    def node(self, node, pad=""):
        parts = iter(node.parts)
        text = node.reference if self.reference and node.reference else node.text
        out = []
        for piece in re.split(r"([$#@~])", text):
            if piece == "$":
                out.append(self.node(next(parts), pad))
            elif piece == "#":
                out.append(self.block(next(parts), pad))
            else:
                out.append(self.finish(piece))
        return "".join(out)

    def block(self, block, pad):
        inner = pad + "    "
        lines = [f"{inner}{self.node(node, inner)}\n" for node in block]
        return "{\n" + "".join(lines) + pad + "}"

    def function(self, function, pad=""):
        params = ", ".join(param.keyword + declarator(param.type, param.name) for param in function.params
                           if param.name != "this")
        lines = [f"{pad}{attribute}\n" for attribute in function.attributes]
        head = f"{function.word}{type_text(function.result)} {function.name}({params})" + (f" throws {function.throws}" if function.throws else "")
        return self.finish("".join(lines) + pad + head) + "\n" + pad + self.block(function.body, pad) + "\n"

    def struct(self, struct):
        out = [f"struct {struct.name}{' : ' + struct.bases if struct.bases else ''}\n{{\n"]
        for field in struct.fields:
            no_diff = "no_diff " if field.constant and is_differentiable_type(field.type) else ""
            out.append(f"    {no_diff}{declarator(field.type, field.name)};\n")
        return self.finish("".join(out)) + "".join(self.function(method, "    ") for method in struct.methods) + "}\n"

    def item(self, item):
        if isinstance(item, Struct):
            return self.struct(item)
        if isinstance(item, Text):
            return self.finish(item.reference if self.reference and item.reference else item.text)
        return self.function(item)

    def program(self, program):
        return "".join(self.item(item) for item in program.items)


# ---- soundness: is every name known where it is used?

def is_sound(program):
    known = set()
    for item in program.items:
        known |= set(declared_by(item))
    return all(item_is_sound(item, known) for item in program.items)


def declared_by(item):
    if isinstance(item, Text):
        return item.declares
    if isinstance(item, Struct):
        return [item.name, *(f"{item.name}.{part.name}" for part in [*item.fields, *item.methods])]
    return [item.name]


def item_is_sound(item, known):
    if isinstance(item, Text):
        return known.issuperset(item.uses)
    if isinstance(item, Struct):
        types_known = all(names_of_type(field.type) <= known for field in item.fields)
        return types_known and all(function_is_sound(method, known) for method in item.methods)
    return function_is_sound(item, known)


def names_of_type(type):
    while type[0] == "arr":
        type = type[1]
    return {type[1]} if type[0] == "struct" else set()


def function_is_sound(function, known):
    for param in function.params:
        if not names_of_type(param.type) <= known:
            return False
    body = function.body
    if function.result != VOID and not (body and body[-1].text.startswith("return")):
        return False
    return block_is_sound(body, known | {param.name for param in function.params if param.dir != "out"})


def block_is_sound(block, known):
    known = set(known)
    for node in block:
        if not node_is_sound(node, known):
            return False
        known |= set(node.declares)
    return True


def node_is_sound(node, known):
    if not known.issuperset(node.uses):
        return False
    inner = known | set(node.binds)
    for part in node.parts:
        if not (block_is_sound(part, inner) if isinstance(part, list) else node_is_sound(part, inner)):
            return False
    return True


# ---- walking and rewriting

def map_nodes(item, change):
    """The item with `change` applied to every node, innermost first."""
    if isinstance(item, Function):
        return Function(item.name, item.result, item.params, map_block(item.body, change), item.attributes, item.word, item.throws)
    if isinstance(item, Struct):
        return Struct(item.name, item.fields, item.bases, [map_nodes(method, change) for method in item.methods])
    return item


def map_block(block, change):
    return [map_node(node, change) for node in block]


def map_node(node, change):
    parts = [map_block(part, change) if isinstance(part, list) else map_node(part, change) for part in node.parts]
    return change(node.with_parts(parts))
