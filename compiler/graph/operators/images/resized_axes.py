"""The axes of images that get another size, as their attributes describe them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

METHODS = ("nearest_neighbor", "linear", "cubic")
MODES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)
"""How a position in the image follows from the index of an element of the result."""
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
"""How the nearest element follows from a position."""


@dataclass(frozen=True)
class ResizedAxis:
    """How one axis is resized; `image.resize2d` explains the attributes.

    Attributes:
        scale: The factor. Models hold it as a float32: 0.6 is a little more there, and the quotient
            3 / 0.6 a little less than 5. The nearest element is that of the quotient in float32,
            which is 5, as in ONNX Runtime and PyTorch.
    """

    extent: int
    size: int
    scale: float
    begin: float
    end: float
    method: str
    mode: str
    rounding: str
    cubic_alpha: float
    cubic_exclude: bool
    antialias: bool

    @property
    def stretch(self) -> float:
        """Return the scale of the kernel: less than 1 if it reaches over more elements."""
        return min(self.scale, 1.0) if self.antialias else 1.0

    @property
    def first(self) -> int:
        """Return the first element with a weight, counted from the last one before a position."""
        support = 1 if self.method == "linear" else 2
        return math.floor(-support / self.stretch) + 1

    @property
    def taps(self) -> int:
        """Return the number of elements with a weight."""
        return 2 - 2 * self.first

    @property
    def is_unchanged(self) -> bool:
        """Return whether each element remains where it is, which holds in all modes."""
        is_whole = self.begin == 0 and self.end == 1
        return self.size == self.extent and self.scale == 1 and is_whole

    @property
    def is_repeated(self) -> bool:
        """Return whether each element becomes equally many neighbors of equal value."""
        centered = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel")
        is_exact = self.size == self.extent * self.scale and self.scale == int(self.scale)
        begins = self.mode == "asymmetric" and self.rounding == "floor"
        is_rounded = self.rounding in ROUNDINGS[:2]
        is_known = begins or (self.mode in centered and is_rounded)
        return self.is_unchanged or (self.size > 1 and is_exact and is_known)

    @property
    def length(self) -> float:
        """Return the size before it is rounded to an integer."""
        return self.scale * self.extent


def resized_axes(space: tuple[int, ...], attrs: Mapping[str, Any]) -> list[ResizedAxis]:
    """Return how each axis of a space is resized, by the attributes of the operator."""
    rank = len(space)
    size = attrs["size"]
    scales = attrs["scales"] or [n / extent for n, extent in zip(size, space, strict=True)]
    roi = attrs["roi"] or (*(0.0,) * rank, *(1.0,) * rank)
    shared = (
        attrs["method"],
        attrs["coordinate_transformation_mode"],
        attrs["rounding_method"],
        attrs["cubic_alpha"],
        attrs["cubic_exclude"],
        attrs["antialias"],
    )
    return [
        ResizedAxis(space[d], size[d], scales[d], roi[d], roi[d + rank], *shared)
        for d in range(rank)
    ]
