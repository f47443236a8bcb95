"""Pictures of what the examples have found, in a PNG file: with matplotlib where it is, else by what is here. And a progress bar, where tqdm is."""
import struct
import zlib

import numpy as np


def progress(steps):
    try:
        from tqdm import tqdm
    except ImportError:
        return steps
    return tqdm(steps)


def plot(path, pictures, errors):
    """Pictures by their names, gray or in colour, and how the error has fallen."""
    try:
        import matplotlib
    except ImportError:
        write_png(path, beside([*pictures.values(), curve(errors)]))
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot
    _, places = pyplot.subplots(1, len(pictures) + 1, figsize=(3.3 * len(pictures) + 3.3, 3))
    for place, (name, picture) in zip(places, pictures.items()):
        place.set_title(name)
        place.imshow(np.clip(picture, 0, 1), cmap="gray", vmin=0, vmax=1)
    places[-1].set_title("error")
    places[-1].semilogy(errors)
    pyplot.savefig(path)


# ---- without matplotlib


def curve(errors, size=160):
    """The logarithm of the error, as a white line."""
    heights = np.log(np.maximum(errors, 1e-12))
    heights = (heights - heights.min()) / max(np.ptp(heights), 1e-12)
    columns = np.interp(np.linspace(0, len(errors) - 1, size), np.arange(len(errors)), heights)
    rows = ((1 - columns) * (size - 1)).astype(int)
    picture = np.zeros((size, size))
    for column, (row, before) in enumerate(zip(rows, [rows[0], *rows])):
        picture[min(row, before):max(row, before) + 1, column] = 1
    return picture


def beside(pictures, size=160):
    """All of them in colour, as large as each other, from left to right."""
    found = []
    for picture in pictures:
        picture = np.clip(picture if np.ndim(picture) == 3 else np.repeat(np.asarray(picture)[..., None], 3, -1), 0, 1)
        rows, columns = (np.arange(size) * count // size for count in picture.shape[:2])
        found.append(np.pad(picture[rows][:, columns], ((4, 4), (4, 4), (0, 0)), constant_values=0.5))
    return np.concatenate(found, 1)


def write_png(path, picture):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width, _ = picture.shape
    rows = (picture * 255 + 0.5).astype(np.uint8).reshape(height, -1)
    lines = np.concatenate([np.zeros((height, 1), np.uint8), rows], 1).tobytes()
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
                   + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))
