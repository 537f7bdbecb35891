"""How many windows fit into images, and the windows of arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from compiler.graph.error import ModelError
from compiler.graph.extents import Extent, Shape, add, floor_divide, subtract
from compiler.graph.nodes import Array
from compiler.graph.operators.checks import check_numbers


@dataclass(frozen=True, slots=True)
class Steps:
    """Windows by their attributes, one number for each spatial dimension.

    Attributes:
        kernel: The extents of a window.
        strides: The steps between windows.
        padding: The numbers of elements before each dimension, then those after.
        dilation: The steps between the elements of a window.
        ceil_mode: Whether a last window may reach beyond the padding, if it begins before that.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    ceil_mode: bool = False

    def counts(self, operator: str, space: Shape) -> Shape:
        """Return the number of windows in each dimension of an image.

        Raises:
            ModelError: If a number is out of range, or no window fits.
        """
        rank = len(space)
        check_numbers(operator, "the kernel", self.kernel, rank, 1)
        check_numbers(operator, "strides", self.strides, rank, 1)
        check_numbers(operator, "padding", self.padding, 2 * rank, 0)
        check_numbers(operator, "dilation", self.dilation, rank, 1)
        return tuple(self._count(operator, axis, size) for axis, size in enumerate(space))

    def _count(self, operator: str, axis: int, size: Extent) -> Extent:
        before, after = self.padding[axis], self.padding[axis + len(self.kernel)]
        reach, stride = self.reach[axis], self.strides[axis]
        free = subtract(add(size, before + after), reach)
        if isinstance(free, int) and free < 0:
            raise ModelError(
                f"{operator}: a window of {reach} elements does not fit into {size} with"
                f" {before} and {after} beside them"
            )
        if not self.ceil_mode:
            return add(floor_divide(free, stride), 1)
        if not isinstance(free, int) or not isinstance(size, int):
            raise ModelError(
                f"{operator}: ceil_mode over the symbolic extent {size}", advice="fix the shape"
            )
        count = -(-free // stride) + 1
        return count - 1 if (count - 1) * stride >= size + before else count

    @property
    def reach(self) -> tuple[int, ...]:
        """Return the extents from the first to the last element of a window."""
        return tuple(d * (k - 1) + 1 for d, k in zip(self.dilation, self.kernel, strict=True))


def window_elements(
    image: Array, steps: Steps, counts: Sequence[int], value: float = 0
) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Yield each position in a window, with that element of all windows: `[n, c, *counts]`.

    Args:
        image: `[n, c, *space]`.
        steps: The windows.
        counts: The number of windows in each dimension.
        value: The value of the padding.
    """
    rank = len(steps.kernel)
    margins = [(0, 0), (0, 0)]
    for axis, (size, count) in enumerate(zip(image.shape[2:], counts, strict=True)):
        before = steps.padding[axis]
        reached = (count - 1) * steps.strides[axis] + steps.reach[axis] - size - before
        margins.append((before, max(0, reached, steps.padding[axis + rank])))
    padded = np.pad(image, margins, constant_values=value)
    for position in np.ndindex(*steps.kernel):
        starts = [p * d for p, d in zip(position, steps.dilation, strict=True)]
        places = [
            slice(start, start + (n - 1) * s + 1, s)
            for start, n, s in zip(starts, counts, steps.strides, strict=True)
        ]
        yield position, padded[(slice(None), slice(None), *places)]
