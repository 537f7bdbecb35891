"""Expected results of a program that would take the oracle too long: some rows, and signed sums.

Some rows of the output are computed exactly. A program that is linear along another axis, such as
the columns of a product, is also run on sums of slices with random signs, which the sums of the
output's slices must equal (Freivalds, Probabilistic machines can use less running time, 1977). So
each element is in a sum.

Rounding errors have the signs of the sums at random. By Hoeffding's inequality, their sum over n
slices exceeds `t * sqrt(n)` times the largest of them with a probability below `2 exp(-t*t / 2)`.
`docs/numerics.md` says what such a check finds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.ir.core.dtypes import DType, is_float, smallest_and_largest
from compiler.ir.core.nodes import Buffer, static_shape
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.inputs import param_roles
from compiler.ir.interpret.oracle.oracle import interpret
from compiler.ir.interpret.spot_check.linearity import is_linear, without_rounding
from compiler.ir.interpret.spot_check.parallel_axis import (
    ParallelAxis,
    parallel_axis,
    slices_of_inputs,
    with_extent,
)
from compiler.ir.interpret.spot_check.signed_sums import (
    SLICES_OF_SUM,
    SignedSums,
    Slices,
    SumMismatchError,
    slices_of,
    three_dims,
)
from compiler.ir.interpret.spot_check.sliced_oracle import interpret_sliced
from compiler.ir.interpret.tolerance import allowed_errors

Array = NDArray[Any]

_NUM_ROWS = 64
"""Rows that are computed exactly. Chosen: together they take about as long as the sums."""
_LEAST_EXTENT = 1024
"""Shorter axes are not checked by parts: few slices would lie between two of one sum. Chosen."""
_MAX_SHARE = 1 / 32
"""The largest tolerance, as a share of the largest magnitude, at which sums are compared: with a
larger one, as of results of 8 bits, sums would hide elements that are as wrong as zeros. Chosen.
"""
_SUM_SHARES = 4.0
_MEAN_SHARES = 0.5
"""The allowed error of a sum, and the root of the mean square of all errors, as shares of the root
of the mean square of the sums, in tolerances. One rounding of an element is half a tolerance at
most, and 0.3 on average.
"""
_HEADROOM = 4
"""No element is so many times as large as the largest in the exact rows. Chosen: elements of random
inputs are alike. Larger types hold the sums exactly, and the program does not overflow.
"""
_EXACT = 1 << 53


@dataclass(frozen=True, slots=True)
class SpotCheck:
    """What is expected of an output without all of its elements.

    Attributes:
        row_axis: The dimension of the exact rows.
        rows: Their indices; the expected output consists of them.
        sum_axis: The dimension along which slices are added.
        signs: The signs of the slices.
        sums: The expected sums, as three dimensions; see `SignedSums`.
    """

    row_axis: int
    rows: NDArray[np.int64]
    sum_axis: int
    signs: NDArray[np.int8]
    sums: Array

    def to_arrays(self) -> dict[str, Array]:
        """Return arrays by name, which `from_arrays` reads."""
        return {name: np.asarray(value) for name, value in asdict(self).items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> SpotCheck:
        """Read what `to_arrays` returned."""
        row_axis, sum_axis = int(arrays["row_axis"]), int(arrays["sum_axis"])
        return cls(row_axis, arrays["rows"], sum_axis, arrays["signs"], arrays["sums"])

    def rows_of(self, array: Array) -> Array:
        """Return the rows of an output that are known exactly."""
        return array.take(self.rows, self.row_axis)

    def index_of(self, index: Sequence[int]) -> tuple[int, ...]:
        """Return the index of an element in the output, from that in its known rows."""
        return tuple(int(self.rows[i]) if d == self.row_axis else i for d, i in enumerate(index))

    def require_sums(self, xp: Any, output: Buffer, slices: Slices, allowed: float) -> None:
        """Require that the sums of an output are as expected.

        Args:
            xp: The module of the array: NumPy, or CuPy.
            output: The parameter.
            slices: Its slices along the axis of the sums, in float64.
            allowed: The error that rounding explains, as a share of the largest magnitude of the
                output; 0 if it must be exact.

        Raises:
            SumMismatchError: If they are not.
        """
        scale = math.sqrt(np.square(self.sums, dtype=np.float64).mean()) or 1.0
        with np.errstate(all="ignore"):
            errors = xp.abs(SignedSums(self.signs).of(xp, slices) - xp.asarray(self.sums)) / scale
            errors = xp.where(xp.isnan(errors), xp.inf, errors)
            largest = float(errors.max())
            mean = float(xp.sqrt(xp.square(errors).mean()))
        if largest > _SUM_SHARES * allowed:
            where = self._elements(output, int(errors.argmax()))
            raise SumMismatchError(
                f"the sum of {where} with random signs is off by {largest:.2g} of the sums' size: "
                f"rounding explains {_SUM_SHARES * allowed:.2g}"
            )
        if mean > _MEAN_SHARES * allowed:
            raise SumMismatchError(
                f"sums of elements of {output.name} with random signs are off by {mean:.2g} of "
                f"their size on average: rounding explains {_MEAN_SHARES * allowed:.2g}"
            )

    def _elements(self, output: Buffer, number: int) -> str:
        """Return the elements of a sum as Python text, such as `C[3, 5::32]`."""
        shape, axis, num_sums = static_shape(output), self.sum_axis, self.sums.shape[1]
        sum_shape = (*shape[:axis], num_sums, *shape[axis + 1 :])
        index = [str(i) for i in np.unravel_index(number, sum_shape)]
        index[axis] += f"::{num_sums}"
        return f"{output.name}[{', '.join(index)}]"


def spot_check(
    func: PrimFunc, inputs: Mapping[str, Array], seed: int
) -> tuple[Mapping[str, Array], SpotCheck] | None:
    """Return some rows of the only output, and its sums; None if the program allows no such check.

    Args:
        func: A program without symbolic variables.
        inputs: Its inputs, by name.
        seed: The same seed gives the same rows and signs.

    Raises:
        OracleError: If the oracle can't run the program.
    """
    outputs = [b for b in func.buffers if b.name in param_roles(func).outputs]
    if len(outputs) != 1 or allowed_errors(func, {})[outputs[0].name] > _MAX_SHARE:
        return None
    (output,) = outputs
    axes = [
        axis
        for dim, extent in enumerate(static_shape(output))
        if extent >= _LEAST_EXTENT and (axis := parallel_axis(func, output, dim)) is not None
    ]
    linear = [axis for axis in axes if is_linear(func, axis)]
    if not linear:
        return None
    sum_axis = max(linear, key=lambda axis: (axis.extent, axis.dims[output]))
    row_axis = max(axes, key=lambda axis: (axis is not sum_axis, axis.extent))
    rng = np.random.default_rng(seed)
    rows = _some_rows(row_axis.extent, rng)
    fewer = with_extent(func, row_axis, len(rows))
    expected = interpret_sliced(fewer, slices_of_inputs(func, inputs, row_axis, rows))
    if not _has_headroom(expected[output.name], output.dtype):
        return None
    signed = SignedSums.drawn(sum_axis.extent, rng)
    sums = _expected_sums(func, inputs, output, sum_axis, signed)
    row_dim, sum_dim = row_axis.dims[output], sum_axis.dims[output]
    return expected, SpotCheck(row_dim, rows, sum_dim, signed.signs, sums)


def _some_rows(extent: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return one row of each of as many parts of equal size: a tile of two parts has one."""
    starts = np.arange(_NUM_ROWS + 1) * extent // _NUM_ROWS
    return rng.integers(starts[:-1], starts[1:])


def _has_headroom(expected: Array, dtype: DType) -> bool:
    """Return whether all elements, like these, are far from the limits of their type."""
    largest = _HEADROOM * float(np.abs(expected.astype(np.float64)).max())
    _, limit = smallest_and_largest(dtype)
    return largest <= (limit if is_float(dtype) else min(limit, _EXACT // SLICES_OF_SUM))


def _expected_sums(
    func: PrimFunc,
    inputs: Mapping[str, Array],
    output: Buffer,
    axis: ParallelAxis,
    signed: SignedSums,
) -> Array:
    """Return the sums of an output, from the sums of the inputs along the axis."""
    wide: DType = "float64" if is_float(output.dtype) else "int64"
    summed = dict(inputs)
    for buffer, dim in axis.dims.items():
        if buffer.name in inputs and buffer in func.buffers:
            shape = static_shape(buffer)
            sums = signed.of(np, slices_of(inputs[buffer.name], dim, wide))
            summed[buffer.name] = sums.reshape(*shape[:dim], -1, *shape[dim + 1 :])
    (result,) = interpret(without_rounding(func, axis, signed.num_sums, wide), summed).values()
    return result.reshape(three_dims(result.shape, axis.dims[output]))
