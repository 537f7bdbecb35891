"""Run the oracle on some slices at a time, if all of them would take too much memory.

The weights of attention are an example: 8 heads of 4,096 queries and keys take a gigabyte in each
of several intermediate results, but each head is computed alone. Another one is the last product of
a language model, whose weights take four gigabytes: each of its 128,256 columns is computed alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.ir.core.nodes import BlockRealize, Buffer, static_shape
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk_stmts
from compiler.ir.interpret.inputs import param_roles
from compiler.ir.interpret.oracle.oracle import interpret
from compiler.ir.interpret.spot_check.parallel_axis import (
    ParallelAxis,
    parallel_axis,
    slices_of_inputs,
    with_extent,
)
from compiler.ir.interpret.tolerance import conversion_nudges

Array = NDArray[Any]

_MAX_BYTES = 512 << 20
"""The limit on inputs and results, intermediate ones included: a worker allows a candidate 4 GiB,
of which inputs in their own types and temporary arrays take some. Chosen.
"""
_ITEM_BYTES = 8
"""The oracle computes in float64 and int64."""


def interpret_sliced(
    func: PrimFunc, inputs: Mapping[str, Array], nudge: float = 0.0
) -> dict[str, Array]:
    """Run a program as `interpret` does, on some slices of an axis at a time if it is large.

    Args:
        func: A program without symbolic variables.
        inputs: The parameters that the program reads, by name.
        nudge: The share by which inputs and stored values are moved; converted values that are
            loaded again are moved by a part of the rounding of their type, too.

    Returns:
        The parameters that the program writes, by name.

    Raises:
        OracleError: If the oracle can't run the program.
    """
    axis = _axis(func)
    if axis is None:
        return _interpret(func, inputs, nudge)
    num_slices = max(1, axis.extent * _MAX_BYTES // _total_bytes(axis.dims))
    dims = {buffer.name: dim for buffer, dim in axis.dims.items()}
    outputs: dict[str, Array] = {}
    for start in range(0, axis.extent, num_slices):
        slices = np.arange(start, min(start + num_slices, axis.extent))
        fewer = with_extent(func, axis, len(slices))
        part = _interpret(fewer, slices_of_inputs(func, inputs, axis, slices), nudge)
        for name, array in part.items():
            shape = [axis.extent if d == dims[name] else n for d, n in enumerate(array.shape)]
            output = outputs.setdefault(name, np.empty(shape, array.dtype))
            output.swapaxes(0, dims[name])[slices] = array.swapaxes(0, dims[name])
    return outputs


def _interpret(func: PrimFunc, inputs: Mapping[str, Array], nudge: float) -> dict[str, Array]:
    nudges = conversion_nudges(func) if nudge else {}
    return interpret(func, inputs, nudge=nudge, nudges=nudges)


def _axis(func: PrimFunc) -> ParallelAxis | None:
    """Return the axis of most memory, which all large results have; None if all fits."""
    results = _results(func)
    if _total_bytes({*results, *func.buffers}) <= _MAX_BYTES:
        return None
    outputs = [buffer for buffer in results if buffer in func.buffers]
    large = [buffer for buffer in results if _total_bytes([buffer]) > _MAX_BYTES // 8]
    axes = [
        axis
        for dim, extent in enumerate(static_shape(outputs[0]))
        if extent > 1 and (axis := parallel_axis(func, outputs[0], dim)) is not None
        if axis.dims.keys() >= {*outputs, *large}
    ]
    return max(axes, key=lambda axis: _total_bytes(axis.dims), default=None)


def _results(func: PrimFunc) -> list[Buffer]:
    """Return the outputs and the intermediate results."""
    names = param_roles(func).outputs
    blocks = (stmt.block for stmt in walk_stmts(func.body) if isinstance(stmt, BlockRealize))
    intermediates = (buffer for block in blocks for buffer in block.alloc_buffers)
    return [*(buffer for buffer in func.buffers if buffer.name in names), *intermediates]


def _total_bytes(buffers: Iterable[Buffer]) -> int:
    return _ITEM_BYTES * sum(prod(static_shape(buffer)) for buffer in buffers)
