"""Functions by their names."""

from __future__ import annotations

import pytest

from compiler.executor.error import UnknownFunctionError
from compiler.executor.functions.registry import register_func, registered_func, remove_func


def _nothing() -> None: ...


def test_names_are_taken_once() -> None:
    register_func("test.once", _nothing)
    with pytest.raises(ValueError, match=r"already registered as 'test.once': pass override=True"):
        register_func("test.once", _nothing)
    remove_func("test.once")
    with pytest.raises(ValueError, match=r"can't be registered as 'blas.matmul'"):
        register_func("blas.matmul", _nothing)
    with pytest.raises(TypeError, match="expected a function, not an int"):
        register_func("test.number", 3)  # type: ignore[call-overload]
    with pytest.raises(KeyError, match=r"no function is registered as 'test.none'"):
        remove_func("test.none")


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UnknownFunctionError, match=r"'test.none': lw.register_func .*blas.matmul"):
        registered_func("test.none")
