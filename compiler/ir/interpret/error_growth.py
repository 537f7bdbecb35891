"""The growth of rounding errors in a program, and inputs for which it is small.

A kernel rounds values that the oracle does not round. To see the effect on a result, the oracle
runs again with each input and stored value moved by about one rounding. A recurrence with
amplifying steps may be chaotic: no tolerance would make sense, so its inputs are made smaller until
it is calm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.ir.core.dtypes import is_float
from compiler.ir.core.nodes import static_shape
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.inputs import param_roles, random_inputs
from compiler.ir.interpret.oracle.oracle import estimated_secs
from compiler.ir.interpret.spot_check.sliced_oracle import interpret_sliced
from compiler.ir.interpret.spot_check.spot_check import SpotCheck, spot_check
from compiler.ir.interpret.tolerance import computed_epsilon, tolerance

Array = NDArray[Any]

# Longer runs are not repeated: the tolerance then follows from the structure of the program alone.
_MAX_SECS = 5.0
# Results of longer runs are checked by parts, if the program allows it. Chosen.
_MAX_SECS_OF_WHOLE = 10.0
# So are larger results: the oracle computes in float64, and a comparison takes copies. Chosen.
_MAX_ELEMENTS_OF_WHOLE = 1 << 25
# The number of attempts with smaller inputs; each attempt halves them.
_MOST_HALVINGS = 6


@dataclass(frozen=True, slots=True)
class CheckCase:
    """Inputs of a program, its expected outputs, and the growth of errors, by name.

    `growth` is the change of an output as a share of its largest magnitude, if inputs and stored
    values are moved by one rounding of the coarsest type in which the program computes, and values
    that are converted and loaded again by a part of the rounding of their type.

    With `spot`, the only expected output has some rows of the result alone.
    """

    inputs: Mapping[str, Array]
    expected: Mapping[str, Array]
    growth: Mapping[str, float]
    spot: SpotCheck | None = None


def check_case(func: PrimFunc, seed: int) -> CheckCase:
    """Draw inputs to check kernels of a program with, and run the oracle on them.

    The same seed gives the same case. The oracle runs twice, and more often if errors grow. If it
    would take long, or the result is very large, it runs only for a check of parts of the result,
    if the program allows that.

    Raises:
        OracleError: If the oracle can't run the program.
    """
    inputs = random_inputs(func, seed)
    if estimated_secs(func) > _MAX_SECS_OF_WHOLE or _num_results(func) > _MAX_ELEMENTS_OF_WHOLE:
        parts = spot_check(func, inputs, seed)
        if parts is not None:
            return CheckCase(inputs, parts[0], {}, parts[1])
    first = _case(func, inputs)
    case, halvings = first, 0
    while _is_wild(func, case) and halvings < _MOST_HALVINGS:
        inputs = {name: _halved(array) for name, array in inputs.items()}
        case, halvings = _case(func, inputs), halvings + 1
    # If smaller inputs do not help, for example if a comparison flips, keep the ordinary ones.
    return first if _is_wild(func, case) else case


def _num_results(func: PrimFunc) -> int:
    outputs = param_roles(func).outputs
    return sum(prod(static_shape(b)) for b in func.buffers if b.name in outputs)


def _case(func: PrimFunc, inputs: Mapping[str, Array]) -> CheckCase:
    expected = interpret_sliced(func, inputs)
    nudge = computed_epsilon(func)
    if not nudge or estimated_secs(func) > _MAX_SECS:
        return CheckCase(inputs, expected, {})
    moved = interpret_sliced(func, inputs, nudge)
    names = [b.name for b in func.buffers if b.name in expected and is_float(b.dtype)]
    return CheckCase(inputs, expected, {n: _distance(expected[n], moved[n]) for n in names})


def _is_wild(func: PrimFunc, case: CheckCase) -> bool:
    return max(case.growth.values(), default=0.0) > tolerance(func)


def _halved(array: Array) -> Array:
    if array.dtype.kind in "biu":
        return array
    half: Array = (array / 2).astype(array.dtype)
    return half


def _distance(first: Array, second: Array) -> float:
    """Return the largest difference as a share of the largest magnitude."""
    a, b = first.astype(np.float64), second.astype(np.float64)
    finite = np.isfinite(a) & np.isfinite(b)
    if not finite.any():
        return 0.0
    scale = float(np.abs(a[finite]).max()) or 1.0
    return float(np.abs(a[finite] - b[finite]).max()) / scale
