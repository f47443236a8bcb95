"""PyTorch: gradcheck and gradgradcheck in double precision, for everything here; on a GPU too, where there is one."""
import io

import numpy as np
import pytest
import slope

torch = pytest.importorskip("torch")
import slope.torch  # noqa: E402

PROGRAM = """
[Differentiable] double cubic(double3 x, double s) { return x.x * x.y * x.z * s * s + sin(x.x); }
[Differentiable] double3 turned(double3 x, double s) { return s * x * x.yzx; }
[Differentiable] double outs(double3 y, inout double q, out double w) { w = q * y.x * y.x; q = q * q; return dot(y, y) * q; }
[Differentiable] double power(double x, int n) { double y = 1; for (int i = 0; i < n; i++) y *= x; return y; }
[Differentiable] double corners(double2x2 a, double b[3]) { return a[0][0] * a[1][1] * b[1] + exp(a[0][1] * b[2]); }
[Differentiable] float line(float2 w, no_diff float x) { return w.x * x + w.y; }
[Differentiable] double counted(double x, out int n) { n = 3; return x * x; }
[Differentiable] double buffered(DiffBuffer<double> w, double x) { return w.load(0) * x * x + w.load(1) * w.load(0); }
struct Pair : IDifferentiable { double a, b; }
[Differentiable] double inside(Pair p) { return p.a * p.b; }
float plain(float x) { return x; }
"""


DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
IS_NEW = slope.torch.HAS_TRANSFORMS


@pytest.fixture(scope="module")
def t():
    return slope.compile(PROGRAM)


def put(arguments, device):
    """The same arguments, leaves of a graph, on a device."""
    return [argument.detach().to(device).requires_grad_(argument.requires_grad) if isinstance(argument, torch.Tensor) else argument
            for argument in arguments]


def random(*shape, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, dtype=torch.float64, generator=generator).requires_grad_()


CASES = {
    "one row": ("cubic", lambda: (random(3), random())),
    "rows": ("cubic", lambda: (random(5, 3), random(5))),
    "a shared argument": ("cubic", lambda: (random(5, 3), random())),
    "broadcast": ("cubic", lambda: (random(2, 1, 3), random(3))),
    "a vector": ("turned", lambda: (random(4, 3), random(4))),
    "strided": ("turned", lambda: (random(3, 4).T, random(4))),
    "several results": ("outs", lambda: (random(4, 3), random(4))),
    "an integer": ("power", lambda: (random(4), torch.tensor([0, 1, 2, 3]))),
    "a buffer": ("buffered", lambda: (random(2), random())),
    "a buffer for all rows": ("buffered", lambda: (random(2), random(3))),
    "a constant": ("power", lambda: (random(4), 3)),
    "matrices and arrays": ("corners", lambda: (random(2, 2, 2), random(3))),
    "a result without derivative": ("counted", lambda: (random(4),)),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CASES)
def test_gradcheck(t, name, device):
    function, make = CASES[name]
    operation, arguments = slope.torch.wrap(t[function]), put(make(), device)
    whole = function != "counted"  # forward mode of PyTorch 1 wants tangents of integers
    call = operation if whole else lambda x: operation(x)[0]
    assert torch.autograd.gradcheck(call, arguments, check_forward_ad=whole)
    assert torch.autograd.gradgradcheck(call, arguments)
    assert call(*arguments) is not None and first(operation(*arguments)).device.type == device


def first(found):
    return found[0] if isinstance(found, tuple) else found


def test_single_precision_and_types(t):
    w, x = torch.ones(2, requires_grad=True), torch.arange(4.0)
    y = slope.torch.wrap(t.line)(w, x)
    y.sum().backward()
    assert y.dtype == torch.float32 and w.grad.tolist() == [6.0, 4.0]
    wide = torch.ones(2, dtype=torch.float64, requires_grad=True)
    slope.torch.wrap(t.line)(wide, x).sum().backward()
    assert wide.grad.dtype == torch.float64
    assert not slope.torch.wrap(t.line)(w.detach(), x).requires_grad


def test_no_copies_of_arguments(t):
    x = torch.arange(6.0)
    assert np.shares_memory(slope.torch.memory_of(x, "x"), x.numpy())


def test_modules_learn_and_are_saved(t):
    x = torch.linspace(-1, 1, 32)
    layer = slope.torch.Module(t.line, w=torch.zeros(2))
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
    for _ in range(200):
        optimizer.zero_grad()
        ((layer(x) - (3 * x - 1)) ** 2).mean().backward()
        optimizer.step()
    assert torch.allclose(layer.w, torch.tensor([3.0, -1.0]), atol=1e-4)
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    other = slope.torch.Module(t.line, w=torch.zeros(2))
    other.load_state_dict(torch.load(file))
    assert torch.equal(other(x), layer(x))


BAD = {
    "no derivative": (slope.SlopeError, "not differentiable", lambda t: slope.torch.wrap(t.plain)),
    "no function": (TypeError, "a function of a slope module", lambda t: slope.torch.wrap(abs)),
    "shape": (ValueError, "does not end", lambda t: slope.torch.wrap(t.cubic)(torch.zeros(2), 1.0)),
    "device": (TypeError, "is on meta", lambda t: slope.torch.wrap(t.cubic)(torch.zeros(3, device="meta"), 1.0)),
    "bfloat16": (TypeError, "'s' is a tensor of torch.bfloat16; give it as", lambda t: slope.torch.wrap(t.cubic)(random(3), torch.ones((), dtype=torch.bfloat16))),
    "sparse": (TypeError, "sparse", lambda t: slope.torch.wrap(t.cubic)(torch.zeros(3).to_sparse(), 1.0)),
    "hidden": (TypeError, "inside a dict", lambda t: slope.torch.wrap(t.inside)({"a": torch.zeros(1), "b": 1.0})),
    "none": (TypeError, "'s' is None", lambda t: slope.torch.wrap(t.cubic)(torch.zeros(3), None)),
    "missing": (TypeError, "'s' is missing", lambda t: slope.torch.wrap(t.cubic)(torch.zeros(3))),
    "unknown": (TypeError, "no parameter 'q'", lambda t: slope.torch.Module(t.line, q=1)),
    "third": (RuntimeError, "third derivatives", lambda t: third(slope.torch.wrap(t.power))),
}


def third(operation):
    x = random()
    y = operation(x, 4)
    for _ in range(3):
        (y,) = torch.autograd.grad(y, x, create_graph=True)


@pytest.mark.parametrize("name", BAD)
def test_wrong_input(t, name):
    kind, text, call = BAD[name]
    with pytest.raises(kind, match=text):
        call(t)


@pytest.mark.skipif(IS_NEW, reason="works since PyTorch 2")
def test_vmap_says_what_to_do(t):
    functorch = pytest.importorskip("functorch")
    operation = slope.torch.wrap(t.power)
    with pytest.raises(TypeError, match="under vmap: call it with all rows at once"):
        functorch.vmap(lambda x: operation(x, 2))(torch.ones(3, dtype=torch.float64))


@pytest.mark.skipif(not IS_NEW, reason="needs torch.func of PyTorch 2")
@pytest.mark.parametrize("device", DEVICES)
def test_transforms(t, device):
    """vmap, grad and jvp of torch.func, also of each other."""
    func, cubic = torch.func, slope.torch.wrap(t.cubic)
    x, s = (argument.detach() for argument in put([random(5, 3), random()], device))
    assert torch.allclose(func.vmap(cubic, (0, None))(x, s), cubic(x, s))
    assert torch.allclose(func.vmap(cubic, (1, None))(x.T, s), cubic(x, s))
    by_row = func.vmap(func.grad(cubic, argnums=(0, 1)), (0, None))(x, s)
    wanted = [func.grad(cubic, argnums=(0, 1))(row, s) for row in x]
    assert torch.allclose(by_row[0], torch.stack([one for one, _ in wanted]))
    assert torch.allclose(by_row[1], torch.stack([one for _, one in wanted]))
    value, tangent = func.jvp(lambda y: cubic(y, s), (x,), (torch.ones_like(x),))
    assert torch.allclose(value, cubic(x, s)) and torch.allclose(tangent, by_row[0].sum(-1))
    rows = func.vmap(func.jacrev(lambda y: slope.torch.wrap(t.turned)(y, s)))(x)
    assert torch.allclose(rows, func.vmap(func.jacfwd(lambda y: slope.torch.wrap(t.turned)(y, s)))(x))
    with pytest.raises(TypeError, match="is one for all rows"):
        func.vmap(slope.torch.wrap(t.buffered), (0, None))(x[:, :2].contiguous(), s)


COMPILED = {
    "rows": ("cubic", lambda: (random(5, 3), random())),
    "several results": ("outs", lambda: (random(4, 3), random(4))),
    "numbers": ("power", lambda: (random(4), 3)),
    "a list": ("cubic", lambda: ([1.0, 2.0, 3.0], random(4))),
    "a buffer": ("buffered", lambda: (random(2), random(3))),
    "an integer that comes out": ("counted", lambda: (random(4),)),
}


@pytest.mark.skipif(not slope.torch._operator.can_register(), reason="needs torch.library.custom_op of PyTorch 2.4")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", COMPILED)
def test_compiled_graphs_have_no_holes(t, name, device):
    torch._dynamo.reset()  # else the limit of recompilations counts those of the cases before
    function, make = COMPILED[name]
    operation, arguments = slope.torch.wrap(t[function]), put(make(), device)
    whole = torch.compile(lambda *values: first(operation(*values)).sin().sum(), fullgraph=True, backend="aot_eager")
    gradients = []
    for call in (whole, lambda *values: first(operation(*values)).sin().sum()):
        leaves = put(arguments, device)
        value = call(*leaves)
        value.backward()
        gradients.append([value.detach(), *[leaf.grad for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.requires_grad]])
    assert all(torch.allclose(one, other) for one, other in zip(*gradients))


@pytest.mark.skipif(not slope.torch._operator.can_register(), reason="needs torch.library.custom_op of PyTorch 2.4")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["cubic", "outs"])
def test_operators_are_what_they_say(t, name, device):
    operator = slope.torch.wrap(t[name]).operator
    arguments = put((random(4, 3), random(4)), device)
    torch.library.opcheck(operator.whole, tuple(arguments))
    seeds = [torch.ones_like(part) for part in slope.torch.wrap(t[name])(*arguments)] if name == "outs" else [arguments[1].detach()]
    torch.library.opcheck(operator.pull, (*arguments, *[seed.detach() for seed in seeds]))


@pytest.mark.skipif(not slope.torch._operator.can_register(), reason="needs torch.library.custom_op of PyTorch 2.4")
@pytest.mark.parametrize("device", DEVICES)
def test_a_module_is_compiled_and_learns(t, device):
    """By the compiler of PyTorch itself, with code of its own around the function."""
    x = torch.linspace(-1, 1, 32, device=device)
    layer = slope.torch.Module(t.line, w=torch.zeros(2, device=device))
    compiled = torch.compile(layer, fullgraph=True)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
    for _ in range(100):
        optimizer.zero_grad()
        ((compiled(x) - (3 * x - 1)) ** 2).mean().backward()
        optimizer.step()
    assert torch.allclose(layer.w, torch.tensor([3.0, -1.0], device=device), atol=1e-3)


def test_defaults_may_be_left_out():
    operation = slope.torch.wrap(slope.compile("[Differentiable] double f(double x, double y = 3) { return x * x * y; }").f)
    x = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    operation(x).backward()
    assert x.grad == 12


def test_no_rows(t):
    x = torch.zeros(0, 3, dtype=torch.float64, requires_grad=True)
    slope.torch.wrap(t.cubic)(x, 1.0).sum().backward()
    assert x.grad.shape == (0, 3)
