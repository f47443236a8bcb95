"""Functions, kernels and uniforms: values go in and come out as numpy has them."""
import ctypes
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import slope
from conftest import ROOT


def test_scalars_vectors_and_keywords(m):
    assert m.product(2.0, [1, 2, 3], 1.0) == 8.0
    assert m.product(2, z=1, y=np.array([1, 2, 3], "f8")) == 8.0
    assert type(m.power(2.0, 3)) is float and m.power(2.0, np.int64(3)) == 8.0
    assert m.inverted(True) is False and m.small(255) == 255 and m.halved(3) == 1.5


def test_matrices_keep_their_shape(m):
    a = np.arange(6, dtype="f4").reshape(2, 3)
    assert np.array_equal(m.doubled(a), 2 * a)
    rows = np.arange(24, dtype="f4").reshape(4, 2, 3)
    assert np.array_equal(m.doubled(rows), 2 * rows)


def test_out_parameters_are_results(m):
    y, q, w = m.outs([1, 2, 3], 2.0)
    assert np.array_equal(y, [1, 4, 9]) and (q, w) == (4.0, 2.0)
    y, q, w = m.outs(np.ones((5, 3)), 2.0)
    assert y.shape == (5, 3) and q.shape == (5,) and w.dtype == np.float32


def test_structs_are_dicts_or_objects(m):
    material = slope.Struct(base=[1, 2, 3], rough=0.5, id=2)
    assert material.rough == 0.5
    assert m.shade(material, 3.0) == m.shade(dict(material), 3.0) == 6.0

    class Own:
        base, rough, id = [1, 2, 3], 0.5, 2

    assert m.shade(Own(), 3.0) == 6.0
    assert m.total([material, material]) == 0.25


def test_structs_with_rows(m):
    rough = np.linspace(0, 1, 5)
    wanted = rough * 2 * 3
    assert np.allclose(m.shade({"base": [1, 2, 3], "rough": rough, "id": 1}, 3.0), wanted)
    dtype = np.dtype([("base", "f4", 3), ("rough", "f4"), ("id", "i4")])
    rows = np.zeros(5, dtype)
    rows["base"], rows["rough"], rows["id"] = [1, 2, 3], rough, 1
    assert np.allclose(m.shade(rows, 3.0), wanted)
    assert np.allclose(m.total([{"base": [0, 0, 0], "rough": rough, "id": 1}] * 2), rough**2)


def test_generics_and_methods(m):
    assert m["square<float>"](3) == 9.0
    assert m["square<double>"](np.arange(4.0)).dtype == np.float64
    assert np.allclose(m["Camera.project"]({"focal": 2}, [1, 2, 4]), [0.5, 1])
    assert m["Camera.project"]({"focal": np.arange(3)}, [1, 2, 4]).shape == (3, 2)


def test_rows_are_broadcast(m):
    x, z = np.arange(3.0)[:, None], np.arange(4.0)
    assert np.allclose(m.product(x, [1, 2, 3], z), 2 * x + x * x * z)
    assert m.product(np.zeros((1, 1)), [1, 2, 3], 1.0).shape == (1, 1)
    strided = np.arange(10, dtype="f4")[::2]
    assert np.allclose(m["square<float>"](strided), strided**2)


def test_a_million_rows(m):
    x = np.random.default_rng(1).random(1_000_000).astype("f4")
    assert np.array_equal(m["square<float>"](x), x * x)


def test_no_rows(m):
    assert m.product(np.zeros(0), [1, 2, 3], 1.0).shape == (0,)
    assert m.turned(np.zeros((0, 3))).shape == (0, 3)


def test_not_a_number_goes_through(m):
    assert np.isnan(m.plain(float("nan")))
    with np.errstate(over="ignore"):
        assert m.plain(1e300) == float("inf")


def test_buffers_are_the_memory_of_arrays(m):
    b = np.arange(5, dtype="f4")
    assert m.element(b, 3) == 3.0
    assert np.array_equal(m.element(b, np.array([4, 2])), [4, 2])
    assert m.element(np.zeros(0, "f4"), 0) == 0.0
    target = np.zeros((2, 3), "f4")
    m.fill(target, [1, 2, 3])
    assert np.array_equal(target, [[0, 0, 0], [1, 2, 3]])
    fixed = np.arange(5, dtype="f4")
    fixed.flags.writeable = False
    assert m.element(fixed, 1) == 1.0


def test_kernels_and_uniforms(m):
    target = np.zeros(8, "f4")
    assert m.ramp.group_size == (4, 1, 1)
    m.ramp.dispatch(2, data=target, scale=2.0, start=1)
    assert np.array_equal(target, 1 + 2 * np.arange(8))
    m.uniforms["scale"] = 3.0
    m.ramp.dispatch(1)
    assert np.array_equal(target, [1, 4, 7, 10, 9, 11, 13, 15])
    assert {"scale", "data"} <= set(m.uniforms) and m.uniforms["data"] is target


def test_uniforms_reach_functions_and_rows(m):
    m.uniforms["scale"] = 2.0
    assert m.scaled(3.0) == 6.0 and np.array_equal(m.scaled(np.arange(3.0)), [0, 2, 4])
    m.uniforms["scale"] = 5.0
    assert m.scaled(3.0) == 15.0 and np.array_equal(m.scaled(np.arange(3.0)), [0, 5, 10])


def test_functions_found_later_see_the_uniforms_that_were_set_last():
    m = slope.compile("struct Light { float power; int at[2]; }; uniform Light light; uniform float3 tints[2];"
                      + "".join(f"float f{k}() {{ return light.power + light.at[1] * 10 + tints[1].z * 100; }}" for k in range(3)))
    m.uniforms["light.at[1]"] = 7
    m.uniforms["tints[1]"] = [1, 2, 3]
    m.uniforms["light"] = {"power": 1, "at": [2, 3]}
    assert m.f0() == 331
    m.uniforms["tints"] = np.full((2, 3), 4)
    assert m.f0() == m.f1() == 431
    m.uniforms["light.at[1]"] = 5
    assert m.f0() == m.f1() == m.f2() == 451


def test_buffers_of_structs(m):
    materials = np.zeros(3, np.dtype([("base", "f4", 3), ("rough", "f4"), ("id", "i4")]))
    materials["rough"] = [1, 2, 3]
    target = np.zeros(3, "f4")
    m.roughness.dispatch(3, materials=materials, other=target)
    assert np.array_equal(target, [1, 2, 3])


def test_files_imports_and_macros(tmp_path):
    (tmp_path / "part.slang").write_text("public float twice(float x) { return 2 * x; }")
    (tmp_path / "whole.slang").write_text("import part;\nfloat f(float x) { return twice(x) + OFFSET; }")
    module = slope.load(tmp_path / "whole.slang", defines={"OFFSET": 1})
    assert module.f(2.0) == 5.0 and np.array_equal(module.f(np.arange(2.0)), [1, 3])


def test_threads_share_a_module(m):
    found = []

    def work(k):
        found.extend(m.power(float(k), 2) == k * k and np.all(m["square<float>"](np.full(100, k)) == k * k)
                     for _ in range(50))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(found) == 200 and all(found)


def test_what_programs_print_goes_to_python(m, capsys):
    m.says(3)
    assert capsys.readouterr().out == "x = 3\n"


def test_a_fork_while_another_thread_calls(m):
    """The child finds the lock of the module taken, by a thread that it does not have."""
    has_lock, may_go = threading.Event(), threading.Event()

    def hold():
        with m._session.lock:
            has_lock.set()
            may_go.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    has_lock.wait()
    child = os.fork()
    if child == 0:
        try:
            m.plain(1.0)
        except slope.SlopeError as error:
            own = slope.compile("float f(float x) { return 2 * x; }").f(np.ones(5))
            os._exit(0 if "fork" in str(error) and own.sum() == 10 else 2)
        os._exit(1)
    may_go.set()
    holder.join()
    assert os.waitpid(child, 0)[1] == 0


def test_after_a_fork(m):
    m.plain(1.0)
    child = os.fork()
    if child == 0:
        try:
            m.plain(1.0)
        except slope.SlopeError as error:
            os._exit(0 if "fork" in str(error) else 2)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("argument", ["2000000000", "numpy.full(1000, 2000000000)"], ids=["one", "rows"])
def test_exit_while_a_kernel_runs(argument):
    program = ("import numpy, slope, threading, time\n"
               "m = slope.compile('void spin(int n) { for (int i = 0; i < n; i++) printf(\"\"); }')\n"
               "m.spin(1)\n"
               "m.spin(numpy.ones(2, int))\n"
               f"threading.Thread(target=m.spin, args=({argument},), daemon=True).start()\n"
               "time.sleep(0.1)\n")
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "python"))
    assert subprocess.run([sys.executable, "-c", program], env=environment, timeout=20).returncode == 0


@pytest.mark.parametrize("threads", [1, 2])
def test_options(threads):
    module = slope.compile("float f(float x) { return x + 1; }", threads=threads, optimization=1)
    assert np.array_equal(module.f(np.arange(1000.0)), np.arange(1000.0) + 1)


def test_programs_can_be_interpreted():
    text = "[Differentiable] float f(float x, int n) { float y = 1; for (int i = 0; i < n; i++) y = y * x + sin(x); return y; }"
    made, interpreted = slope.compile(text, floats="strict"), slope.compile(text, interpret=True)
    x = np.linspace(0.5, 1.5, 100, dtype=np.float32)
    assert interpreted.f(2.0, 3) == made.f(2.0, 3)
    np.testing.assert_allclose(interpreted.f(x, 7), made.f(x, 7), rtol=1e-6)
    np.testing.assert_allclose(slope.grad(interpreted.f)(x, 7), slope.grad(made.f)(x, 7), rtol=1e-5)


class Remark(ctypes.Structure):
    _fields_ = [("kernel", ctypes.c_char_p), ("lanes", ctypes.c_int), ("why", ctypes.c_char_p), ("path", ctypes.c_char_p),
                ("line", ctypes.c_int), ("column", ctypes.c_int), ("is_loop", ctypes.c_bool)]


def lanes_of_kernels(module):
    """How many rows each kernel that was made of a call does at once."""
    native, session, remark = slope._library.native, module._session.handle, Remark()
    found = []
    for i in range(native.slope_remark_count(session)):
        native.slope_remark(session, i, ctypes.byref(remark))
        found += [] if remark.is_loop else [remark.lanes]
    return found


@pytest.mark.parametrize("lanes", [4, 16, "auto"])
def test_rows_are_done_in_lanes_as_one_by_one(lanes):
    text = """
    [Differentiable] float iterate(float x, int n) {
        float y = x;
        for (int i = 0; i < n; i++) { if (y > 2) break; y = y * y * 0.5 + x * sin(y); }
        return y;
    }
    float shaped(float x) { return sqrt(x * x + 1) / (x * x + 2) * x; }"""
    x = np.linspace(-1, 2, 1003, dtype=np.float32)
    n = np.arange(1003, dtype=np.int32) % 7
    one, several = slope.compile(text, optimization=2, lanes=1), slope.compile(text, optimization=2, lanes=lanes)
    np.testing.assert_allclose(several.iterate(x, n), one.iterate(x, n), rtol=1e-5)
    gradients = [slope.grad(module.iterate)(x, n) for module in (one, several)]
    np.testing.assert_allclose(gradients[1], gradients[0], rtol=1e-4)
    np.testing.assert_allclose(several.shaped(x), one.shaped(x), rtol=1e-5)
    widths = lanes_of_kernels(several)
    assert max(widths) > 1 if lanes == "auto" else widths == [lanes] * 3  # which of them gain depends on the processor


def test_lanes_are_a_power_of_two():
    with pytest.raises(ValueError, match="lanes is"):
        slope.compile("float f(float x) { return x; }", lanes=3)


def test_machine_code_is_kept_where_asked(tmp_path, monkeypatch):
    text = "[Differentiable] float cubed(float x) { return x * x * x; }"

    def files_after(cache, folder):
        assert slope.compile(text, cache=cache).cubed(2.0) == 8.0
        return len(list(folder.glob("*.code"))) if folder.exists() else 0

    folder, other = tmp_path / "a", tmp_path / "b"
    assert files_after(folder, folder) == 1
    assert files_after(str(folder), folder) == 1
    assert files_after(False, other) == 0
    monkeypatch.setenv("SLOPE_CACHE", str(other))
    assert files_after(True, other) == 1
    monkeypatch.setenv("SLOPE_CACHE", "")
    assert files_after(True, other) == 1


def test_tensors_of_slangpy_are_arrays():
    m = slope.compile("""import slangpy;
        RWTensor<float, 1> shared;
        [Differentiable] float f(int2 at, GradOutTensor<float3, 2> t, Tensor<float, 1> w) { let v = t.load(at); return dot(v, v) * w.load(at.x) + shared[0]; }
        void backward(int2 at, GradOutTensor<float3, 2> t, Tensor<float, 1> w, float d) { bwd_diff(f)(at, t, w, d); }""")
    at = np.stack(np.meshgrid([0, 1], [0, 1, 2], indexing="ij"), -1).astype("i4")
    t, w = np.arange(18, dtype="f4").reshape(2, 3, 3), np.array([1, 2], "f4")
    m.uniforms["shared"] = np.array([0.5], "f4")
    assert np.array_equal(m.f(at, t, w), (t * t).sum(-1) * w[:, None] + 0.5)
    gradient = np.zeros_like(t)
    m.backward(at, {"primal": t, "d_out": gradient}, w, 1.0)
    assert np.array_equal(gradient, 2 * t * w[:, None, None])
    with pytest.raises(ValueError, match="has 2 dimensions, the array 1"):
        m.f(at[0, 0], t[0], w)
