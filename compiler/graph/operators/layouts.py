"""The orders of axes of images and of kernels, in Relax's spelling.

Images whose channels come before space are "NCHW", with kernels "OIHW". If channels come last, they
are "NHWC", with kernels "HWIO", or "HWOI" if each channel is convolved alone. One and three spatial
dimensions are "W" and "DHW".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from compiler.graph.error import ModelError
from compiler.graph.extents import Shape
from compiler.graph.nodes import Array

T = TypeVar("T")

_SPACES = {1: "W", 2: "HW", 3: "DHW"}


@dataclass(frozen=True, slots=True)
class ConvLayouts:
    """The layouts of the images and of the kernels of a convolution."""

    data: str
    kernel: str

    @classmethod
    def first(cls, rank: int) -> ConvLayouts:
        """Return the layouts over `rank` spatial dimensions if channels come before space."""
        return cls(f"NC{_SPACES[rank]}", f"OI{_SPACES[rank]}")

    @classmethod
    def last(cls, rank: int, *, by_channel: bool) -> ConvLayouts:
        """Return the layouts if channels come last.

        Args:
            rank: The number of spatial dimensions.
            by_channel: Whether each channel is convolved alone.
        """
        space = _SPACES[rank]
        return cls(f"N{space}C", f"{space}OI" if by_channel and rank == 2 else f"{space}IO")

    def check(self, operator: str, groups: int, data: Shape, kernel: Shape) -> None:
        """Check that a convolution of operands of these shapes has these layouts.

        Raises:
            ModelError: If there is no such convolution.
        """
        rank = len(data) - 2
        options = [ConvLayouts.first(rank), ConvLayouts.last(rank, by_channel=False)]
        if groups == data[-1] and (*kernel[-2:],) == (groups, 1):
            options[1] = ConvLayouts.last(rank, by_channel=True)
        if self not in options:
            expected = " or ".join(f"{each.data!r} and {each.kernel!r}" for each in options)
            raise ModelError(
                f"{operator}: data_layout {self.data!r} and kernel_layout {self.kernel!r}:"
                f" expected {expected}"
            )


def arranged(array: Array, layout: str, other: str) -> Array:
    """Return an array of a layout with its axes in the order of another one."""
    return np.transpose(array, [layout.index(axis) for axis in other])


def extents(shape: Sequence[T], layout: str, other: str) -> tuple[T, ...]:
    """Return a shape of a layout with its extents in the order of another one."""
    return tuple(shape[layout.index(axis)] for axis in other)
