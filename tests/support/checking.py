"""Checks of annotations at each call, the same as jaxtyping's at a third of the cost.

jaxtyping binds the arguments of every call to a signature, and has them checked before the call and once more with the
result. Here beartype checks each once. The checks of a function are made at its first call: most test files call few of
the package's functions, and making the checks of all of them takes longer than importing torch. A function within a
function is checked the first time that it is defined: it is another one each time, and making its checks anew took half
of the time of some test files.
"""

import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable
from types import CodeType, FunctionType, SimpleNamespace
from typing import Any

import jaxtyping
from beartype import BeartypeConf, beartype

as_jaxtyping_does = jaxtyping.jaxtyped
by_beartype = beartype(conf=BeartypeConf(violation_type=jaxtyping.TypeCheckError))

_defined_before: set[CodeType] = set()  # of functions within functions


def jaxtyped(*, typechecker: object) -> Callable[[Any], Any]:
    """The decorator of every function and class of the package when it is imported in a test."""
    return _checked


def _checked(callee: Any) -> Any:
    if inspect.isclass(callee):
        if dataclasses.is_dataclass(callee) and not hasattr(callee.__init__, "__wrapped__"):
            callee.__init__ = _checked(callee.__init__)
        return callee
    if isinstance(callee, classmethod | staticmethod):
        return type(callee)(_checked(callee.__func__))
    if isinstance(callee, property):
        return property(*(access and _checked(access) for access in (callee.fget, callee.fset, callee.fdel)))
    if not inspect.isfunction(callee) or _is_kernel(callee):
        return callee
    if "<locals>" in callee.__qualname__:
        if callee.__code__ in _defined_before:
            return callee
        _defined_before.add(callee.__code__)
    sizes_from_arguments = any("{" in repr(hint) for hint in callee.__annotations__.values())
    if sizes_from_arguments:
        return as_jaxtyping_does(callee, typechecker=by_beartype)
    return _at_the_first_call(callee)


def _is_kernel(function: FunctionType) -> bool:
    """Whether Triton compiles the function from its source, in which no wrapper can be."""
    return any(getattr(hint, "__name__", None) == "constexpr" for hint in function.__annotations__.values())


def _at_the_first_call(function: FunctionType) -> Callable[..., Any]:
    typechecked: Callable[..., Any] | None = None

    @functools.wraps(function)
    def call(*arguments: Any, **settings: Any) -> Any:
        __tracebackhide__ = True
        nonlocal typechecked
        if typechecked is None:
            function.__annotations__ = {name: _named(hint, function) for name, hint in function.__annotations__.items()}
            typechecked = _with_checks(function)
        return typechecked(*arguments, **settings)

    return call


def _with_checks(function: FunctionType) -> Callable[..., Any]:
    """The function with its checks. Only shapes need a context, in which their names have sizes."""
    if not any(_has_shape(hint) for hint in function.__annotations__.values()):
        return by_beartype(function)
    if inspect.isgeneratorfunction(function):  # its body runs after the call
        return as_jaxtyping_does(function, typechecker=by_beartype)
    checked = by_beartype(function)

    def call(*arguments: Any, **settings: Any) -> Any:
        __tracebackhide__ = True
        with as_jaxtyping_does("context"):
            return checked(*arguments, **settings)

    return call


def _has_shape(hint: Any) -> bool:
    """Whether an annotation has a shape of an array anywhere in it."""
    if isinstance(hint, type) and issubclass(hint, jaxtyping.AbstractArray):
        return True
    parts = hint if isinstance(hint, list | tuple) else typing.get_args(hint)
    return any(_has_shape(part) for part in parts)


def _named(hint: Any, function: FunctionType) -> Any:
    """Resolve an annotation in quotes; `Any` if only a type checker sees the name, as in jaxtyping."""
    alone = SimpleNamespace(__annotations__={"hint": hint})
    try:
        return typing.get_type_hints(alone, function.__globals__, include_extras=True)["hint"]
    except NameError:
        return Any
