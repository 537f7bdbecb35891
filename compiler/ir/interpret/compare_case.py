"""Compare results with what a check case expects, whole or in parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.error_growth import CheckCase
from compiler.ir.interpret.spot_check.signed_sums import slices_of
from compiler.ir.interpret.tolerance import Mismatch, allowed_errors, compare


def compare_case(func: PrimFunc, got: Mapping[str, NDArray[Any]], case: CheckCase) -> float:
    """Compare results in the memory of the host, output by output.

    Args:
        func: The program.
        got: At least the outputs, by name.
        case: What is expected of them.

    Returns:
        The largest difference of an expected element, as a share of its output's largest magnitude.

    Raises:
        Mismatch: If a difference is beyond rounding, or a value is a NaN.
        SumMismatchError: If sums of elements that are not known show that.
        ValueError: If an output is missing or has another shape.
    """
    spot = case.spot
    if spot is None:
        return compare(func, got, case.expected, case.growth)
    (name,) = case.expected
    (output,) = (buffer for buffer in func.buffers if buffer.name == name)
    allowed = allowed_errors(func, case.growth)[name]
    try:
        error = compare(func, {name: spot.rows_of(got[name])}, case.expected, case.growth)
    except Mismatch as mismatch:
        raise mismatch.at(spot.index_of(mismatch.index)) from mismatch
    spot.require_sums(np, output, slices_of(got[name], spot.sum_axis, np.float64), allowed)
    return error
