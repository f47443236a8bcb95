"""Recovers a scene from its picture, as ../scene.c does, with the kernels of ../scene.slang on arrays of numpy. The target, the guess, what was
found and the error are written to inverse_rendering.png.

    PYTHONPATH=python python3 examples/python/inverse_rendering.py
"""
# prints:
# large ball at -0.40 0.10 0.20, radius 0.90
# small ball at 0.80 -0.40 -0.30, radius 0.50
from pathlib import Path

import numpy as np
import slope
from gallery import plot, progress

SIZE, GROUP, STEPS = 36, 12, 200
TRUTH = np.array([-0.4, 0.1, 0.2, 0.9, 0.8, -0.4, -0.3, 0.5], np.float32)
START = np.array([-0.1, -0.2, 0.0, 0.6, 0.5, 0.2, 0.0, 0.6], np.float32)


class Renderer:
    """The kernels work on these arrays themselves."""

    def __init__(self):
        self.kernels = slope.load(Path(__file__).resolve().parent.parent / "scene.slang")
        self.target, self.picture = np.zeros((2, SIZE, SIZE), np.float32)
        self.scene, self.gradient = np.zeros((2, 8), np.float32)
        self.kernels.uniforms.update(target=self.target, picture=self.picture, scenes=self.scene, gradients=self.gradient)

    def draw(self, scene):
        self.scene[:] = scene
        self.kernels.draw.dispatch(SIZE // GROUP, SIZE // GROUP)
        return self.picture.copy()

    def differentiate(self, scene):
        self.scene[:], self.gradient[:] = scene, 0
        self.kernels.differentiate.dispatch(SIZE // GROUP, SIZE // GROUP)
        return self.gradient.copy()


def recover(renderer):
    """Adam, with shorter steps towards the end: at edges the error is rough."""
    scene, mean, square, errors = START.copy(), np.zeros(8), np.zeros(8), []
    for step in progress(range(STEPS + 1)):
        gradient = renderer.differentiate(scene)
        mean += 0.1 * (gradient - mean)
        square += 0.01 * (gradient**2 - square)
        rate = 0.03 * (1 - step / STEPS)
        scene -= rate * mean / (1 - 0.9 ** (step + 1)) / (np.sqrt(square / (1 - 0.99 ** (step + 1))) + 1e-8)
        errors.append(float(((renderer.draw(scene) - renderer.target) ** 2).mean()))
    return scene, errors


def main():
    renderer = Renderer()
    renderer.target[:] = renderer.draw(TRUTH)
    guess = renderer.draw(START)
    scene, errors = recover(renderer)
    plot("inverse_rendering.png", {"target": renderer.target, "first guess": guess, "found": renderer.draw(scene)}, errors)
    for name, ball in zip(("large", "small"), scene.reshape(2, 4)):
        print("{} ball at {:.2f} {:.2f} {:.2f}, radius {:.2f}".format(name, *ball))


if __name__ == "__main__":
    main()
