"""Kernels as they are written for PyTorch: tensors as parameters, groups whose size the host chooses, derivatives as kernels."""
import numpy as np
import pytest
import slope
from slope._library import native

PROGRAM = """
[AutoPyBindCUDA] [CudaKernel] [Differentiable]
void scaled(DiffTensorView input, DiffTensorView output, float gain, no_diff float offset) {
    uint3 id = cudaThreadIdx() + cudaBlockIdx() * cudaBlockDim();
    if (id.x >= input.size(1) || id.y >= input.size(0)) return;
    output[id.y, id.x] = gain * input[id.y, id.x] * input[id.y, id.x] + offset;
}
[CudaKernel] void sizes(TensorView<int> found) { if (cudaThreadIdx().x == 0) { found[0] = int(cudaBlockDim().x); found[1] = int(cudaBlockDim().y); } }
struct Scene { StructuredBuffer<float> lights[2]; RWStructuredBuffer<float> sums; float power; }
ParameterBlock<Scene> scene;
uniform DiffTensor<float, 2> grid;
[shader("compute")] [numthreads(2, 1, 1)]
void light(uint3 id : SV_DispatchThreadID) {
    scene.sums[id.x] = scene.power * (scene.lights[0][id.x] + scene.lights[1][id.x]) + grid.load({ 1, int(id.x) });
}
[Differentiable] float total(DiffTensorView t, float x) { return t[0, 1] * x; }
"""
F = np.float32


@pytest.fixture()
def k():
    return slope.compile(PROGRAM, block=(4, 2))


def square(shape):
    return np.arange(np.prod(shape), dtype=F).reshape(shape)


def test_an_array_stands_for_a_tensor(k):
    x, y = square((3, 5)), np.zeros((3, 5), F)
    k.scaled.dispatch(2, 2, input=x, output=y, gain=2.0, offset=1.0)
    np.testing.assert_array_equal(y, 2 * x * x + 1)
    assert k.total({"primal": x}, 3.0) == 3.0 and k.total(x, 2.0) == 2.0


def test_a_derivative_is_a_kernel_with_parameters_of_its_own(k):
    x, y, dx, dy = square((3, 5)), np.zeros((3, 5), F), np.zeros((3, 5), F), np.ones((3, 5), F)
    k.scaled.dispatch(2, 2, input=x, output=y, gain=2.0, offset=1.0)
    backward = k["bwd_diff(scaled)"]
    backward.dispatch(2, 2, input={"primal": x, "diff": dx}, output={"primal": y, "diff": dy}, gain={"p": 2.0, "d": 0.0}, offset=1.0)
    np.testing.assert_array_equal(dx, 4 * x)
    dy[:] = 2
    backward.dispatch(2, 2, **{"output.diff": dy})
    np.testing.assert_array_equal(dx, 12 * x)
    k.scaled.dispatch(2, 2, gain=3.0)  # which is a number here
    np.testing.assert_array_equal(y, 3 * x * x + 1)
    assert k.total(x, 2.0) == 2.0  # a program that is made now gets the number, too


def test_memory_that_is_given_again_is_not_bound_again(k, monkeypatch):
    x, y, other = square((3, 5)), np.zeros((3, 5), F), np.zeros((3, 5), F)
    k.scaled.dispatch(2, 2, input=x, output=y, gain=1.0, offset=0.0)
    bound, bind = [], native.slope_bind_buffer
    monkeypatch.setattr(native, "slope_bind_buffer", lambda *args: bound.append(args[1]) or bind(*args))

    def run(expected, *names, **tensors):
        y[:], other[:] = -1, -1
        bound.clear()
        k.scaled.dispatch(2, 2, **{"input": x, "output": y, "gain": 1.0, **tensors})
        np.testing.assert_array_equal(tensors.get("output", y), expected)
        assert bound == [name.encode() for name in names]

    run(x * x)
    x[:] = 3  # what is in it may change
    run(x * x)
    run(x * x, "output.primal.data", output=other)
    run(x * x, "output.primal.data")
    k.uniforms["output.primal.data"] = other  # a part of it
    run(x * x, "output.primal.data")
    turned = square((5, 3))[:, ::-1]
    for _ in range(2):
        with pytest.raises(ValueError, match="contiguous"):
            k.uniforms["output"] = turned
    run(x * x, "output.primal.data")
    none = np.zeros((0, 3), F)
    run(none, "output.primal.data", output=none)


def test_groups_have_the_size_that_is_asked_for(k):
    found = np.zeros(2, np.int32)
    k.sizes.dispatch(1, found=found)
    assert found.tolist() == [4, 2] and k.sizes.group_size == (4, 2, 1) and k.light.group_size == (2, 1, 1)
    slope.compile(PROGRAM, block=8).sizes.dispatch(1, found=found)
    assert found.tolist() == [8, 1]
    for wrong in (0, (1, 2, 3, 4), 2.5, (70000,)):
        with pytest.raises(ValueError, match="block is"):
            slope.compile(PROGRAM, block=wrong)


def test_what_has_buffers_is_given_as_a_whole(k):
    scene = {"lights": [np.array([1, 2], F), np.array([10, 20], F)], "sums": np.zeros(2, F), "power": 2.0}
    k.light.dispatch(1, scene=scene, grid=square((2, 2)))
    assert scene["sums"].tolist() == [24, 47]
    k.light.dispatch(1, **{"scene.lights[1]": np.zeros(2, F), "grid": np.zeros((2, 2), F)})
    assert scene["sums"].tolist() == [2, 4]
    with pytest.raises(TypeError, match="the field 'power' of Scene is missing"):
        k.light.dispatch(1, scene={name: scene[name] for name in ("lights", "sums")})
    with pytest.raises(TypeError, match="pointers cannot be given"):
        slope.compile('uniform float* p; [shader("compute")] [numthreads(1,1,1)] void f() { *p = 1; }').f.dispatch(1, p=np.zeros(1, F))


BLOCKS = """
struct Lamp { float3 at[2]; float power; }
struct Scene { float weights[3]; float gain; float3x3 turn; int grid[2][2]; Lamp lamps[2]; float last[2]; }
ParameterBlock<Scene> scene;
struct More { StructuredBuffer<float> data; float weights[2]; }
ParameterBlock<More> more;
RWStructuredBuffer<float> found;
[shader("compute")] [numthreads(1, 1, 1)]
void collect(uint3 id : SV_DispatchThreadID) {
    int n = 0;
    for (int i = 0; i < 3; i++) found[n++] = scene.weights[i];
    found[n++] = scene.gain;
    for (int i = 0; i < 9; i++) found[n++] = scene.turn[i / 3][i % 3];
    for (int i = 0; i < 4; i++) found[n++] = scene.grid[i / 2][i % 2];
    for (int l = 0; l < 2; l++) {
        for (int i = 0; i < 6; i++) found[n++] = scene.lamps[l].at[i / 3][i % 3];
        found[n++] = scene.lamps[l].power;
    }
    for (int i = 0; i < 2; i++) found[n++] = scene.last[i];
    for (int i = 0; i < 2; i++) found[n++] = more.weights[i] * more.data[i];
}
"""


@pytest.mark.parametrize("as_lists", [False, True])
def test_arrays_in_blocks_have_gaps_that_nobody_sees(as_lists):
    k, found = slope.compile(BLOCKS), np.zeros(35, F)
    numbers = iter(range(1, 36))

    def some(*shape, dtype=F):
        array = np.array([next(numbers) for _ in range(int(np.prod(shape)))], dtype).reshape(shape)
        return array.tolist() if as_lists else array

    scene = {"weights": some(3), "gain": next(numbers), "turn": some(3, 3), "grid": some(2, 2, dtype=np.int32),
             "lamps": [{"at": some(2, 3), "power": next(numbers)} for _ in range(2)], "last": some(2)}
    k.collect.dispatch(1, scene=scene, more={"data": np.ones(2, F), "weights": some(2)}, found=found)
    np.testing.assert_array_equal(found, range(1, 36))


def test_arrays_in_blocks_have_their_length():
    k, scene = slope.compile(BLOCKS), "scene.weights"
    k.uniforms[scene] = np.ones(3, F)
    for wrong in (np.ones(4, F), [1.0, 2.0], 3.0, np.ones((2, 3), F)):
        with pytest.raises((TypeError, ValueError), match="scene.weights"):
            k.uniforms[scene] = wrong
