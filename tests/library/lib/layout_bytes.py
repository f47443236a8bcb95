"""The bytes of the struct in layout_bytes.slang, its values being 1, 2, 3...: layout_bytes.py scalar|std140."""
import struct
import sys

#        scalar std140  format
FIELDS = [(0, 0, "f"), (4, 16, "3f"), (16, 28, "bool"), (18, 32, "e"), (20, 48, "f"), (24, 64, "f"), (28, 80, "2i"), (36, 96, "3f"),
          (48, 112, "3f"), (64, 128, "d")]
size = {"scalar": 72, "std140": 144}[sys.argv[1]]
data, value = bytearray(size), 0
for scalar, std140, format in FIELDS:
    at = scalar if sys.argv[1] == "scalar" else std140
    if format == "bool":
        value += 1
        struct.pack_into("<B" if sys.argv[1] == "scalar" else "<I", data, at, 1)
        continue
    count = int(format[0]) if format[0].isdigit() else 1
    struct.pack_into("<" + format, data, at, *range(value + 1, value + 1 + count))
    value += count
sys.stdout.buffer.write(data)
