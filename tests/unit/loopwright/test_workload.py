"""The forms of a workload: all mean one function, in process and on the wire."""

from __future__ import annotations

import pytest

import loopwright as lw
from compiler.ir.analysis.structural import structural_equal
from loopwright.client.workload_request import to_wire
from loopwright.workload import to_func, weights_of

FUNC = lw.ops.matmul(16, 16, 16)
SEVERAL = """
@I.ir_module
class Module:
    @T.prim_func
    def g(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = A[i] + T.float32(1)
    @T.prim_func
    def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = A[i]
"""


def _scheduled() -> lw.Schedule:
    sch = lw.Schedule(FUNC)
    sch.split(sch.get_loops("C")[0], [None, 4])
    return sch


def test_a_module_of_one_function_means_that_function() -> None:
    module = lw.IRModule((FUNC,))
    assert to_func(module) is FUNC
    assert to_wire(module) == to_wire(FUNC)


def test_a_schedule_means_its_program_as_it_is_now() -> None:
    sch = _scheduled()
    assert to_func(sch) is sch.func
    assert not structural_equal(to_func(sch), FUNC)
    assert to_wire(sch) == to_wire(sch.func)


def test_a_schedule_of_tensor_expressions_means_its_program() -> None:
    A = lw.te.placeholder((8,), name="A")
    B = lw.te.compute((8,), lambda i: A[i] * 2.0, name="B")
    s = lw.te.create_schedule(B.op)
    s[B].split(B.op.axis[0], factor=4)
    assert structural_equal(to_func(s), s.to_schedule([A, B]).func)


def test_a_module_of_several_functions_is_refused_with_their_names() -> None:
    module = lw.parse_module(SEVERAL)
    for use in (to_func, to_wire, lw.tune):
        with pytest.raises(ValueError, match=r'holds g, f: pass one of them, module\["g"\]'):
            use(module)


CALLS = SEVERAL.replace("for i in range(4):\n            B[i] = A[i]\n", "Module.g(A, B)\n")


def test_a_function_and_those_that_it_calls_are_one_workload() -> None:
    module = lw.parse_module(CALLS)
    written_out = lw.parse_module(SEVERAL)["g"]
    for form in (module, CALLS):
        assert lw.structural_hash(to_func(form)) == lw.structural_hash(written_out)
    assert to_wire(module).script == written_out.script().replace("def g", "def f")


def test_a_function_apart_from_those_that_it_calls_is_no_workload() -> None:
    with pytest.raises(ValueError, match="f calls g, but its module has no such"):
        to_func(lw.parse_module(CALLS)["f"])


def test_a_module_of_several_workloads_with_calls_says_how_one_is_taken() -> None:
    text = CALLS + CALLS.partition("class Module:\n")[2].replace("def f", "def e").replace(
        "def g", "def h"
    ).replace("Module.g", "Module.h")
    with pytest.raises(ValueError, match=r'lw.inline_calls\(module\)\["f"\], or lw.extract_tasks'):
        to_func(lw.parse_module(text))


def test_the_weights_of_tasks_are_theirs_unless_others_are_given() -> None:
    tasks = lw.extract_tasks(lw.parse_module(SEVERAL))
    assert weights_of([*tasks, FUNC], None) == [1.0, 1.0, 1.0]
    heavy = lw.ExtractedTask(FUNC, 3.0, ("matmul",))
    assert weights_of([heavy, FUNC], None) == [3.0, 1.0]
    assert weights_of([heavy, FUNC], [1.0, 2.0]) == [1.0, 2.0]
    assert to_func(heavy) is FUNC


def test_a_symbolic_program_is_not_tuned_and_the_error_says_specialize() -> None:
    symbolic = lw.parse(
        '@T.prim_func\ndef main(A: T.Buffer(("n",), "float32")):\n'
        "    n = T.int32()\n    for i in range(n):\n        A[i] = T.float32(1)\n"
    )
    for use in (lw.tune, lw.flops):
        with pytest.raises(ValueError, match=r'func.specialize\(\{"n": 128\}\)'):
            use(symbolic)
