"""What is this surface made of? The microfacet model of ../brdf.slang is fitted to measured samples, with the optimiser in numpy.

    PYTHONPATH=python python3 examples/python/fit_brdf.py

`reflectance` is called for all samples at once; the gradients of the rows by the one material that they share are added up. The samples and the
error are written to fit_brdf.png.
"""
# prints:
# after   0 steps the error is 2.4957
# after 150 steps the error is 0.0000
# after 300 steps the error is 0.0000
# base 0.90 0.60 0.20, roughness 0.35, metallic 0.80
from pathlib import Path

import numpy as np
import slope
from gallery import plot, progress

COUNT = 256
brdf = slope.load(Path(__file__).resolve().parent.parent / "brdf.slang")


def material_of(p):
    """Parameters without bounds become a material: the logistic function keeps each between 0 and 1."""
    within = 1 / (1 + np.exp(-p))
    return {"base": within[:3], "roughness": 0.05 + 0.95 * within[3], "metallic": within[4]}


def error_and_gradient(p, to_viewer, to_light, measured):
    """The mean squared difference of logarithms, so that highlights do not count for everything."""
    shown, pullback = slope.vjp(brdf.reflectance, material_of(p), to_viewer, to_light)
    difference = np.log(0.01 + shown) - np.log(0.01 + measured)
    by_material = pullback(2 * difference / (0.01 + shown) / COUNT)[0]
    by_within = np.concatenate([by_material.base, [0.95 * by_material.roughness, by_material.metallic]])
    within = 1 / (1 + np.exp(-p))
    return (difference**2).sum() / COUNT, by_within * within * (1 - within)


def samples(values):
    """As a picture, the brightest white."""
    return (values / values.max()).reshape(16, 16, -1)


def main():
    truth = {"base": [0.9, 0.6, 0.2], "roughness": 0.35, "metallic": 0.8}
    indices = np.arange(COUNT)
    to_viewer, to_light = brdf.direction(indices), brdf.direction(3 * indices + 7)
    near = to_viewer * [-1, -1, 1] + 0.3 * to_light  # every other sample is near the mirror direction
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    to_light = np.where(indices[:, None] % 2 == 0, near, to_light)
    measured = brdf.reflectance(truth, to_viewer, to_light)

    p, mean, square, errors = np.zeros(5), np.zeros(5), np.zeros(5), []
    for step in progress(range(301)):
        error, gradient = error_and_gradient(p, to_viewer, to_light, measured)
        errors.append(error)
        if step % 150 == 0:
            print(f"after {step:3} steps the error is {error:.4f}")
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        p -= 0.08 * mean / (1 - 0.9 ** (step + 1)) / (np.sqrt(square / (1 - 0.999 ** (step + 1))) + 1e-8)
    found = material_of(p)
    plot("fit_brdf.png", {"measured": samples(measured), "fitted": samples(brdf.reflectance(found, to_viewer, to_light))}, errors)
    print("base {:.2f} {:.2f} {:.2f}, ".format(*found["base"]), end="")
    print(f"roughness {found['roughness']:.2f}, metallic {found['metallic']:.2f}")


if __name__ == "__main__":
    main()
