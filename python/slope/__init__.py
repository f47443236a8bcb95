"""Slope: differentiable programs in Slang, from Python.

    import slope
    m = slope.compile("[Differentiable] float f(float x, float y) { return x * x * y; }")
    m.f(3.0, 2.0)                       # 18.0
    m.f(numpy.arange(1e6), 2.0)         # an array: the function of every row, over all cores
    slope.grad(m.f)(3.0, 2.0)           # 12.0
"""
from ._derivatives import grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp
from ._library import SlopeError, native as _native
from ._module import Function, GradcheckResult, Module, compile, load
from ._types import Struct

__version__: str = _native.slope_version().decode()
__all__ = ["Function", "GradcheckResult", "Module", "SlopeError", "Struct", "compile", "grad", "hessian",
           "hvp", "jacobian", "jvp", "load", "value_and_grad", "vjp"]
