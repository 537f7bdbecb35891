"""Functions that another process imports."""

from __future__ import annotations

import ctypes
import importlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from compiler.executor.error import UnknownFunctionError
from compiler.executor.functions.imported import IMPORTED_VARIABLE, imports_of
from compiler.executor.functions.registry import register_func, remove_func

MODULE = """
import loopwright as lw

@lw.register_func("test.negate", num_outputs=1)
def negate(x, y):
    y[...] = -x
"""
CHECK = """
from compiler.executor.functions.imported import import_functions
from compiler.executor.functions.registry import registered_func
import_functions()
function = registered_func("test.negate")
print(function.function.__module__, function.num_outputs)
"""


@contextmanager
def negating(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Register a function of a module in a folder that other processes do not know."""
    (folder / "negating.py").write_text(MODULE)
    monkeypatch.syspath_prepend(folder)
    importlib.import_module("negating")
    yield "test.negate"
    remove_func("test.negate")
    del sys.modules["negating"]


def test_another_process_imports_a_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [sys.executable, "-c", CHECK]
    with negating(tmp_path, monkeypatch) as name:
        monkeypatch.setenv(IMPORTED_VARIABLE, imports_of(["blas.matmul", name]))
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["negating", "1"]


@contextmanager
def _registered(function: Callable[..., object]) -> Iterator[str]:
    register_func("test.here", function)
    yield "test.here"
    remove_func("test.here")


def test_what_no_other_process_could_import_is_refused() -> None:
    def local(x: object, y: object) -> None: ...

    with (
        _registered(local) as name,
        pytest.raises(UnknownFunctionError, match=r"define it at the top level of a module other"),
    ):
        imports_of([name])
    with (
        _registered(ctypes.CDLL(None).memcpy) as name,
        pytest.raises(UnknownFunctionError, match="is a function in C"),
    ):
        imports_of([name])
    with pytest.raises(UnknownFunctionError, match=r"no function is registered as 'test\.none'"):
        imports_of(["test.none"])
    assert imports_of(["blas.matmul"]) == ""
