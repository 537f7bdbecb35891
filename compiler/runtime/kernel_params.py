"""From the buffers of a program to the parameters of its kernel."""

from __future__ import annotations

from collections.abc import Container, Iterable

from compiler.executor.params import Param
from compiler.ir.core.nodes import Buffer, static_shape


def params_of(buffers: Iterable[Buffer], written: Container[Buffer]) -> tuple[Param, ...]:
    """Return the parameters of a program's kernel.

    Args:
        buffers: The parameters of the program.
        written: The buffers that the program writes.
    """
    return tuple(Param(b.name, static_shape(b), b.dtype, is_output=b in written) for b in buffers)
