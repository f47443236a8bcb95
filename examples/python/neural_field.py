"""A neural field learns a picture: a network 2-16-16-3 in Slang, its weights in one DiffBuffer, all pixels in one call, Adam in numpy.
The picture, what was learned and the error are written to neural_field.png; with tqdm there is a progress bar.

    PYTHONPATH=python python3 examples/python/neural_field.py
"""
# prints:
# the error has fallen to less than a twentieth
import numpy as np
import slope
from gallery import plot, progress

FIELD = """
static const int H = 16;

[Differentiable]
float3 field(DiffBuffer<float> w, no_diff float2 p)
{
    float a[H], b[H];
    int at = 0;
    for (int i = 0; i < H; i++, at += 3) a[i] = sin(w.load(at) * p.x + w.load(at + 1) * p.y + w.load(at + 2));
    for (int i = 0; i < H; i++)
    {
        float sum = w.load(at++);
        for (int k = 0; k < H; k++) sum += w.load(at++) * a[k];
        b[i] = sin(sum);
    }
    float3 colour;
    for (int c = 0; c < 3; c++)
    {
        float sum = w.load(at++);
        for (int k = 0; k < H; k++) sum += w.load(at++) * b[k];
        colour[c] = sum;
    }
    return colour;
}
"""
SIZE, STEPS, WEIGHTS = 32, 300, 3 * 16 + 17 * 16 + 17 * 3


def picture():
    """Rings on a gradient."""
    y, x = np.mgrid[-1:1:SIZE * 1j, -1:1:SIZE * 1j]
    ring = 0.5 + 0.5 * np.cos(9 * np.hypot(x - 0.3, y))
    points = np.stack([x, y], -1).reshape(-1, 2).astype(np.float32)
    return points, np.stack([ring, 0.5 + 0.5 * x * ring, 0.5 - 0.5 * y], -1).reshape(-1, 3).astype(np.float32)


def train(field, points, colours):
    generator = np.random.default_rng(1)
    w = generator.normal(0, 0.5, WEIGHTS).astype(np.float32)
    w[:48] *= 6  # frequencies of the first layer
    mean, square, errors = np.zeros_like(w), np.zeros_like(w), []
    for step in progress(range(1, STEPS + 1)):
        found, pullback = slope.vjp(field, w, points)
        difference = found - colours
        errors.append(float((difference ** 2).mean()))
        gradient = pullback(2 * difference / difference.size)[0]
        mean += 0.1 * (gradient - mean)
        square += 0.01 * (gradient ** 2 - square)
        w -= 0.02 * (mean / (1 - 0.9 ** step) / (np.sqrt(square / (1 - 0.99 ** step)) + 1e-8)).astype(np.float32)
    return w, errors


def main():
    field = slope.compile(FIELD).field
    points, colours = picture()
    w, errors = train(field, points, colours)
    pictures = {"picture": colours, "learned": field(w, points)}
    plot("neural_field.png", {name: pixels.reshape(SIZE, SIZE, 3) for name, pixels in pictures.items()}, errors)
    print("the error has fallen to " + ("less than a twentieth" if errors[-1] < 0.05 * errors[0] else f"{errors[-1] / errors[0]:.3f} of what it was"))


if __name__ == "__main__":
    main()
