"""Makes a failing program small: every smaller tree that still fails is taken, until there is none.

Trees are changed blindly and asked whether they are sound; candidates are tried many at a time, in one module.
"""
import itertools
import time

from tree import BOOL, INDEX, INT, REAL, Function, Node, Program, Struct, Text, is_sound, map_nodes, type_text

SIMPLE = {REAL: "0.5~", INT: "1", BOOL: "true", INDEX: "0"}


def shrink(program, find_failing, seconds=120):
    """`find_failing(list of programs)` gives the index of the first that still fails, or None."""
    deadline, start, progress = time.monotonic() + seconds, 0, False
    while time.monotonic() < deadline:
        candidates = (c for c in itertools.islice(variants(program), start, None) if is_sound(c))
        at, found = 0, None
        while time.monotonic() < deadline:
            batch = list(itertools.islice(candidates, 12))
            if not batch:
                break
            found = find_failing(batch)
            if found is not None:
                program, progress = batch[found], True
                start += at + found
                break
            at += len(batch)
        if found is None:
            if not progress:
                return program
            start, progress = 0, False
    return program


def variants(program):
    """Smaller programs, the boldest changes first."""
    items = program.items
    for k in range(len(items) - 1):
        yield program.with_items(items[:k] + items[k + 1:])
    if program.single:
        yield Program(program.seed, items, program.structs, program.frozen, False)
    for k, item in enumerate(items):
        for smaller in item_variants(item):
            yield program.with_items(items[:k] + [smaller] + items[k + 1:])
    for k, item in enumerate(items):
        if isinstance(item, Function):
            for j in range(len(item.params)):
                yield drop_parameter(program, item, j)
        elif isinstance(item, Struct) and item.name in program.structs:
            for j in range(len(item.fields)):
                yield drop_field(program, item, j)


def item_variants(item):
    if isinstance(item, Function):
        yield from function_variants(item)
    elif isinstance(item, Struct):
        for k, method in enumerate(item.methods):
            yield Struct(item.name, item.fields, item.bases, item.methods[:k] + item.methods[k + 1:])
            for smaller in function_variants(method):
                yield Struct(item.name, item.fields, item.bases, item.methods[:k] + [smaller] + item.methods[k + 1:])


def function_variants(function):
    make = lambda body, attributes=function.attributes: Function(function.name, function.result, function.params, body,
                                                                 attributes, function.word, function.throws)
    for k in range(1, len(function.attributes)):
        if function.attributes[k] != "[mutating]":
            yield make(function.body, [*function.attributes[:k], *function.attributes[k + 1:]])
    for body in block_variants(function.body):
        yield make(body)


def block_variants(block):
    size = len(block)
    while size:
        for at in range(0, len(block) - size + 1, max(1, size // 2)):
            yield block[:at] + block[at + size:]
        size //= 2
    for k, node in enumerate(block):
        for part in node.parts:
            if isinstance(part, list):
                yield block[:k] + part + block[k + 1:]
    for k, node in enumerate(block):
        for smaller in node_variants(node):
            yield block[:k] + [smaller] + block[k + 1:]


def node_variants(node):
    if node.type and not node.place:
        if node.parts:
            simple = SIMPLE.get(node.type)
            if simple is None and node.type[0] in ("vec", "mat"):
                simple = f"{type_text(node.type)}(0.5~)"
            if simple and simple != node.text:
                yield Node(simple, type=node.type)
        for inner in same_type(node, node.type):
            yield inner
        if not node.parts and node.type in SIMPLE and node.text not in SIMPLE.values() and node.uses:
            yield Node(SIMPLE[node.type], type=node.type)
    text = node.text
    if text.startswith("[") and "] " in text and not node.type:
        plain = node.with_parts(node.parts)
        plain.text = text[text.index("] ") + 2:]
        yield plain
    for k, part in enumerate(node.parts):
        for smaller in (block_variants(part) if isinstance(part, list) else node_variants(part)):
            yield node.with_parts(node.parts[:k] + [smaller] + node.parts[k + 1:])


def same_type(node, type):
    """Nodes inside an expression that could stand for it, the outermost of each branch."""
    for part in node.parts if type != INDEX else ():
        if isinstance(part, list):
            continue
        if part.type == type:
            yield part
        else:
            yield from same_type(part, type)


def drop_parameter(program, function, index):
    params = function.params[:index] + function.params[index + 1:]

    def change(node):
        if node.call != function.name or len(node.parts) != len(function.params):
            return node
        out = node.with_parts(node.parts[:index] + node.parts[index + 1:])
        out.text = drop_hole(node.text, index)
        out.reference = drop_hole(node.reference, index) if node.reference else None
        return out
    items = [Function(item.name, item.result, params, item.body, item.attributes, item.word, item.throws) if item is function else item
             for item in program.items]
    return program.with_items([map_nodes(item, change) for item in items])


def drop_field(program, struct, index):
    fields = struct.fields[:index] + struct.fields[index + 1:]

    def change(node):
        if node.make != struct.name or len(node.parts) != len(struct.fields):
            return node
        out = node.with_parts(node.parts[:index] + node.parts[index + 1:])
        out.text = drop_hole(node.text, index)
        return out
    items = [Struct(item.name, fields, item.bases, item.methods) if item is struct else item for item in program.items]
    return program.with_items([map_nodes(item, change) for item in items])


def drop_hole(text, index):
    """`f($, $)` without one of its holes."""
    before, _, rest = text.partition("(")
    holes, _, after = rest.partition(")")
    holes = holes.split(", ")
    return f"{before}({', '.join(holes[:index] + holes[index + 1:])}){after}"
