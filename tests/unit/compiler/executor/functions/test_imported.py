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

import loopwright as lw
from compiler.executor.error import UnknownFunctionError
from compiler.executor.functions.imported import IMPORTED_VARIABLE, imports_of
from compiler.executor.functions.registry import register_func, remove_func

MODULE = """
import loopwright as lw

@lw.register_func("test.negate", num_outputs=1)
def negate(x, y):
    y[...] = -x
"""
PROGRAM = """
@T.prim_func
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    X = T.alloc_buffer((4,))
    for i in range(4):
        with T.sblock("X"):
            vi = T.axis.spatial(4, i)
            X[vi] = A[vi] + 1.0
    T.call_packed("test.negate", X, B)
"""
CHECK = """
from compiler.executor.functions.imported import import_functions
from compiler.executor.functions.registry import registered_func
import_functions()
function = registered_func("test.negate")
print(function.function.__module__, function.num_outputs)
"""


@pytest.fixture
def negate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Register a function of a module in a folder that other processes do not know."""
    (tmp_path / "negating.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("negating")
    yield "test.negate"
    remove_func("test.negate")
    del sys.modules["negating"]


def test_another_process_imports_a_function(negate: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(IMPORTED_VARIABLE, imports_of(["blas.matmul", negate]))
    ran = subprocess.run([sys.executable, "-c", CHECK], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["negating", "1"]


def test_a_program_that_calls_a_function_of_a_module_is_tuned(negate: str) -> None:
    result = lw.tune(PROGRAM, target="cpu -num-cores=1", max_trials=2, progress=False)
    assert all(trial.measurement.ok for trial in result.trials)


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
