"""Constant parameters: arrays such as weights, which a caller passes once and not in each call.

The attribute `layout_free_buffers`, as TVM spells it, has their positions among the parameters. It
is part of the structural hash: a program with constants is another workload than one without.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from compiler.ir.core.nodes import Buffer
from compiler.ir.core.program import PrimFunc

KEY = "layout_free_buffers"


def constant_params(func: PrimFunc) -> tuple[Buffer, ...]:
    """Return the constant parameters of a verified program, in the order of the parameters."""
    positions = _positions(func)
    return tuple(b for i, b in enumerate(func.params) if i in positions and isinstance(b, Buffer))


def with_constants(func: PrimFunc, names: Iterable[str]) -> PrimFunc:
    """Return a program with constant parameters.

    Raises:
        ValueError: If a name is not one of a buffer among its parameters.
    """
    positions = {buffer.name: func.params.index(buffer) for buffer in func.buffers}
    chosen = []
    for name in names:
        if name not in positions:
            raise ValueError(f"{name!r} is not a parameter: expected {', '.join(positions)}")
        chosen.append(positions[name])
    return func.with_attr(KEY, tuple(sorted(set(chosen))))


def without_constants(func: PrimFunc) -> PrimFunc:
    """Return a program all of whose parameters are passed in each call."""
    return replace(func, attrs=tuple(attr for attr in func.attrs if attr[0] != KEY))


def constant_problem(func: PrimFunc, written: Collection[Buffer]) -> str | None:
    """Return what is wrong with the attribute of a program; None if it is correct.

    Args:
        written: The buffers that the program writes.
    """
    positions = dict(func.attrs).get(KEY, ())
    if not isinstance(positions, tuple) or not all(type(p) is int for p in positions):
        return f"{KEY} is {positions!r}: expected a list of positions of parameters"
    for position in _positions(func):
        param = func.params[position] if 0 <= position < len(func.params) else None
        if not isinstance(param, Buffer):
            return f"{KEY} has {position}: parameters with buffers have {_buffers(func)}"
        if param in written:
            return f"{KEY} has {position}: the program writes {param.name}, so it is no constant"
    return None


def _positions(func: PrimFunc) -> set[int]:
    positions = dict(func.attrs).get(KEY, ())
    return {p for p in positions if isinstance(p, int)} if isinstance(positions, tuple) else set()


def _buffers(func: PrimFunc) -> str:
    return ", ".join(str(i) for i, param in enumerate(func.params) if isinstance(param, Buffer))
