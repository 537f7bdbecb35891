"""Nothing that was not verified becomes native code, however it comes to be built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from compiler.backends.error import BuildError
from compiler.driver import build, compile_kernel
from compiler.executor.error import ArgumentError
from compiler.ir.core.nodes import BinOp, BlockRealize, For, IntImm, Load, Stmt, Store, Var
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import map_stmt
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.ir.interpret.oracle.oracle import interpret
from compiler.ir.verify.verify import VerifyError
from compiler.schedule.error import ScheduleError
from compiler.schedule.schedule import Schedule
from compiler.script import parse

TARGET = "cpu -mcpu=x86-64-v2 -num-cores=1"
COPY = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        B[i] = A[i] + T.float32(1)
"""
SYMBOLIC = """
@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 4), "float32")
    B = T.match_buffer(b, (n, 4), "float32")
    for j, k in T.grid(n, 4):
        with T.sblock("B"):
            vj, vk = T.axis.remap("SS", [j, k])
            B[vj + 7, vk] = A[vj, vk]
"""
VIEW = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.sblock("B"):
            vi = T.axis.spatial(16, i)
            T.reads(A[vi])
            T.writes(B[vi])
            V = T.match_buffer(B[vi], ())
            V[()] = A[vi] * T.float32(2)
"""
THREADS = """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    S = T.sblock_alloc_buffer((64,), scope="shared")
    for tx in T.thread_binding(64, thread="threadIdx.x"):
        S[tx] = A[tx]
        T.tvm_storage_sync("shared")
        B[tx] = S[63 - tx]
"""


def stores_changed(func: PrimFunc, **fields: Any) -> PrimFunc:
    """Return a program with its stores replaced, as no parser has seen it."""

    def visit(stmt: Stmt) -> Stmt:
        new = map_stmt(stmt, visit, lambda expr: expr)
        return replace(new, **fields) if isinstance(new, Store) else new

    body = visit(func.body)
    assert isinstance(body, BlockRealize)
    return replace(func, body=body)


def out_of_bounds() -> PrimFunc:
    func = parse(COPY)
    assert isinstance(func.root.body, For)
    return stores_changed(func, indices=(BinOp("+", func.root.body.var, IntImm(4096)),))


def test_bounds_are_proved_when_extents_get_their_values() -> None:
    with pytest.raises(VerifyError, match=r"can't prove that B\[vj \+ 7, vk\] is in bounds"):
        parse(SYMBOLIC).specialize({"n": 4})


@pytest.mark.parametrize("how", ["a program", "a schedule", "constants", "an artifact"])
def test_a_program_that_leaves_its_arrays_is_not_built(how: str) -> None:
    func = out_of_bounds()
    ways: dict[str, Callable[[], object]] = {
        "a program": lambda: build(func, TARGET),
        "a schedule": lambda: build(Schedule(func), TARGET),
        "constants": lambda: build(func, TARGET, {"A": np.zeros(16, np.float32)}),
        "an artifact": lambda: compile_kernel(func, TARGET),
    }
    with pytest.raises((BuildError, ScheduleError), match=r"to be legal|is not a legal") as refused:
        ways[how]()
    assert "can't prove that B" in str(refused.value)


def test_a_variable_without_a_definition_is_a_build_error() -> None:
    with pytest.raises(BuildError, match="main is not a legal program: variable z"):
        build(stores_changed(parse(COPY), indices=(Var("z"),)), TARGET)


def test_a_race_is_not_built() -> None:
    racing = stores_changed(parse(COPY), indices=(IntImm(0),))
    assert isinstance(racing.root.body, For)
    loop = replace(racing.root.body, kind="parallel")
    body = replace(racing.body, block=replace(racing.root, body=loop))
    with pytest.raises(BuildError, match="iterations of a parallel loop race"):
        build(replace(racing, body=body), TARGET)


def test_what_is_written_through_a_view_is_an_output() -> None:
    kernel = build(parse(VIEW), TARGET)
    assert [param.is_output for param in kernel.params] == [False, True]
    array = np.ones(16, np.float32)
    frozen = np.zeros(16, np.float32)
    frozen.flags.writeable = False
    with pytest.raises(ArgumentError, match="B is written, and the array is read-only"):
        kernel(array, frozen)
    with pytest.raises(ArgumentError, match="overlaps parameter A"):
        kernel(array, array)
    with pytest.raises(BuildError, match="B: the program writes it"):
        build(parse(VIEW), TARGET, {"B": array})


def test_stores_into_views_of_one_element_are_evaluated() -> None:
    array = np.arange(16, dtype=np.float32)
    np.testing.assert_array_equal(evaluate(parse(VIEW), {"A": array})["B"], array * 2)


def test_the_oracle_runs_threads_that_share_memory_in_lockstep() -> None:
    array = np.arange(64, dtype=np.float32)
    np.testing.assert_array_equal(interpret(parse(THREADS), {"A": array})["B"], array[::-1])


def backing(size: int = 64) -> np.ndarray[Any, Any]:
    return np.zeros(size, np.float32)


HOSTILE: dict[str, tuple[Callable[[], Any], str]] = {
    "too few elements": (lambda: backing()[:8], "float32[8]"),
    "more dimensions": (lambda: backing(16).reshape(4, 4), "float32[4, 4]"),
    "every second element": (lambda: backing()[:32:2], "is not contiguous"),
    "backwards": (lambda: backing()[:16][::-1], "is not contiguous"),
    "one element many times": (lambda: np.broadcast_to(np.float32(1), (16,)), "is not contiguous"),
    "the other byte order": (lambda: backing()[:16].astype(">f4"), "is >f4[16]"),
    "another type": (lambda: np.zeros(16), "is float64[16]"),
    "nothing": (lambda: backing(0), "float32[0]"),
    "between elements": (
        lambda: np.zeros(65, np.uint8)[1:].view(np.float32),
        "begins between elements",
    ),
    "a mask": (lambda: np.ma.masked_array(backing(16)), "is a MaskedArray"),
    "a list": (lambda: [0.0] * 16, "is a list"),
    "an address": (lambda: backing(16).ctypes.data, "is an int"),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("place", [0, 1])
def test_arrays_that_are_no_dense_array_of_the_parameter_are_refused(name: str, place: int) -> None:
    make, message = HOSTILE[name]
    arrays: list[Any] = [np.ones(16, np.float32), np.ones(16, np.float32)]
    arrays[place] = make()
    kernel = build(parse(COPY), TARGET)
    for call in (kernel, kernel.bind):
        with pytest.raises(ArgumentError) as caught:
            call(*arrays)
        assert message in str(caught.value)


def test_constants_are_held_to_the_same() -> None:
    for name, (make, message) in HOSTILE.items():
        with pytest.raises(ArgumentError) as caught:
            build(parse(COPY), TARGET, {"A": make()})
        assert message in str(caught.value), name


def test_overlapping_outputs_are_refused() -> None:
    array = backing(20)
    kernel = lw.build(parse(COPY), TARGET)
    with pytest.raises(ArgumentError, match="B is written, and overlaps parameter A"):
        kernel(array[:16], array[4:])


def test_reads_out_of_bounds_are_not_built() -> None:
    func = parse(COPY)
    with pytest.raises(BuildError, match=r"can't prove that A\[99\] is in bounds"):
        build(stores_changed(func, value=Load(func.buffers[0], (IntImm(99),))), TARGET)
