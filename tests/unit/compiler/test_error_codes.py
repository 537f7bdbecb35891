"""Errors carry stable codes: each is listed, documented and raised by an example."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from compiler import error_codes, ops
from compiler.backends.error import BuildError
from compiler.driver import build, compile_kernel, emit
from compiler.ir.core.nodes import BlockRealize, For, IntImm, Store, seq
from compiler.ir.core.program import IRModule, PrimFunc
from compiler.ir.core.visit import transform, walk_stmts
from compiler.schedule.error import ScheduleError
from compiler.schedule.schedule import Schedule
from compiler.script.error import ScriptError
from compiler.script.parser import parse
from tests.targets import level
from tests.unit.compiler.backends.cpu.codegen.programs import mark
from tests.unit.compiler.schedule.schedule_asserts import (
    HALF,
    TWO_WRITERS,
    elementwise,
    matmul_relu,
    scheduled,
)

PAGE = (Path(__file__).parents[3] / "docs" / "errors.md").read_text(encoding="utf-8")

# A code is never removed and never renamed: programs compare it.
SCHEDULE = [
    "block_kind",
    "dependence",
    "fixed_buffer",
    "illegal_result",
    "intrinsic_mismatch",
    "invalid_argument",
    "invalid_handle",
    "loop_kind",
    "not_found",
    "not_proved",
    "structure",
    "threads",
]
VERIFY = [
    "arithmetic",
    "bounds",
    "call",
    "duplicate",
    "limit",
    "race",
    "rank",
    "region",
    "structure",
    "symbolic",
    "type",
    "undefined",
    "view",
]
SCRIPT = ["syntax", "unsupported"]
WITHOUT_A_SIZE = """
@T.prim_func
def main(A: T.Buffer(("n + 1",), "float32")):
    for i in range(n):
        A[i] = T.float32(0)
"""
CALLING = """
@T.prim_func
def main(A: T.Buffer((4,), "float32")):
    with T.block("call"):
        T.reads()
        T.writes(A[0:4])
        T.call_packed("absent", A)
"""
BUILD = [
    *("codegen", "constants", "illegal_program", "lowering", "several_functions", "symbolic"),
    "unknown_function",
]


def test_the_codes_are_these() -> None:
    assert list(error_codes.SCHEDULE_ERROR_CODES) == SCHEDULE
    assert list(error_codes.VERIFY_ERROR_CODES) == VERIFY
    assert list(error_codes.SCRIPT_ERROR_CODES) == VERIFY + SCRIPT
    assert list(error_codes.BUILD_ERROR_CODES) == BUILD


def test_the_types_have_the_same_codes() -> None:
    assert list(get_args(error_codes.ScheduleErrorCode)) == SCHEDULE
    assert list(get_args(error_codes.VerifyErrorCode)) == VERIFY
    own, more = get_args(error_codes.ScriptErrorCode)
    assert [*get_args(own), *get_args(more)] == VERIFY + SCRIPT
    assert list(get_args(error_codes.BuildErrorCode)) == BUILD


def test_the_page_lists_every_code_with_its_meaning() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", PAGE, re.MULTILINE)
    script = {code: error_codes.SCRIPT_ERROR_CODES[code] for code in SCRIPT}
    assert rows == [
        *error_codes.SCHEDULE_ERROR_CODES.items(),
        *error_codes.VERIFY_ERROR_CODES.items(),
        *script.items(),
        *error_codes.BUILD_ERROR_CODES.items(),
    ]


KERNEL = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for i in range(8):
            with T.sblock("B"):
                vi = T.axis.spatial(8, i)
                C[vi] = A[vi]
        for j in range(4):
            with T.sblock("C"):
                vj = T.axis.spatial(4, j)
                C[vj + 8] = A[vj + 8]
"""


def _dead_handle() -> object:
    schedule = Schedule(elementwise())
    block = schedule.get_block("B")
    schedule.compute_inline(block)
    return schedule.get_loops(block)


def _annotated_loop() -> object:
    schedule = Schedule(elementwise())
    loop = schedule.get_loop("i", "B")
    schedule.annotate(loop, "note", 1)
    return schedule.split(loop, [4, None])


def _two_extents_of_a_thread() -> None:
    schedule = scheduled(KERNEL)
    schedule.bind(schedule.get_loop("i"), "threadIdx.x")
    schedule.bind(schedule.get_loop("j"), "threadIdx.x")


def _loop_of(schedule: Schedule, name: str, block: str) -> tuple[Schedule, Any]:
    return schedule, schedule.get_loop(name, block)


def _reduction_loop() -> object:
    schedule, loop = _loop_of(Schedule(matmul_relu()), "k", "Y")
    return schedule.parallel(loop)


def _factor_of_zero() -> object:
    schedule, loop = _loop_of(Schedule(elementwise()), "i", "B")
    return schedule.split(loop, [0, None])


def _loops_of_one_variable() -> object:
    func = elementwise()
    root = replace(func.root, body=seq(func.root.body, func.root.body))
    return Schedule(replace(func, body=replace(func.body, block=root)))


def _loops_of_two_blocks() -> object:
    schedule = Schedule(elementwise())
    return schedule.fuse(schedule.get_loop("i", "B"), schedule.get_loop("i", "C"))


REFUSED: dict[str, Callable[[], object]] = {
    "block_kind": _reduction_loop,
    "dependence": lambda: scheduled(TWO_WRITERS).compute_inline("B"),
    "fixed_buffer": lambda: Schedule(elementwise()).set_scope("C", 0, "shared"),
    "illegal_result": _loops_of_one_variable,
    "intrinsic_mismatch": lambda: Schedule(elementwise()).tensorize("B", "dot_8_f32"),
    "invalid_argument": _factor_of_zero,
    "invalid_handle": _dead_handle,
    "loop_kind": _annotated_loop,
    "not_found": lambda: Schedule(elementwise()).get_block("X"),
    "not_proved": lambda: scheduled(HALF).reverse_compute_inline("C"),
    "structure": _loops_of_two_blocks,
    "threads": _two_extents_of_a_thread,
}


@pytest.mark.parametrize("code", SCHEDULE)
def test_a_refused_primitive_has_the_code(code: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        REFUSED[code]()
    assert caught.value.code == code, str(caught.value)


def test_a_schedule_error_keeps_its_code_in_another_process() -> None:
    error = ScheduleError("split", "reason", elementwise(), None, "loop_kind")
    assert pickle.loads(pickle.dumps(error)).code == "loop_kind"


HEAD = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
"""
AXIS = """    for i in range(16):
        with T.sblock("b"):
            vi = T.axis.spatial(16, i)
            """
BLOCK = "    with T.sblock('b'):\n        "

WRONG: dict[str, str] = {
    "arithmetic": "    for i in range(16):\n        B[i // 0] = A[i]",
    "bounds": "    for i in range(16):\n        B[i] = A[i + 1]",
    "call": "    main(A, B)",
    "duplicate": '    T.func_attr({"a": 1, "a": 2})\n    B[0] = A[0]',
    "limit": "    B[0] = A[0] + 1e400",
    "race": "    for i in T.parallel(16):\n        B[0] = A[i]",
    "rank": "    B[0, 0] = A[0]",
    "region": AXIS + "T.reads(A[1])\n            T.writes(B[vi])\n            B[vi] = A[vi]",
    "structure": "    C = T.alloc_buffer((16,))\n    B[0] = C[0]",
    "symbolic": "    n = T.int32()\n    C = T.alloc_buffer((n,))\n    C[0] = A[0]\n    B[0] = C[0]",
    "type": "    B[0] = T.float64(1)",
    "undefined": "    B[0] = X[0]",
    "view": BLOCK + "C = T.match_buffer(B[0:4], (5,))\n        C[0] = A[0]",
    "syntax": "    B[0] = lambda: 0",
    "unsupported": "    B[0] = A[0] ** 2.0",
}


@pytest.mark.parametrize("code", VERIFY + SCRIPT)
def test_a_wrong_script_has_the_code(code: str) -> None:
    with pytest.raises(ScriptError) as caught:
        parse(HEAD + WRONG[code])
    assert caught.value.code == code, str(caught.value)


def _lacks_its_order() -> PrimFunc:
    func = elementwise()
    note = ("software_pipeline_stage", (0,))
    loop = next(stmt for stmt in walk_stmts(func.body) if isinstance(stmt, For))
    body = transform(
        func.body, on_stmt=lambda s: replace(s, annotations=(note,)) if s is loop else None
    )
    assert isinstance(body, BlockRealize)
    return replace(func, body=body)


def _out_of_bounds() -> PrimFunc:
    func = parse(HEAD + "    for i in range(16):\n        B[i] = A[i]")
    body = transform(
        func.body,
        on_stmt=lambda s: replace(s, indices=(IntImm(99),)) if isinstance(s, Store) else None,
    )
    assert isinstance(body, BlockRealize)
    return replace(func, body=body)


NOT_BUILT: dict[str, Callable[[], object]] = {
    "codegen": lambda: emit(
        mark(ops.matmul(32, 32, 32), i="unrolled", j="unrolled", k="unrolled"), level(3)
    ),
    "constants": lambda: build(elementwise(), level(3), const_params={"X": np.zeros(3)}),
    "illegal_program": lambda: build(_out_of_bounds(), level(3)),
    "lowering": lambda: build(_lacks_its_order(), level(3)),
    "symbolic": lambda: compile_kernel(parse(WITHOUT_A_SIZE), level(3)),
    "unknown_function": lambda: compile_kernel(parse(CALLING), level(3)),
    "several_functions": lambda: compile_kernel(
        IRModule((replace(elementwise(), name="f"), replace(elementwise(), name="g"))), level(3)
    ),
}


@pytest.mark.parametrize("code", BUILD)
def test_a_program_that_is_not_built_has_the_code(code: str) -> None:
    with pytest.raises(BuildError) as caught:
        NOT_BUILT[code]()
    assert caught.value.code == code, str(caught.value)
