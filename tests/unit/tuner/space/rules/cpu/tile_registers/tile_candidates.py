"""Candidates of sketches with tile registers (AMX), and how tests run them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from compiler.backends.cpu.runtime.tile_permission import FEATURE
from compiler.backends.module import Module
from compiler.ir.core.nodes import Buffer, static_shape
from compiler.ir.core.program import PrimFunc
from compiler.target.cpu import CpuTarget
from compiler.target.host import host_features
from tuner.space.design_space import SketchSpace

CPU = "sapphirerapids"
TARGET = CpuTarget(f"cpu -mcpu={CPU} -num-cores=1")
needs_tiles = pytest.mark.skipif(
    FEATURE not in host_features().split(","), reason="this host has no tile registers (AMX)"
)


def scheduled(func: PrimFunc, space: SketchSpace, seed: int = 0) -> Iterator[PrimFunc]:
    """Yield a candidate of each sketch with tile registers."""
    for index, sketch in enumerate(space.sketches):
        if "matrix_tiles" in sketch.tags:
            (choices,) = space.draw(index, 1, np.random.default_rng(seed))
            yield sketch.candidate(choices).trace.apply_to(func).func


def run(
    module: Module, func: PrimFunc, inputs: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """Run a kernel; return its outputs."""
    arrays = {
        b.name: np.array(inputs[b.name]) if b.name in inputs else _empty(b) for b in func.buffers
    }
    module(*arrays.values())
    return {name: array for name, array in arrays.items() if name not in inputs}


def _empty(buffer: Buffer) -> NDArray[Any]:
    dtype = ml_dtypes.bfloat16 if buffer.dtype == "bfloat16" else buffer.dtype
    return np.zeros(static_shape(buffer), dtype)
