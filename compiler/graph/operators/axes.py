"""Axes of tensors: negative ones count from the end."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.graph.error import ModelError


def check_axis(name: str, axis: int, rank: int) -> int:
    """Return an axis as a number from 0.

    Raises:
        ModelError: If a tensor of that rank has no such axis.
    """
    if not -rank <= axis < rank:
        raise ModelError(f"{name}: axis is {axis}: expected {-rank} to {rank - 1}")
    return axis % rank


def check_axes(name: str, axes: int | Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """Return axes as numbers from 0, in ascending order; None stands for all axes.

    Raises:
        ModelError: If an axis does not exist, or is given twice.
    """
    if axes is None:
        return tuple(range(rank))
    given = [axes] if isinstance(axes, int) else axes
    result = sorted(check_axis(name, axis, rank) for axis in given)
    if len(set(result)) < len(result):
        raise ModelError(f"{name}: axes are {tuple(given)}: expected each axis once")
    return tuple(result)
