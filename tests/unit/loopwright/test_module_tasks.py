"""The tasks of a module: each program once, with how often it runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import loopwright as lw
from compiler.ir.core.program import IRModule

MODEL = """
@I.ir_module
class Module:
    @T.prim_func
    def scale(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32")):
        for i in range(n):
            with T.sblock("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi] * T.float32(2)

    @T.prim_func
    def add(A: T.Buffer(8), B: T.Buffer(8), C: T.Buffer(8)):
        for i in range(8):
            with T.sblock("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = A[vi] + B[vi]

    @T.prim_func
    def layer(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        Y = T.alloc_buffer((8,))
        Module.scale(A, Y)
        Module.add(A, Y, B)

    @T.prim_func
    def main(A: T.Buffer(8), B: T.Buffer(8), W: T.Buffer(4)):
        Y = T.alloc_buffer((8,))
        Z = T.alloc_buffer((4,))
        Module.layer(A, Y)
        Module.layer(Y, B)
        Module.scale(W, Z)
"""


def test_a_function_that_only_calls_stands_for_what_it_runs() -> None:
    scale8, add, scale4 = lw.extract_tasks(lw.parse_module(MODEL))
    assert [task.weight for task in (scale8, add, scale4)] == [2.0, 2.0, 1.0]
    assert [task.names for task in (scale8, add, scale4)] == [("scale",), ("add",), ("scale",)]
    assert lw.structural_hash(scale8.func) != lw.structural_hash(scale4.func)
    assert [p.shape[0].value for p in scale4.func.buffers] == [4, 4]  # type: ignore[union-attr]


def test_equal_programs_are_one_task_whatever_they_are_called() -> None:
    one = lw.ops.relu(8)
    same = replace(lw.ops.relu(8), name="again")
    tasks = lw.extract_tasks(IRModule((one, lw.ops.matmul(4, 4, 4), same)))
    assert [(task.weight, task.names) for task in tasks] == [
        (2.0, ("relu", "again")),
        (1.0, ("matmul",)),
    ]
    assert tasks[0].func is one


def test_a_function_that_computes_too_is_one_task_with_what_it_calls() -> None:
    text = MODEL + "        for i in range(8):\n            B[i] = B[i] + T.float32(1)\n"
    (task,) = lw.extract_tasks(lw.parse_module(text))
    assert lw.structural_hash(task.func) == lw.structural_hash(lw.parse(text))


@pytest.mark.parametrize(
    "body",
    [
        "for r in range(2):\n            Module.layer(A, B)",
        "for r in range(2):\n            Module.layer(A, B)\n            Module.scale(W, W2)\n"
        "        W2[0] = W[0]",
    ],
)
def test_a_function_that_calls_in_a_loop_is_one_task(body: str) -> None:
    head = MODEL[: MODEL.index("        Y = T.alloc_buffer((8,))\n        Z =")]
    text = f"{head}        W2 = T.alloc_buffer((4,))\n        {body}\n"
    (task,) = lw.extract_tasks(lw.parse_module(text))
    assert task.names == ("main",)


def test_a_module_without_functions_has_no_task() -> None:
    assert lw.extract_tasks(IRModule(())) == []
    with pytest.raises(TypeError, match="expected an IRModule, not a PrimFunc"):
        lw.extract_tasks(lw.ops.relu(8))  # type: ignore[arg-type]


def test_the_tasks_of_a_module_are_tuned_together() -> None:
    tasks = lw.extract_tasks(lw.parse_module(MODEL))[:2]
    results = lw.tune(tasks, max_trials=32, strategy="random", warm_start=None, progress=False)
    assert [result.func.name for result in results] == ["scale", "add"]
    a, out = np.arange(8, dtype="float32"), np.empty(8, "float32")
    lw.build(results[0].best.trace.apply_to(tasks[0].func))(a, out)
    np.testing.assert_array_equal(out, a * 2)
