"""Tensors of a GPU: the source compiles (with NVRTC), arguments arrive (on a GPU that g++ stands for), and, where there is a GPU, it is so there."""
import gc
import shutil

import numpy as np
import pytest
import slope

torch = pytest.importorskip("torch")
import emulated  # noqa: E402
import slope.torch  # noqa: E402
from slope import SlopeError, cuda  # noqa: E402
from slope._rows import Layout  # noqa: E402
from test_torch import CASES, PROGRAM as OPERATIONS  # noqa: E402

PROGRAM = """
uniform float gain;
uniform float signal; // which C has a function for
uniform float table[4];
StructuredBuffer<float> known;
struct Pair { float a; int b; }
[Differentiable] float mixed(DiffBuffer<float> w, float2x2 a, float3 x, int n) {
    float y = w.load(0) * x.y + w.load(1) * a[0][1];
    for (int i = 0; i < n; i++) y = y * x.x * gain + a[1][0];
    return y;
}
float plain(float x) { return x * table[2]; }
float called(float x) { return x * signal; }
float held(float x) { return x * known[0]; }
uint counted(uint x, out half y, out bool z, out uint8_t w) { y = half(x); z = x > 1; w = uint8_t(x); return x + 1; }
Pair paired(float x) { Pair p; p.a = x; p.b = 2; return p; }
float inside(Pair p, float x) { return p.a * x + p.b; }
float sums(TensorView<float> t, float x) { return t[uint2(1, 0)] * x; }
"""


@pytest.fixture
def program():
    module = slope.compile(PROGRAM)
    module.uniforms["gain"] = 0.5
    return module


def has_compiler():
    try:
        return bool(cuda.architectures())
    except SlopeError:
        return False


@pytest.mark.skipif(not has_compiler(), reason="NVRTC is not installed")
@pytest.mark.parametrize("name", sorted({function for function, _ in CASES.values()}))
def test_source_compiles(name):
    operation = slope.torch.wrap(slope.compile(OPERATIONS)[name])
    derivative = operation.derivative
    for function, part in ((operation.function, ()), (derivative.backward, ("d",)), (operation.function.fwd_diff, ()),
                           (derivative.backward.fwd_diff, ("d", "d"))):
        source = cuda.DeviceRows(function).source(Layout(function, frozenset(), part))
        assert cuda.compile_source(source.text, [], (9, 0)).image


@pytest.mark.skipif(not has_compiler(), reason="NVRTC is not installed")
def test_what_does_not_compile_says_why():
    with pytest.raises(SlopeError, match='identifier "nothing" is undefined'):
        cuda.compile_source("__global__ void f() { nothing; }", [], (9, 0))
    assert cuda.target_of((99, 0)) == (f"compute_{max(cuda.architectures())}", False)


def check_mixed(program, device):
    """Values and gradients of one function with all kinds of arguments, against those of arrays of the CPU."""
    w, a, x, n = np.float32([0.5, 2]), np.eye(2, dtype="f4") + 1, np.random.default_rng(1).normal(size=(300, 3)), [1, 2, 0] * 100
    wanted = program.mixed(w, a, x, n)
    gradients = slope.vjp(program.mixed, w, a, x, n)[1](1.0)
    tensors = [torch.tensor(value, device=device) for value in (w, a, x, n)]
    found = program.mixed(*tensors)
    assert found.dtype == torch.float32 and np.allclose(found.cpu().numpy(), wanted, rtol=1e-4)
    pulled = slope.vjp(program.mixed, *tensors)[1](torch.ones(300, device=device))
    assert pulled[3] is None
    for one, other in zip(pulled[:3], gradients):
        assert np.allclose(one.cpu().numpy(), other, rtol=1e-3, atol=1e-3)


@pytest.mark.skipif(not shutil.which("g++"), reason="g++ is not installed")
def test_arguments_arrive(program, monkeypatch, tmp_path):
    """Host arrays are computed with first: afterwards tensors are taken for those of a GPU."""
    program.uniforms["signal"] = 3.0
    device = emulated.emulate(monkeypatch, tmp_path)
    check_mixed(program, "cpu")
    assert program.called(torch.tensor([2.0])).tolist() == [6]
    assert device.launches == 4


# ---- on a GPU

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")


@on_gpu
def test_all_kinds_of_arguments(program):
    check_mixed(program, "cuda")
    program.uniforms["gain"] = 2.0
    check_mixed(program, "cuda")


@on_gpu
def test_types_of_results(program):
    found = program.counted(torch.tensor([1, 2], device="cuda"))
    assert [part.tolist() for part in found] == [[2, 3], [1, 2], [False, True], [1, 2]]
    assert [part.dtype for part in found] == [torch.uint32, torch.float16, torch.bool, torch.uint8]
    assert program.paired(torch.tensor(3.0, device="cuda")) == {"a": 3.0, "b": 2}
    assert program.inside({"a": 2.0, "b": 1}, torch.ones(3, device="cuda")).tolist() == [3, 3, 3]
    assert program.sums(torch.arange(6.0, device="cuda").reshape(2, 3), torch.ones(2, device="cuda")).tolist() == [3, 3]
    assert program.inside({"a": 2.0, "b": 1}, torch.ones(0, device="cuda")).shape == (0,)


@on_gpu
def test_no_copies_of_arguments():
    m = slope.compile("float twice(float x) { return 2 * x; } void fill(RWStructuredBuffer<float> b, float x, int i) { b[i] = x; }")
    x = torch.rand(1 << 20, device="cuda")
    m.twice(x)
    gc.collect()  # what other tests left is not freed meanwhile
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    y = m.twice(x)
    assert torch.cuda.max_memory_allocated() - before == y.numel() * 4 and torch.equal(y, 2 * x)
    m.fill(x, torch.tensor([7.0, 8.0], device="cuda"), torch.tensor([0, 1], device="cuda"))
    assert x[:2].tolist() == [7, 8]


@on_gpu
def test_the_current_stream():
    m, stream = slope.compile("float slow(float x) { for (int i = 0; i < 20000; i++) x = sin(x); return x; }"), torch.cuda.Stream()
    x = torch.ones(1 << 16, device="cuda")
    m.slow(x)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        m.slow(x)
        assert not stream.query() and torch.cuda.default_stream().query()
    stream.synchronize()


@on_gpu
def test_long_loops_keep_what_they_need():
    m = slope.compile("[Differentiable] float power(float x, int n) { float y = 1; for (int i = 0; i < n; i++) y *= x; return y; }")
    x = torch.ones(1000, device="cuda")
    assert torch.allclose(slope.grad(m.power)(x, 3000), torch.full_like(x, 3000))


BAD = {
    "places": (TypeError, "in different places", lambda m: slope.torch.wrap(m.mixed)(*on_both())),
    "a buffer of the CPU": (TypeError, "is memory of the CPU", lambda m: m.mixed(np.ones(2, "f4"), *on_gpu_all()[1:])),
    "a global buffer": (TypeError, "which only the CPU knows", lambda m: m.held(torch.ones(2, device="cuda"))),
    "a part of a uniform": (TypeError, "set all of it", lambda m: part_of_table(m)),
    "a struct": (TypeError, "one by one", lambda m: m.inside({"a": torch.ones(2, device="cuda"), "b": 1}, 1.0)),
    "shape": (ValueError, "does not end", lambda m: m.mixed(*on_gpu_all()[:2], torch.ones(2, device="cuda"), 1)),
    "rows": (ValueError, "do not go together", lambda m: m.mixed(*on_gpu_all()[:2], *[torch.ones(*s, device="cuda", dtype=t) for s, t in
                                                                                  (((2, 3), None), ((3,), torch.int32))])),
    "type": (TypeError, "int was expected", lambda m: m.mixed(*on_gpu_all()[:3], torch.ones(1, device="cuda"))),
    "number": (ValueError, "no numbers of type", lambda m: m.plain(torch.ones(2, device="cuda", dtype=torch.bfloat16))),
    "too large": (TypeError, "int was expected", lambda m: m.mixed(*on_gpu_all()[:3], torch.tensor([2**40], device="cuda"))),
    "uniform": (TypeError, "this runs on the CPU", lambda m: m.uniforms.update(known=torch.ones(2, device="cuda"))),
    "not contiguous": (ValueError, "not contiguous", lambda m: m.mixed(torch.ones(4, device="cuda")[::2], *on_gpu_all()[1:])),
}


def on_gpu_all():
    return [torch.ones(shape, device="cuda") for shape in ((2,), (2, 2), (3,))] + [torch.tensor(1, device="cuda")]


def on_both():
    return [on_gpu_all()[0], torch.ones(2, 2), *on_gpu_all()[2:]]


def part_of_table(m):
    m.uniforms["table[2]"] = 3.0
    return m.plain(torch.ones(2, device="cuda"))


@on_gpu
@pytest.mark.parametrize("name", BAD)
def test_wrong_input(program, name):
    kind, text, call = BAD[name]
    with pytest.raises(kind, match=text):
        call(program)
