"""Wrong input is an exception that says what is wrong."""
import pickle

import numpy as np
import pytest
import slope


def read_only(array):
    array.flags.writeable = False
    return array


SHARED = np.zeros((4, 3), "f4")
CASES = {
    "missing": (TypeError, "argument 'y' is missing", lambda m: m.product(1)),
    "too many": (TypeError, "takes 1 argument, not 2", lambda m: m.plain(1, 2)),
    "iterated": (TypeError, "'Module' object is not iterable", lambda m: list(m)),
    "no tuples": (TypeError, r"also of one: jvp\(f, \(x,\), \(dx,\)\)", lambda m: slope.jvp(m.product, 2, 1)),
    "macros": (TypeError, "defines is a dict", lambda m: slope.compile("", defines="N=3")),
    "unknown keyword": (TypeError, "no parameter 'q'", lambda m: m.plain(1, q=2)),
    "twice": (TypeError, "given twice", lambda m: m.plain(1, x=2)),
    "none": (TypeError, "'x' is None", lambda m: m.plain(None)),
    "text": (TypeError, "float was expected, not 'a'", lambda m: m.plain("a")),
    "object": (TypeError, "float was expected, not object", lambda m: m.plain(object())),
    "complex": (TypeError, "an array of complex128", lambda m: m.plain(np.zeros(2, complex))),
    "fraction": (TypeError, "int was expected, not 2.5", lambda m: m.power(1, 2.5)),
    "too large": (TypeError, "int was expected, not 1099511627776", lambda m: m.power(1, 2**40)),
    "negative": (TypeError, "uint8_t was expected, not -1", lambda m: m.small(-1)),
    "bool": (TypeError, "bool was expected, not 1", lambda m: m.inverted(1)),
    "shape": (ValueError, r"float3 has the shape \(3,\)", lambda m: m.turned([1, 2])),
    "ragged": (ValueError, "x: setting an array element", lambda m: m.turned([1, 2, [3]])),
    "broadcast": (ValueError, "do not go together", lambda m: m.product(np.zeros(3), np.zeros((2, 3)), 1)),
    "struct": (TypeError, "a dict with the fields of Material", lambda m: m.shade([1], 1)),
    "field missing": (TypeError, "field 'rough' of Material is missing", lambda m: m.shade({"base": [1, 2, 3]}, 1)),
    "field unknown": (TypeError, "has no field 'z'", lambda m: m.shade({"base": [1, 2, 3], "rough": 1, "id": 1, "z": 1}, 1)),
    "field shape": (ValueError, "m.base: float3", lambda m: m.shade({"base": 1, "rough": 1, "id": 1}, 1)),
    "count": (TypeError, "a list of 2 values", lambda m: m.total([])),
    "buffer list": (TypeError, "a list has none", lambda m: m.element([1, 2], 0)),
    "buffer type": (TypeError, "needs an array of float32, not of float64", lambda m: m.element(np.zeros(3), 0)),
    "buffer strided": (ValueError, "not contiguous", lambda m: m.element(np.zeros(6, "f4")[::2], 0)),
    "buffer unaligned": (ValueError, "give a copy of it", lambda m: m.element(np.zeros(9, "u1")[1:].view("f4"), 0)),
    "buffer of others": (TypeError, "not of >f4", lambda m: m.element(np.zeros(2, ">f4"), 0)),
    "buffer read-only": (ValueError, "read-only", lambda m: m.fill(read_only(np.zeros((2, 3), "f4")), [1, 2, 3])),
    "buffer size": (ValueError, "no whole number", lambda m: m.fill(np.zeros(4, "f4"), [1, 2, 3])),
    "buffer shape": (ValueError, r"does not end \(3, 2\)", lambda m: m.fill(np.zeros((3, 2), "f4"), [1, 2, 3])),
    "shared memory": (ValueError, "'b' is written to, and shares its memory with 'x'", lambda m: m.fill(SHARED, SHARED)),
    "tensor rank": (ValueError, "has 2 dimensions, the array 1", lambda m: m.bilinear(np.zeros(3), 1)),
    "tensor type": (TypeError, "needs an array of float64", lambda m: slope.grad(m.line)(np.zeros(3, "f4"), 1)),
    "tensor list": (TypeError, "a list has none", lambda m: slope.grad(m.line)([1, 2], 1)),
    "unknown": (AttributeError, "no function 'nope'", lambda m: m.nope),
    "syntax": (slope.SlopeError, "error E", lambda m: m["1 +"]),
    "no such overload": (slope.SlopeError, "error E", lambda m: m["plain(float3)"]),
    "no such function": (slope.SlopeError, "error E", lambda m: m["nope(float3)"]),
    "no text": (TypeError, "an expression in a string", lambda m: m[3]),
    "uniform unknown": (slope.SlopeError, "no parameter 'nope'", lambda m: m.ramp.dispatch(1, nope=1)),
    "uniform rows": (ValueError, "scale: float has the shape", lambda m: m.ramp.dispatch(1, scale=[1, 2])),
    "groups": (ValueError, "no numbers of groups", lambda m: m.ramp.dispatch(-1)),
    "parts of groups": (TypeError, "integer", lambda m: m.ramp.dispatch(1.5)),
    "threads": (slope.SlopeError, "SlopeConfig.threads is 0 or more, not -1", lambda m: slope.compile("", threads=-1)),
    "no kernel": (slope.SlopeError, "error E", lambda m: m["square<float>"].dispatch(1)),
    "abort": (slope.SlopeError, "fails", lambda m: m.fails(2)),
    "not differentiable": (slope.SlopeError, "'plain' is not differentiable", lambda m: m.plain.bwd_diff),
    "gradient of nothing": (slope.SlopeError, "'plain' is not differentiable", lambda m: slope.grad(m.plain)),
    "no derivative": (slope.SlopeError, "no derivative by 'z'", lambda m: slope.grad(m.product, 2)),
    "no argument": (ValueError, "has no argument 7", lambda m: slope.grad(m.product, 7)),
    "no function": (TypeError, "a function of a slope module", lambda m: slope.grad(3)),
    "no number": (TypeError, "use vjp or jacobian", lambda m: slope.grad(m.turned)),
    "no matrix": (TypeError, "'m' is a Material", lambda m: slope.jacobian(m.shade)),
    "tangents": (TypeError, "3 tangents were expected", lambda m: slope.jvp(m.product, (1, [1, 2, 3], 1), (1,))),
    "cotangents": (TypeError, "has 3 results", lambda m: slope.vjp(m.outs, [1, 2, 3], 1.0)[1](1.0)),
    "pickle": (TypeError, "cannot be pickled", lambda m: pickle.dumps(m.plain)),
    "optimization": (ValueError, "0 to 3", lambda m: slope.compile("", optimization=9)),
    "file": (FileNotFoundError, "no.slang", lambda m: slope.load("no.slang")),
}


@pytest.mark.parametrize("name", CASES)
def test_wrong_input(m, name):
    kind, text, call = CASES[name]
    with pytest.raises(kind, match=text):
        call(m)
    assert m.plain(1.0) == 1.0  # the module goes on


def test_what_is_unusual_is_no_error(m):
    assert np.isnan(m.plain(float("nan"))) and m.plain(float("-inf")) == -np.inf
    assert np.isnan(slope.grad(m.power)(float("nan"), 2)) and np.isnan(m.plain(np.array([np.nan, 1]))[0])
    assert m.plain(np.zeros(0)).shape == (0,) and m.turned(np.zeros((2, 0, 3))).shape == (2, 0, 3)
    assert m.element(np.zeros(0, "f4"), 0) == 0 and slope.grad(m.power)(np.zeros((0, 4)), 2).shape == (0, 4)
    assert m.plain(np.arange(9, dtype="u1")[1:].view(">f4")).shape == (2,)
    assert m.plain(np.arange(4, dtype=">i2")[::-2]).tolist() == [3, 1]
    unaligned = np.zeros(4 * 5 + 1, "u1")[1:].view("f4")
    unaligned[:] = [1, 2, 3, 4, 5]
    assert m.plain(unaligned).tolist() == [1, 2, 3, 4, 5]


def test_messages_show_the_source_line():
    with pytest.raises(slope.SlopeError) as caught:
        slope.compile("float f() {\n    return y;\n}", path="lines.slang")
    assert "lines.slang:2:12: error E3001: unknown name 'y'\n      return y;\n" in str(caught.value)
    assert "\x1b[" in caught.value.coloured and "\x1b[" not in str(caught.value)


def test_indices_out_of_range_are_told_on_request():
    text = "float element(StructuredBuffer<float> b, int i) { return b[i]; }"
    relaxed, strict = slope.compile(text), slope.compile(text, strict=True)
    data = np.ones(3, np.float32)
    assert relaxed.element(data, 3) == 0 and strict.element(data, 2) == 1
    with pytest.raises(slope.SlopeError, match="<string>:1:59: error E7053: an index is out of range here, once"):
        strict.element(data, 3)
    with pytest.raises(slope.SlopeError, match="here, 2 times"):
        strict.element(data, [1, 5, -1])
    assert strict.element(data, [0, 1]).tolist() == [1, 1]
