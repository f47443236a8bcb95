"""Data for programs that `-target c` makes (through_c.py): C that gives their variables what `slope run` is told to bind and set, and prints them as it does.

What the variables are is read in the C file. A number follows the other as they stand in memory, so that a list without inner braces says an object of any type.
"""
import re
import struct
import zlib
from pathlib import Path
from typing import NamedTuple

FORMATS = {"float": "%.9g", "double": "%.17g", "int32_t": "%d", "uint32_t": "%u", "int64_t": "%ld", "uint64_t": "%lu",
           "int16_t": "%d", "uint16_t": "%u", "int8_t": "%d", "uint8_t": "%u", "bool": "%d"}
REAL = ("float", "double")
VARIABLE = r"^(?:extern|static) (\w+) (\*?){};"
NUMBER = r"[-+.\de]+|0x[\da-f]+|true|false"
DATA = re.compile(rf"(?:(?P<shape>\d+(x\d+)*):)?(?P<list>({NUMBER})(,({NUMBER}))*)|(?P<fill>zeros|ones|range|random):(?P<size>\d+(x\d+)*)")
FILE = re.compile(r"@(?P<path>[\w./-]+)(?P<levels>,mips)?")
MODES = ("clamp", "wrap", "mirror", "border", "mirror-once")
SAMPLER = re.compile(rf"(?P<filter>linear|nearest)(,(?P<mode>{'|'.join(MODES)}))?")
HALF = "slope_half"
TENSOR = {"data", "offset", "rank", "shape", "strides"}


def is_data(text):
    return any(form.fullmatch(text) for form in (DATA, FILE, SAMPLER))


class Unknown(Exception):
    """C cannot be given it so."""


class Kind(NamedTuple):
    """The type of a variable or member."""
    name: str
    is_pointer: bool = False
    sizes: tuple = ()  # of an array

    def declare(self, what):
        return f"{self.name} {what}" + "".join(f"[{size}]" for size in self.sizes)


def sizes_of(text):
    return tuple(int(size) for size in re.findall(r"\[(\d+)\]", text))


def members(code, name):
    """{member: Kind} of a struct; {}: it is none."""
    found = re.search(rf"typedef struct (?:SLOPE_MAY_ALIAS )?{name} {{([^}}]*)}} {name};", code)
    result = {}
    for part in found[1].split(";") if found else ():
        declared = re.match(r"\s*(unsigned char|\w+) (.*)", part)
        for one in declared[2].split(",") if declared else ():
            star, member, sizes = re.match(r"\s*\(?(\*?)(\w+)\)?([][\d]*)", one).groups()
            result[member] = Kind(declared[1], bool(star), sizes_of(sizes))
    return result


def leaves(code, kind):
    """(path, type) of each number in it, in their order."""
    if kind.sizes:
        for i in range(kind.sizes[0]):
            yield from ((f"[{i}]{path}", scalar) for path, scalar in leaves(code, Kind(kind.name, False, kind.sizes[1:])))
        return
    inside = members(code, kind.name)
    if kind.is_pointer or not inside and kind.name not in (*FORMATS, HALF):
        raise Unknown(kind.name)
    if not inside:
        yield "", kind.name
    for member, other in inside.items():
        yield from ((f".{member}{path}", scalar) for path, scalar in leaves(code, other))


def find(code, name):
    """(how C says it, its Kind) of `a.b[1]`; (None, None): nobody uses it. What C claims has a prefix, and of a tensor with a derivative its own name is that of its numbers."""
    first, *rest = re.findall(r"\w+|\[\d+\]", name)
    for said in (first, f"slope_{first}"):
        found = re.search(VARIABLE.format(rf"{said}([][\d]*)"), code, re.M)
        if found:
            break
    else:
        return None, None
    kind = Kind(found[1], bool(found[2]), sizes_of(found[3]))
    while rest or "primal" in members(code, kind.name):
        part = rest.pop(0) if rest else "primal"
        inner = Kind(kind.name, False, kind.sizes[1:]) if part[0] == "[" else members(code, kind.name).get(part)
        said, kind = f"{said}{part}" if part[0] == "[" else f"{said}{'->' if kind.is_pointer else '.'}{part}", inner
        if not kind:
            raise Unknown(name)
    return said, kind


# ---- values

def drawn(scalars):
    """What `random:` is (src/cli/data.c)."""
    state, bits = 0x9e3779b97f4a7c15, (1 << 64) - 1
    for scalar in scalars:
        state ^= state << 13 & bits
        state ^= state >> 7
        state ^= state << 17 & bits
        yield f"{(state >> 40) / 16777216:.9g}" if scalar in REAL else str(int((state >> 33 & 0xffffff) / 16777216 * 100))


def product(text):
    result = 1
    for size in text.split("x"):
        result *= int(size)
    return result


def half_bits(word):
    return str(struct.unpack("<H", struct.pack("<e", float(word)))[0])


def listed(data, scalars):
    """The numbers of it, as C says them, where an element has these; "": they are zero."""
    given = DATA.fullmatch(data)
    if not given:
        raise Unknown(data)
    if given["list"]:
        words = given["list"].split(",")
        if HALF in scalars:
            return ",".join(half_bits(word) if scalars[i % len(scalars)] == HALF else word for i, word in enumerate(words))
        if any(word.startswith("0x") and scalars[i % len(scalars)] in REAL for i, word in enumerate(words)):
            raise Unknown(data)  # the bits of a number
        return ",".join(words)
    if HALF in scalars:
        raise Unknown(data)
    all_of_them = scalars * product(given["size"])
    return ",".join({"zeros": (), "ones": "1" * len(all_of_them), "range": map(str, range(len(all_of_them))),
                     "random": drawn(all_of_them)}[given["fill"]])


def words_of(path):
    """A file of bytes, as numbers of 32 bits."""
    contents = path.read_bytes()
    return ",".join(map(str, struct.unpack(f"<{len(contents) // 4}I", contents[:len(contents) // 4 * 4])))


def picture(path):
    """(width, height, channels, numbers from 0 to 1) of a .png file without filters, with 8 bits a channel."""
    contents, at, packed = path.read_bytes(), 8, b""
    while at < len(contents):
        length, kind = struct.unpack(">I4s", contents[at:at + 8])
        chunk = contents[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, bits, colors = struct.unpack(">IIBB", chunk[:10])
        packed += chunk if kind == b"IDAT" else b""
        at += length + 12
    channels, rows = {0: 1, 2: 3, 4: 2, 6: 4}.get(colors, 0), zlib.decompress(packed)
    step = width * channels + 1
    if bits != 8 or not channels or any(rows[::step]):
        raise Unknown(path)
    return width, height, channels, [byte / 255 for y in range(height) for byte in rows[y * step + 1:(y + 1) * step]]


def smaller(width, height, channels, numbers):
    """The next level: the mean of each four texels."""
    def mean(x, y, c):
        places = [((2 * y + j) * width + 2 * x + i) * channels + c for j in range(2) for i in range(2)]
        return sum(numbers[place] for place in places) / 4
    half = max(width // 2, 1), max(height // 2, 1)
    return *half, channels, [mean(x, y, c) for y in range(half[1]) for x in range(half[0]) for c in range(channels)]


def identifier(said):
    return re.sub(r"\W+", "_", said)


def element_of(code, kind):
    """Of a buffer or what a pointer leads to; None: it is neither."""
    inside = members(code, kind.name)
    if kind.is_pointer:
        return Kind(f"{kind.name}_whole") if members(code, f"{kind.name}_whole") else Kind(kind.name)
    if not kind.sizes and set(inside) >= {"data", "count"}:
        return inside["data"]._replace(is_pointer=False)
    return None


def memory(code, said, element, data, folder):
    """Memory with that data, behind the counter of buffers that can grow, and the statement that fills it."""
    unit, file = Kind("uint32_t") if element.name == "unsigned char" else element, FILE.fullmatch(data)
    if file and (unit == element or file["levels"]):
        raise Unknown(data)
    numbers = words_of(folder / file["path"]) if file else listed(data, [scalar for _, scalar in leaves(code, unit)] if not data.startswith("zeros") else [])
    name = identifier(said)
    values = f"static {unit.declare(f'values_of_{name}[]')} = {{{numbers}}};\n" if numbers else ""
    count = f"sizeof values_of_{name} / sizeof *values_of_{name}" if numbers else product(data.partition(":")[2])
    fill = f"memcpy(bound_{name}.at, values_of_{name}, sizeof values_of_{name}); " if numbers else ""
    return (f"{values}static struct {{ uint32_t counter[4]; {unit.declare(f'at[{count}]')}; }} "
            f"__attribute__((aligned(16))) bound_{name};", fill)


def bind_tensor(said, sizes):
    strides = [product("x".join(map(str, sizes[i + 1:])) if sizes[i + 1:] else "1") for i in range(len(sizes))]
    set_up = [f"{said}.rank = {len(sizes)};"]
    for i, (size, stride) in enumerate(zip(sizes, strides)):
        set_up.append(f"{said}.shape[{i}] = {size}; {said}.strides[{i}] = {stride};")
    return " ".join(set_up)


IMAGE = re.compile(r"(?:RW)?\w*?(?P<layered>Array)?_(?P<scalar>u?int|float|half)(?P<channels>[234]?)(_\d+)?")


def bind_texels(said, storage, sizes, more=""):
    name = identifier(said)
    dimensions = " ".join(f"{said}.image.{side} = {size};" for side, size in zip(("width", "height", "depth"), sizes))
    return storage, (f"{said}.image.texels.data = (uint32_t *)(void *)texels_of_{name}, "
                     f"{said}.image.texels.count = sizeof texels_of_{name} / 4; {dimensions}{more}")


def bind_picture(said, file, folder):
    if not file["path"].endswith(".png"):
        raise Unknown(file["path"])
    levels = [picture(folder / file["path"])]
    while file["levels"] and max(levels[-1][:2]) > 1:
        levels.append(smaller(*levels[-1]))
    width, height, channels, _ = levels[0]
    numbers = ",".join(f"{number:.9g}" for level in levels for number in level[3])
    return bind_texels(said, f"static float texels_of_{identifier(said)}[] = {{{numbers}}};", (width, height, 1),
                       f" {said}.image.levels = {len(levels)}; {said}.image.channels = {channels};")


def bind_image(said, kind, data, folder):
    """Texels of 32 bits each channel."""
    given, image = DATA.fullmatch(data), IMAGE.fullmatch(kind.name)
    if FILE.fullmatch(data) and image and image["scalar"] == "float":
        return bind_picture(said, FILE.fullmatch(data), folder)
    if not image or not given or not given["fill"]:
        raise Unknown(data)
    scalar, channels = "uint32_t" if "int" in image["scalar"] else "float", int(image["channels"] or 1)
    numbers = listed(data, [scalar] * channels)
    storage = f"static {scalar} texels_of_{identifier(said)}[{product(given['size']) * channels}] = {{{numbers or 0}}};"
    sizes = given["size"].split("x")
    if "1DArray" in kind.name:  # its layers are what others have as their depth
        sizes.insert(1, "1")
    return bind_texels(said, storage, [*sizes, "1", "1"][:3],
                       f" {said}.image.layered = {int(bool(image['layered']))}; {said}.image.channels = {channels};")


def bind_sampler(said, sampler):
    mode = MODES.index(sampler["mode"] or "clamp")
    return "", (f"{said}.nearest = {7 if sampler['filter'] == 'nearest' else 0}; "
                f"{said}.address.x = {said}.address.y = {said}.address.z = {mode};")


def set_one(code, name, data, folder):
    """(declarations, statements)"""
    said, kind = find(code, name)
    if not said:
        return "", ""
    if set(members(code, kind.name)) == {"image"}:
        return bind_image(said, kind, data, folder)
    if SAMPLER.fullmatch(data):
        return bind_sampler(said, SAMPLER.fullmatch(data))
    if set(members(code, kind.name)) >= TENSOR:
        given = DATA.fullmatch(data)
        shape = given and (given["shape"] or given["size"] or str(data.count(",") + 1))
        if not shape:
            raise Unknown(data)
        storage, fill = set_one_place(code, f"{said}.data", members(code, kind.name)["data"], data, folder)
        return storage, fill + bind_tensor(said, [int(size) for size in shape.split("x")])
    return set_one_place(code, said, kind, data, folder)


def set_one_place(code, said, kind, data, folder):
    element, name = element_of(code, kind), identifier(said)
    if not element:
        numbers = listed(data, [scalar for _, scalar in leaves(code, kind)])
        return f"static const {kind.declare(f'set_{name}')} = {{{numbers}}};", f"memcpy(&{said}, &set_{name}, sizeof {said});"
    storage, fill = memory(code, said, element, data, folder)
    if kind.is_pointer:
        return storage, f"{fill}{said} = ({kind.name} *)(void *)bound_{name}.at;"
    pointed = f"__typeof__({element.declare('').strip()})"
    return storage, (f"{fill}{said}.data = ({pointed} *)(void *)bound_{name}.at, "
                     f"{said}.count = (sizeof bound_{name}.at) / sizeof({pointed});")


def print_one(code, name):
    said, kind = find(code, name)
    if not said:
        raise Unknown(name)
    if set(members(code, kind.name)) >= TENSOR:
        said, kind = f"{said}.data", members(code, kind.name)["data"]
    element = element_of(code, kind)
    if not element:
        raise Unknown(name)
    unit = Kind("uint32_t") if element.name == "unsigned char" else element
    shown = "".join(f' printf("{FORMATS[scalar]}\\n", bound_{identifier(said)}.at[i]{path});' for path, scalar in leaves(code, unit))
    return f"for (size_t i = 0; i < sizeof bound_{identifier(said)}.at / sizeof *bound_{identifier(said)}.at; i++) {{{shown} }}"


def behind_pointers(code, names):
    """(declarations, statements): memory for what pointers lead to of which a part is set."""
    found = {}
    for name in names:
        parts = re.findall(r"\w+|\[\d+\]", name)
        for length in range(1, len(parts)):
            said, kind = find(code, "".join(part if part[0] == "[" else f".{part}" for part in parts[:length]))
            if said and kind.is_pointer:
                found[said] = kind
    return ([f"static {kind.name} behind_{identifier(said)};" for said, kind in found.items()],
            [f"{said} = &behind_{identifier(said)};" for said in found])


def whole_structs(code, values):
    """Types of structs that pointers lead to with as much of the array of any length behind them as is set."""
    for name, data in values:
        _, kind = find(code, name)
        rest = kind and re.search(rf"/\* then (\w+) \w+\[\] \*/\n}} {kind.name};", code)
        if rest:
            sizes = [sum(1 for _ in leaves(code, Kind(part))) for part in (kind.name, rest[1])]
            count = (len(data.split(",")) - sizes[0]) // sizes[1]
            yield f"typedef struct {kind.name}_whole {{ {kind.name} head; {rest[1]} rest[{count}]; }} {kind.name}_whole;\n"


def set_up(code, values, printed, source):
    """C that gives variables their data before main, and prints some after it; None: it cannot be said so."""
    text = source.read_text()
    try:
        wholes = "".join(whole_structs(code, values))
        code += wholes
        storage, before = behind_pointers(code, [name for name, _ in values])
        for name, data in values:
            declared, statement = set_one(code, name, data, source.parent)
            storage.append(declared)
            before.append(statement)
            said, _ = find(code, name)
            if said and re.search(rf"Consume\w+<[^;]*>[^;]*\b{name}\b", text):  # all that it has can be taken
                before.append(f"bound_{identifier(said)}.counter[0] = (uint32_t){said}.count;")
        after = [print_one(code, name) for name in printed]
    except Unknown:
        return None
    return "\n".join(["", '#pragma GCC diagnostic ignored "-Wmissing-braces"', wholes, *storage,
                      f"__attribute__((constructor)) static void set_up(void) {{ {' '.join(before)} }}",
                      f"__attribute__((destructor)) static void show_at_the_end(void) {{ {' '.join(after)} }}", ""])
