"""The forms of a workload: all mean one function, in process and on the wire."""

from __future__ import annotations

import pytest

import loopwright as lw
from compiler.ir.analysis.structural import structural_equal
from loopwright.workload import to_func, to_wire

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


def test_a_module_of_several_functions_is_refused_with_their_names() -> None:
    module = lw.parse_module(SEVERAL)
    for use in (to_func, to_wire, lw.tune):
        with pytest.raises(ValueError, match=r'holds g, f: pass one of them, module\["g"\]'):
            use(module)
    with pytest.raises(lw.BuildError, match=r'holds g, f: pass one of them, module\["g"\]'):
        lw.build(module)


@pytest.mark.parametrize("call", ["Module.g(A, B)", "cls.g(A.data, B.data)", "g(A, B)"])
def test_a_call_of_another_function_is_refused_with_what_to_do(call: str) -> None:
    with pytest.raises(lw.ScriptError, match="g is another function, and a program can"):
        lw.parse_module(SEVERAL.replace("            B[i] = A[i]\n", f"            {call}\n"))


def test_a_symbolic_program_is_not_tuned_and_the_error_says_specialize() -> None:
    symbolic = lw.parse(
        '@T.prim_func\ndef main(A: T.Buffer(("n",), "float32")):\n'
        "    n = T.int32()\n    for i in range(n):\n        A[i] = T.float32(1)\n"
    )
    for use in (lw.tune, lw.flops):
        with pytest.raises(ValueError, match=r'func.specialize\(\{"n": 128\}\)'):
            use(symbolic)
