"""Programs of plain loops get blocks when they are scheduled, and compute the same."""

from __future__ import annotations

import json

import numpy as np
import pytest

import loopwright as lw
from compiler.ir.analysis.structural import structural_equal, structural_hash
from compiler.ir.core.nodes import BlockRealize
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk_stmts
from compiler.ir.interpret.evaluator.evaluate import evaluate
from compiler.ir.interpret.inputs import random_inputs
from compiler.ir.interpret.oracle.oracle import compare
from compiler.schedule.rewrite.derive_blocks import derive_blocks
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.trace import Trace
from compiler.script import parse
from tests.tutorials.loops import LINEAR_RELU_BLOCKS, LINEAR_RELU_LOOPS

PARAMS = ", ".join(
    f'{name}: T.Buffer({shape}, "float32")'
    for name, shape in {"A": (6, 8), "B": (6,), "C": (6, 8)}.items()
)


def program(body: str) -> PrimFunc:
    lines = (f"    {line}" for line in body.strip("\n").splitlines())
    return parse("\n".join(["@T.prim_func", f"def main({PARAMS}):", *lines]))


DERIVED = {
    "a sum": (
        "for i in range(6):\n    B[i] = T.float32(0)\n    for k in range(8):\n"
        "        B[i] = B[i] + A[i, k]",
        {"B": "SR"},
    ),
    "a sum that begins in a loop of its own": (
        "for j in range(6):\n    B[j] = T.float32(1)\n"
        "for i, k in T.grid(6, 8):\n    B[i] = T.max(A[i, k], B[i])",
        {"B": "SR"},
    ),
    "a sum that goes on from what is there": (
        "for i, k in T.grid(6, 8):\n    B[i] = B[i] + A[i, k]",
        {"B": "SR"},
    ),
    "a value that is replaced twice": (
        "for i in range(6):\n    B[i] = A[i, 0]\n    B[i] = B[i] * B[i]\n    B[i] = B[i] + A[i, 1]",
        {"B": "S", "B_before": "S", "B_before_1": "S"},
    ),
    "a scalar in a loop": (
        "s = T.alloc_buffer((1,))\nfor i in range(6):\n    s[0] = T.float32(0)\n"
        "    for k in range(8):\n        s[0] = s[0] + A[i, k]\n    B[i] = s[0] * T.float32(2)",
        {"s": "SR", "B": "S"},
    ),
    "a condition": (
        "for i, k in T.grid(6, 8):\n    C[i, k] = A[i, k]\n"
        "for i, k in T.grid(6, 8):\n    if k < i:\n        C[i, k] = T.float32(7)",
        {"C": "SS", "C_1": "SS"},
    ),
    "a recurrence": (
        "B[0] = A[0, 0]\nfor i in range(5):\n    B[i + 1] = B[i] + A[i, 1]",
        {"B": "", "B_1": "O"},
    ),
    "the last of several values": (
        "for i, k in T.grid(6, 8):\n    B[i] = A[i, k]",
        {"B": "OO"},
    ),
    "a parallel loop": (
        "for i in T.parallel(6):\n    for k in range(8):\n        C[i, k] = A[i, k] + T.float32(1)",
        {"C": "SS"},
    ),
}

LEFT = {
    "extents that depend on loops": (
        "for i in range(6):\n    for k in range(i + 1):\n        C[i, k] = A[i, k]"
    ),
    "loops that may not be distributed": (
        "for i in range(5):\n    B[i] = A[i, 0]\n    B[i + 1] = B[i] + A[i, 1]"
    ),
    "threads": 'for i in T.thread_binding(6, thread="threadIdx.x"):\n    B[i] = A[i, 0]',
    "blocks": (
        'for i in range(6):\n    with T.block("B"):\n'
        "        v = T.axis.spatial(6, i)\n        B[v] = A[v, 0]"
    ),
}


def kinds(func: PrimFunc) -> dict[str, str]:
    blocks = [s.block for s in walk_stmts(func.body) if isinstance(s, BlockRealize)]
    return {
        block.name: "".join(iterator.kind[0].upper() for iterator in block.iter_vars)
        for block in blocks
        if block.name != "root"
    }


@pytest.mark.parametrize("name", DERIVED)
def test_blocks_are_derived_and_compute_the_same(name: str) -> None:
    body, expected = DERIVED[name]
    func = program(body)
    derived = derive_blocks(func)
    assert kinds(derived) == expected
    inputs = random_inputs(func, 0)
    for output in ("B", "C"):
        inputs.setdefault(output, np.zeros(6 if output == "B" else (6, 8), np.float32))
    before, after = evaluate(func, inputs), evaluate(derived, inputs)
    for output in ("B", "C"):
        np.testing.assert_array_equal(after[output], before[output])


@pytest.mark.parametrize("name", LEFT)
def test_what_is_not_understood_stays(name: str) -> None:
    func = program(LEFT[name])
    assert derive_blocks(func) is func


def test_the_loops_of_the_lecture_become_its_blocks() -> None:
    loops, blocks = parse(LINEAR_RELU_LOOPS), parse(LINEAR_RELU_BLOCKS)
    derived = Schedule(loops).func
    names = LINEAR_RELU_BLOCKS.replace('T.block("linear")', 'T.block("out_sum")')
    same = parse(names.replace('T.block("relu")', 'T.block("out")'))
    assert structural_equal(derived.with_attr("tir.noalias", True), same)
    target = "cpu -mcpu=x86-64-v3 -num-cores=2"
    spaces = [lw.design_space(func, target) for func in (loops, blocks)]
    assert spaces[0].num_schedules == spaces[1].num_schedules > 1


def test_a_trace_replays_on_what_was_submitted() -> None:
    func = program(DERIVED["a sum"][0])
    before = structural_hash(func)
    sch = Schedule(func)
    i, _ = sch.get_loops(sch.get_sblock("B"))
    sch.parallel(sch.split(i, [2, 3])[0])
    assert structural_hash(func) == before
    trace = Trace.from_json(json.loads(json.dumps(sch.trace.to_json())))
    again = trace.apply_to(func).func
    assert structural_equal(again, sch.func)
    inputs = random_inputs(func, 0)
    assert compare(func, evaluate(again, inputs), {"B": evaluate(func, inputs)["B"]}) < 1e-6
