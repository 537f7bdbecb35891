"""Memory of a function: arrays on the stack, and a workspace that is used again."""

from __future__ import annotations

from compiler.backends.cpu.codegen.text.builder import CodeBuilder
from compiler.backends.cpu.codegen.text.frame import Frame


def test_arrays_on_the_stack_have_their_own_names() -> None:
    frame = Frame(CodeBuilder())
    first, second = (frame.allocate_on_stack(8, "float", 64, "tile") for _ in range(2))
    assert first != second
    assert frame.allocas == [
        f"  {first} = alloca [8 x float], align 64",
        f"  {second} = alloca [8 x float], align 64",
    ]


def test_memory_that_was_given_back_is_used_again() -> None:
    frame = Frame(CodeBuilder())
    frame.allocate_in_workspace(256)
    frame.allocate_in_workspace(128)
    frame.release(128)
    frame.allocate_in_workspace(64)
    frame.release(64)
    frame.release(256)
    assert (frame.used_bytes, frame.peak_bytes) == (0, 384)
