"""Programs whose symbolic extents all have ranges: what a search over sizes accepts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from compiler.ir.analysis.symbols import (
    UPPER,
    declared,
    is_symbolic_integer,
    symbolic_vars,
    with_ranges,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.verify.verify import verify_all_sizes
from compiler.target.cpu import CpuTarget
from compiler.target.target import Target

Ranges: TypeAlias = Mapping[Any, tuple[int, int] | int]
"""The least and the greatest size of extents, by their names or their variables."""


def with_all_ranges(func: PrimFunc, ranges: Ranges) -> PrimFunc:
    """Return a symbolic program with its ranges, proved to be legal at all of their sizes.

    Raises:
        TypeError: If the ranges are no mapping of names to integers.
        ValueError: If the program is not symbolic, or a range is wrong or missing.
        VerifyError: If the program is not legal at all sizes of the ranges.
    """
    if not isinstance(ranges, Mapping):
        raise TypeError(f'ranges is {ranges!r}: expected a mapping, such as {{"M": (1, 512)}}')
    names = [var.name for var in symbolic_vars(func) if is_symbolic_integer(var)]
    if not names:
        raise ValueError(f"{func.name} has no symbolic extent, which ranges are of")
    if numbers := [var.name for var in symbolic_vars(func) if var.name not in names]:
        raise ValueError(
            f"{func.name} takes the number {numbers[0]}: make a program of one value of it by "
            f'specialize({{"{numbers[0]}": ...}})'
        )
    if unknown := [name for name in ranges if isinstance(name, str) and name not in names]:
        raise ValueError(
            f"{func.name} has no symbolic extent {unknown[0]}: it has {', '.join(names)}"
        )
    symbolic = with_ranges(func, ranges)
    if missing := [name for name in names if name not in declared(symbolic, UPPER)]:
        raise ValueError(
            f'{func.name}: {missing[0]} has no range, such as "{missing[0]}": (1, 512)'
        )
    verify_all_sizes(symbolic)
    return symbolic


def require_cpu(target: Target) -> None:
    """Refuse a target whose kernels run at one size only.

    Raises:
        ValueError: If the target is no CPU.
    """
    if not isinstance(target, CpuTarget):
        raise ValueError(f"ranges are tuned for CPUs only, not for {target.name}")
