#!/usr/bin/env python3
"""The gradients of bench/gpu by PyTorch and JAX, on the GPU: nanoseconds per item.

    bench/gpu/frameworks.py torch|compile|jax NAME...

First it makes all that is to be measured, compiles it and says `ready`; then for each line it reads, which is a name, it prints that name and the median
of the times. So whoever starts several of these can wait for all of them and then measure one after the other. A problem is written once, for
arrays of either kind; loops over steps are loops of Python (of compiled steps, for torch.compile) or JAX's scan.
"""
import sys
import time

KIND, NAMES = sys.argv[1], sys.argv[2:]
RUNS = 9

if KIND == "jax":
    import os
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    import jax
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_default_matmul_precision", "highest")  # float32, as all others have it
    import jax.numpy as xp
else:
    import torch
    import torch as xp
import numpy as np

RANDOM = np.random.default_rng(1)


def array(data):
    return xp.asarray(data) if KIND == "jax" else torch.tensor(data, device="cuda")


def uniform(low, high, *shape, kind=np.float32):
    return RANDOM.uniform(low, high, shape).astype(kind)


def dot(a, b):
    return (a * b).sum(-1)


def unit(a):
    return a / xp.sqrt(dot(a, a))[..., None]


def at_least(a, low):
    return xp.maximum(a, xp.full_like(a, low))


def cross(a, b):
    return xp.stack([a[..., 1] * b[..., 2] - a[..., 2] * b[..., 1], a[..., 2] * b[..., 0] - a[..., 0] * b[..., 2],
                     a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]], -1)


def steps(body, state, count, extra):
    """The state after that many rounds of body(state, extra)."""
    if KIND == "jax":
        return jax.lax.scan(lambda now, _: (body(now, extra), None), state, None, length=count)[0]
    if KIND == "compile":
        body = torch.compile(body)
    for _ in range(count):
        state = body(state, extra)
    return state


# ---- problems: data, what of it is differentiated (the first), and the sum of all losses

def shade(base, roughness, metallic, to_viewer, to_light):
    v, l = unit(to_viewer), unit(to_light)
    h = unit(v + l)
    nv, nl, nh, vh = at_least(v[..., 2], 1e-4), at_least(l[..., 2], 1e-4), h[..., 2], dot(v, h)
    a = roughness**4
    t = nh * nh * (a - 1) + 1
    spec = a / (np.pi * t * t) * 0.5 / (nl * xp.sqrt(nv * nv * (1 - a) + a) + nv * xp.sqrt(nl * nl * (1 - a) + a))
    g5 = ((1 - vh)**5)[..., None]
    f0 = 0.04 + (base - 0.04) * metallic[..., None]
    fresnel = f0 + (1 - f0) * g5
    diffuse = (1 - fresnel) * base * ((1 - metallic) / np.pi)[..., None]
    return (diffuse + fresnel * spec[..., None]) * nl[..., None]


def make_mlp(count):
    def loss(w, example):
        a = xp.tanh(example[:, :16] @ w[:512].reshape(32, 16).T + w[512:544])
        b = at_least(a @ w[544:1568].reshape(32, 32).T + w[1568:1600], 0)
        return ((b @ w[1600:1632] + w[1632] - example[:, 16])**2).sum()

    return (uniform(-0.4, 0.4, 1633), uniform(-1, 1, count, 17)), loss


make_mlp_tensor = make_mlp_struct = make_mlp  # their weights are in an array anyway


def make_gmm(count):
    size, kinds = 8, 10
    lower = size * (size - 1) // 2
    place = np.full((size, size), lower)
    place[np.triu_indices(size, 1)] = np.arange(lower)
    below_of = array(place.T.copy())

    def loss(w, x):
        mean, diagonal = w[kinds:9 * kinds].reshape(kinds, size), w[9 * kinds:17 * kinds].reshape(kinds, size)
        below = w[17 * kinds:].reshape(kinds, lower)
        factor = xp.concatenate([below, xp.zeros_like(below[:, :1])], 1)[:, below_of]
        centered = x[:, None, :] - mean
        y = xp.exp(diagonal) * centered + xp.einsum("kji,nki->nkj", factor, centered)
        terms = w[:kinds] + diagonal.sum(1) - 0.5 * dot(y, y)
        return (jax.scipy.special.logsumexp(terms, 1) if KIND == "jax" else xp.logsumexp(terms, 1)).sum()

    return (uniform(-0.5, 0.5, kinds * (1 + 2 * size + lower), kind=np.float64), uniform(-2, 2, count, size, kind=np.float64)), loss


def make_lstm(count):
    width, layers, length = 14, 2, 16

    def sigmoid(x):
        return 1 / (1 + xp.exp(-x))

    def layer_step(w, x, hidden, cell):
        forget, leave = sigmoid(x * w[0] + w[4]), sigmoid(x * w[2] + w[6])
        enter, change = sigmoid(hidden * w[1] + w[5]), xp.tanh(hidden * w[3] + w[7])
        cell = cell * forget + enter * change
        return leave * xp.tanh(cell), cell

    def loss(w, sequence):
        gates, (enters, leaves, shift) = w[:16 * width].reshape(layers, 8, width), w[16 * width:].reshape(3, width)
        hidden, cell, total = [xp.zeros_like(sequence[:, 0])] * layers, [xp.zeros_like(sequence[:, 0])] * layers, 0
        for t in range(length - 1):
            x = enters * sequence[:, t]
            for l in range(layers):
                hidden[l], cell[l] = layer_step(gates[l], x, hidden[l], cell[l])
                x = hidden[l]
            x = x * leaves + shift
            total = total + (sequence[:, t + 1] * (x - xp.log(2 + xp.exp(x).sum(-1))[:, None])).sum()
        return -total / (length - 1)

    return (uniform(-1, 1, 16 * width + 3 * width, kind=np.float64), uniform(0, 1, count, length, width, kind=np.float64)), loss


def make_matmul(count):
    width = int(count**0.5)
    return (uniform(-1, 1, width, width), uniform(-1, 1, width, width)), lambda a, b: a @ b


def make_filter(count):
    width = int(count**0.5)
    inner = width - 4

    def loss(parameters, target):
        image = parameters[25:].reshape(width, width)
        found = sum(parameters[k] * image[k // 5:k // 5 + inner, k % 5:k % 5 + inner] for k in range(25))
        return ((found - target[:inner, :inner])**2).sum()

    return (uniform(-1, 1, 25 + count), uniform(-1, 1, width, width)), loss


def make_brdf(count):
    sample, weights = uniform(0.2, 0.9, count, 11), uniform(0.5, 1, count, 3)
    sample[:, [5, 6, 8, 9]] = 2 * sample[:, [5, 6, 8, 9]] - 1.1
    return (sample, weights), lambda s, w: (w * shade(s[:, :3], s[:, 3], s[:, 4], s[:, 5:8], s[:, 8:11])).sum()


def make_ggx(count):
    pixel = uniform(0.2, 0.9, count, 9)
    pixel[:, [0, 1, 3, 4]] = 2 * pixel[:, [0, 1, 3, 4]] - 1.1
    material = np.array([0.7, 0.5, 0.3, 0.55, 0.4], np.float32)
    return (material, pixel), lambda m, p: ((shade(m[:3], m[3], m[4:5], p[:, 0:3], p[:, 3:6]) - p[:, 6:9])**2).sum()


def make_splat(count):
    width = int(count**0.5)
    g = uniform(0, 1, 64, 9)
    g[:, [2, 4]] = 100 + 100 * g[:, [2, 4]]
    g[:, 3] *= 20
    g[:, 8] = 0.2 + 0.6 * g[:, 8]
    i = np.arange(count)
    pixel = np.stack([i % width, i // width], -1).astype(np.float32) / width

    def loss(g, pixel):
        d = pixel[:, None, :] - g[None, :, 0:2]
        dx, dy = d[..., 0], d[..., 1]
        alpha = g[:, 8] * xp.exp(-0.5 * (g[:, 2] * dx * dx + g[:, 4] * dy * dy) - g[:, 3] * dx * dy)
        left = xp.cumprod(1 - alpha, 1)
        through = xp.concatenate([xp.ones_like(left[:, :1]), left[:, :-1]], 1)
        light = (through * alpha) @ g[:, 5:8]
        return (light * light).sum()

    return (g, pixel), loss


def make_particle(count):
    def step(state, field):
        x, v = state
        d = field[:12].reshape(4, 1, 3) - x
        force = (d / (dot(d, d) + 0.1)[..., None]).sum(0) - field[12] * v
        v = v + 0.01 * force
        return x + 0.01 * v, v

    field = np.concatenate([uniform(-2, 2, 12), np.array([0.2], np.float32)])
    return (field, uniform(-1, 1, count, 6)), lambda f, s: (steps(step, (s[:, :3], s[:, 3:]), 256, f)[0]**2).sum()


def make_ode(count):
    dt = 0.002

    def step(state, p):
        x, v = state

        def acceleration(x, v):
            return -p[:, 0] * xp.sin(x) - p[:, 1] * v

        v1, a1 = v, acceleration(x, v)
        v2 = v + 0.5 * dt * a1
        a2 = acceleration(x + 0.5 * dt * v1, v2)
        v3 = v + 0.5 * dt * a2
        a3 = acceleration(x + 0.5 * dt * v2, v3)
        v4 = v + dt * a3
        a4 = acceleration(x + dt * v3, v4)
        return x + dt / 6 * (v1 + 2 * v2 + 2 * v3 + v4), v + dt / 6 * (a1 + 2 * a2 + 2 * a3 + a4)

    p = uniform(0.2, 1, count, 4) * np.array([9, 0.3, 1, 1], np.float32)

    def loss(p):
        x, v = steps(step, (p[:, 2], p[:, 3]), 1000, p)
        return (x * x + v * v).sum()

    return (p,), loss


def make_inverse(count):
    a = uniform(-1, 1, count, 4, 4) + 4 * np.eye(4, dtype=np.float32)
    return (a, uniform(-1, 1, count, 4, 4)), lambda a, w: (xp.linalg.det(a) + (w * xp.linalg.inv(a)).sum((-1, -2))).sum()


def make_bundle(count):
    o = uniform(-0.5, 0.5, count, 15, kind=np.float64)
    o[:, 6] += 1.5
    o[:, 13] += 4
    o[:, 14] += 1

    def loss(o, seen):
        rotation, x = o[:, 0:3], o[:, 11:14] - o[:, 3:6]
        angle = xp.sqrt(dot(rotation, rotation))[:, None]
        axis, cosine, sine = rotation / angle, xp.cos(angle), xp.sin(angle)
        p = x * cosine + cross(axis, x) * sine + axis * (dot(axis, x)[:, None] * (1 - cosine))
        image = p[:, :2] / p[:, 2:]
        square = dot(image, image)[:, None]
        distorted = 1 + o[:, 9:10] * square + o[:, 10:11] * square * square
        apart = o[:, 14:] * (image * distorted * o[:, 6:7] + o[:, 7:9] - seen)
        return (apart * apart).sum() + ((1 - o[:, 14]**2)**2).sum()

    return (o, uniform(-1, 1, count, 2, kind=np.float64)), loss


def make_march(count):
    width = int(count**0.5)
    i = np.arange(count)
    ray = np.stack([(i % width) / width - 0.5, ((i // width) / width - 0.5) * 0.6 - 0.15, np.ones(count)], -1)
    ray = (ray / np.linalg.norm(ray, axis=-1, keepdims=True)).astype(np.float32)
    scene = np.array([0.9, 0.4, -0.3, 0.8, 0.6, 0.5, 0.7, 0.1, -0.6, 0.5], np.float32)
    eye = array(np.array([0, 1, -5], np.float32))

    def union(a, b, k):
        h = at_least(k - xp.abs(a - b), 0) / k
        return xp.minimum(a, b) - h * h * k * 0.25

    def step(state, extra):
        s, ray = extra
        t, on = state
        p = eye + t[:, None] * ray
        r = p - s[:, 0:3]
        q = xp.abs(p) - s[:, 4:7]
        out, inner = at_least(q, 0), xp.maximum(q[:, 0], xp.maximum(q[:, 1], q[:, 2]))
        square = dot(out, out)
        outside = xp.sqrt(xp.where(square > 0, square, xp.ones_like(square))) * (square > 0)
        box = outside + xp.minimum(inner, xp.zeros_like(inner)) - s[:, 7]
        d = union(union(xp.sqrt(dot(r, r)) - s[:, 3], box, s[:, 9]), p[:, 1] - s[:, 8], s[:, 9])
        on = on & (d >= 1e-3)
        t = xp.where(on, t + d, t)
        return t, on & (t <= 12)

    def loss(s, ray):
        return steps(step, (xp.zeros_like(ray[:, 0]), ray[:, 0] == ray[:, 0]), 96, (s, ray))[0].sum()

    return (np.tile(scene, (count, 1)), ray), loss


ITEMS = {"ggx": 1 << 22, "splat": 1 << 20, "particle": 1 << 18, "brdf": 1 << 22, "march": 1 << 20, "ode": 1 << 16, "inverse": 1 << 21,
         "bundle": 1 << 20, "mlp": 1 << 16, "mlp_tensor": 1 << 16, "mlp_struct": 1 << 16, "filter": 1 << 20, "gmm": 1 << 16, "lstm": 1 << 15,
         "matmul": 1 << 20}
VALUES = ("matmul",)  # no derivative is asked for


# ---- measuring

def gradient_of(name):
    """A function without arguments that computes the gradient and waits for it."""
    if name not in ITEMS:
        raise ValueError("has no derivative")
    data, loss = globals()[f"make_{name}"](ITEMS[name])
    data = [array(part) for part in data]
    if KIND == "jax":
        gradient = jax.jit(loss if name in VALUES else jax.grad(loss))
        return lambda: gradient(*data).block_until_ready()
    if KIND == "compile" and name not in ("particle", "ode", "march"):
        loss = torch.compile(loss)
    at = data[0].requires_grad_(name not in VALUES)

    def run():
        result = loss(at, *data[1:])
        if name not in VALUES:
            result = torch.autograd.grad(result, at)
        torch.cuda.synchronize()
        return result

    return run


def median(run):
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
        if sum(times) > 4:
            break
    return sorted(times)[len(times) // 2]


def main():
    works = {}
    for name in NAMES:
        try:
            works[name] = gradient_of(name)
            works[name]()
            works[name]()
        except Exception as error:
            works.pop(name, None)
            print(f"{KIND} {name}: {str(error).splitlines()[0][:200]}", file=sys.stderr, flush=True)
    print("ready", flush=True)
    for line in sys.stdin:
        name = line.strip()
        print(name, median(works[name]) * 1e9 / ITEMS[name] if name in works else "-", flush=True)


main()
