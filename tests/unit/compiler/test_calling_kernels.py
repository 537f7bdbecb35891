"""Programs that call registered functions: text, oracle, evaluator, kernels, files, errors."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compiler.backends.error import BuildError
from compiler.driver import build, compile_kernel, lower
from compiler.executor.artifact import Artifact
from compiler.executor.error import ArtifactError, LibraryCallError, UnknownFunctionError
from compiler.executor.functions.registry import register_func, remove_func
from compiler.executor.kernel import LoadedKernel
from compiler.ir.analysis.structural import structural_equal
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.evaluator.evaluate import EvaluationError, evaluate
from compiler.ir.interpret.inputs import ParamRoles, param_roles
from compiler.ir.interpret.oracle.oracle import OracleError, interpret
from compiler.passes.common.error import LoweringError
from compiler.schedule.schedule import Schedule
from compiler.script import parse
from loopwright.errors import ArtifactRefusedError
from loopwright.kernels.kernel import KernelSource, load
from tests.unit.compiler.script.round_trips import round_tripped

SORTED = """
@T.prim_func
def main(A: T.Buffer((4, 16), "float32"), B: T.Buffer((4, 16), "float32")):
    X = T.alloc_buffer((4, 16))
    Y = T.alloc_buffer((4, 16))
    for i, j in T.grid(4, 16):
        with T.block("X"):
            vi, vj = T.axis.remap("SS", [i, j])
            X[vi, vj] = A[vi, vj] * 2.0
    with T.block("sorted"):
        T.reads(X[0:4, 0:16])
        T.writes(Y[0:4, 0:16])
        T.call_packed("test.sort", X, Y, 1, 0.5, "up")
    for i, j in T.grid(4, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = Y[vi, vj] + 1.0
"""
CALL = 'T.call_packed("test.sort", X, Y, 1, 0.5, "up")'
PART = """
@T.prim_func
def main(A: T.Buffer((4, 16), "float32"), B: T.Buffer((4, 16), "float32")):
    for i, j in T.grid(4, 16):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
    with T.block("call"):
        T.reads(A[1, 4:12])
        T.writes(B[1:3, 4:12])
        a = T.match_buffer(A[1, 4:12], (8,))
        b = T.match_buffer(B[1:3, 4:12], (2, 8), strides=[16, 1])
        T.call_packed("test.rows", a, b)
"""
EXTERN = """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    with T.block("call"):
        T.reads(A[0:64])
        T.writes(B[0:64])
        T.evaluate(T.call_extern("int32", "test.memcpy", B.data, A.data, T.int64(256)))
"""
TARGET = "cpu -mcpu=x86-64 -num-cores=2"


def _sort(x: Any, y: Any, axis: int, scale: float, order: str) -> None:
    assert (axis, scale, order) == (1, 0.5, "up")
    y[...] = np.sort(x, axis) * scale


def _rows(a: Any, b: Any) -> None:
    b[...] = -a


@pytest.fixture(autouse=True)
def _functions() -> Iterator[None]:
    register_func("test.sort", _sort)
    register_func("test.rows", _rows)
    register_func("test.memcpy", ctypes.CDLL(None).memcpy)
    yield
    for name in ("test.sort", "test.rows", "test.memcpy"):
        remove_func(name)


def _input(shape: tuple[int, ...]) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype("float32")


def _all_ways(func: PrimFunc, a: Any) -> list[Any]:
    """Return the result of the oracle, of the evaluator, of a kernel, and of one from a file."""
    artifact = compile_kernel(func, TARGET)
    kernels = [LoadedKernel(artifact), LoadedKernel(Artifact.from_bytes(artifact.to_bytes()))]
    results = [interpret(func, {"A": a})["B"], evaluate(func, {"A": a})["B"]]
    for kernel in kernels:
        b = np.full_like(a, np.nan)
        kernel(a, b)
        results.append(b)
        bound = kernel.bind(a, again := np.full_like(a, np.nan))
        bound()
        results.append(again)
    return results


def test_a_program_that_calls_python_computes_what_numpy_does() -> None:
    func = round_tripped(SORTED)
    assert param_roles(func) == ParamRoles(("A",), ("B",))
    a = _input((4, 16))
    for result in _all_ways(func, a):
        np.testing.assert_array_equal(result, np.sort(a * 2, 1) * np.float32(0.5) + 1)


def test_a_call_gets_the_region_that_a_block_matches() -> None:
    func = round_tripped(PART)
    a = _input((4, 16))
    expected = a.copy()
    expected[1:3, 4:12] = -a[1, 4:12]
    for result in _all_ways(func, a):
        np.testing.assert_array_equal(result, expected)


def test_a_function_in_c_is_called_by_address() -> None:
    a = _input((64,))
    for result in _all_ways(round_tripped(EXTERN), a):
        np.testing.assert_array_equal(result, a)


def test_a_function_with_outputs_needs_no_declaration() -> None:
    register_func("test.twice", lambda a, b: np.multiply(a, 2, out=b), num_outputs=1)
    try:
        bare = parse(
            '@T.prim_func\ndef main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):\n'
            '    T.call_packed("test.twice", A, B)\n'
        )
        assert structural_equal(bare, parse(bare.script()))
        assert param_roles(bare) == ParamRoles(("A",), ("B",))
        for result in _all_ways(bare, np.ones(4, "float32")):
            np.testing.assert_array_equal(result, np.full(4, 2.0, "float32"))
    finally:
        remove_func("test.twice")


def test_the_loops_around_a_call_are_scheduled() -> None:
    sch = Schedule(parse(SORTED))
    for name in ("X", "B"):
        i, j = sch.get_loops(name)
        sch.parallel(i)
        sch.vectorize(j)
    a = _input((4, 16))
    b = np.empty_like(a)
    build(sch, TARGET)(a, b)
    np.testing.assert_array_equal(b, np.sort(a * 2, 1) * np.float32(0.5) + 1)


def test_an_error_of_a_function_is_raised_and_the_kernel_works_afterwards() -> None:
    module = build(parse(SORTED), TARGET)
    remove_func("test.sort")
    fails = [True]

    @register_func("test.sort")
    def _failing(x: Any, y: Any, *others: Any) -> None:
        if fails[0]:
            raise ZeroDivisionError("no such order")
        _sort(x, y, *others)

    kernel = build(parse(SORTED), TARGET)
    a, b = _input((4, 16)), np.empty((4, 16), "float32")
    with pytest.raises(LibraryCallError, match=r"main: .* 'test.sort' raised ZeroDiv.* no such"):
        kernel(a, b)
    for interpreted, error in ((interpret, OracleError), (evaluate, EvaluationError)):
        with pytest.raises(error, match=r"'test.sort' raised ZeroDivisionError"):
            interpreted(parse(SORTED), {"A": a})
    fails[0] = False
    kernel(a, b)
    np.testing.assert_array_equal(b, np.sort(a * 2, 1) * np.float32(0.5) + 1)
    module(a, b)  # a loaded kernel keeps its function


def test_what_a_call_only_reads_is_read_only() -> None:
    remove_func("test.sort")

    @register_func("test.sort")
    def _careless(x: Any, y: Any, *_: Any) -> None:
        x[...] = 0

    kernel = build(parse(SORTED), TARGET)
    a = _input((4, 16))
    with pytest.raises(LibraryCallError, match="raised ValueError: assignment destination is"):
        kernel(a, np.empty_like(a))


def test_an_artifact_requires_its_functions(tmp_path: Path) -> None:
    path = tmp_path / "sorted.lwk"
    build(parse(SORTED), TARGET).save(path)
    artifact = Artifact.load(path)
    assert artifact.functions == ("test.sort",)
    assert "calls test.sort" in repr(artifact)
    remove_func("test.sort")
    try:
        with pytest.raises(UnknownFunctionError, match=r"no function is registered as 'test.sort'"):
            LoadedKernel(artifact)
        with pytest.raises(BuildError, match=r"'test.sort'") as raised:
            build(parse(SORTED), TARGET)
        assert raised.value.code == "unknown_function"
    finally:
        register_func("test.sort", _sort)
    with pytest.raises(ArtifactError, match=r"run in Python: it can't be written as .so"):
        artifact.save(tmp_path / "sorted.so")


def test_a_kernel_of_a_server_calls_no_function() -> None:
    content = compile_kernel(parse(SORTED), TARGET).to_bytes()
    with pytest.raises(ArtifactRefusedError, match=r"calls functions of this process \(test.sort"):
        load(content, KernelSource.SERVER)


def test_a_damaged_plan_is_refused() -> None:
    content = compile_kernel(parse(PART), TARGET)
    assert content.plan is not None
    for wrong in (
        {"workspace_bytes": -1, "buffers": [{"shape": [4], "dtype": "float32", "offset": 0}]},
        {"steps": [{"part": 3, "buffers": [0]}]},
        {"steps": [{"form": "system", "function": "x", "args": []}]},
        {
            "steps": [
                {
                    "form": "call_packed",
                    "function": "test.rows",
                    "args": [{"buffer": 0, "starts": [0, 0], "shape": [5, 16], "is_written": True}],
                }
            ]
        },
    ):
        with pytest.raises((ValueError, LookupError)):
            type(content.plan).from_json({**content.plan.to_json(), **wrong}, 2, 1)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"test.sort"', '"system"', "no function is registered as 'system'"),
        (CALL, 'T.evaluate(T.call_extern("int32", "test.sort", X, Y))', "expected T.call_packed"),
        ('"test.sort"', '"test.memcpy"', "expected T.call_extern"),
        ("T.reads(X[0:4, 0:16])", "T.reads(X[0:2, 0:16])", "the block declares a part of X"),
        (CALL, 'T.call_packed("test.sort", X, Y, X[0, 0])', "expected the storage of a buffer"),
        (CALL, f"for k in range(2):\n            {CALL}", "stands in a loop"),
    ],
)
def test_wrong_calls_are_not_built(old: str, new: str, message: str) -> None:
    with pytest.raises(BuildError, match=message):
        build(parse(SORTED.replace(old, new)), TARGET)


def test_other_backends_and_stages_refuse_calls() -> None:
    func = parse(SORTED)
    with pytest.raises(LoweringError, match=r"calls test.sort: only lw.build and compile_kernel"):
        lower(func, TARGET)
    with pytest.raises(BuildError, match="call no registered functions"):
        compile_kernel(func, "cuda -arch=sm_80")
