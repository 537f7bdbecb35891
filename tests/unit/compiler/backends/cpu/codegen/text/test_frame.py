"""Memory of a function: arrays on the stack, and a workspace that is used again."""

from __future__ import annotations

from compiler.backends.cpu.codegen.text.builder import CodeBuilder
from compiler.backends.cpu.codegen.text.frame import Frame, whole_lines
from compiler.backends.cpu.codegen.text.instructions import RegisterValue
from compiler.ir.core.nodes import BinOp, Expr, IntImm, Var
from compiler.runtime.kernel_params import extent_of


def _frame() -> Frame:
    def value(expr: Expr) -> RegisterValue:
        return RegisterValue(str(extent_of(expr)), 0)

    return Frame(CodeBuilder(), value)


def test_arrays_on_the_stack_have_their_own_names() -> None:
    frame = _frame()
    first, second = (frame.allocate_on_stack(8, "float", 64, "tile") for _ in range(2))
    assert first != second
    assert frame.allocas == [
        f"  {first} = alloca [8 x float], align 64",
        f"  {second} = alloca [8 x float], align 64",
    ]


def test_memory_that_was_given_back_is_used_again() -> None:
    frame = _frame()
    with frame.workspace(IntImm(256)):
        with frame.workspace(IntImm(128)):
            pass
        with frame.workspace(IntImm(64)):
            pass
    assert (frame.used_bytes, frame.peak_bytes) == (IntImm(0), IntImm(384))


def test_the_workspace_depends_on_the_symbols_that_sizes_depend_on() -> None:
    n = Var("n", limits=(1, 512))
    size = whole_lines(BinOp("*", n, IntImm(4)))
    assert extent_of(size) == "(n + 15) // 16 * 64"
    frame = _frame()
    with frame.workspace(size), frame.workspace(IntImm(64)) as second:
        assert second.level == 0
    with frame.workspace(IntImm(256)):
        pass
    assert extent_of(frame.peak_bytes) == "max((n + 15) // 16 * 64 + 64, 256)"
