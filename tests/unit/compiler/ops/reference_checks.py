"""Compare a reference with another way to compute the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler import ops

Array = NDArray[Any]


def given(*shapes: tuple[int, ...]) -> list[Array]:
    rng = np.random.default_rng(0)
    return [rng.uniform(0.25, 1, shape) * rng.choice((-1, 1), shape) for shape in shapes]


def check(spec: str, shapes: Sequence[tuple[int, ...]], other: Callable[..., Any]) -> None:
    arrays = [a.astype(np.float64) for a in given(*shapes)]
    got = ops.reference(f"{spec}:float64")(*arrays)
    np.testing.assert_allclose(got, other(*arrays), rtol=1e-9, atol=1e-12)
