"""The arrays of the oracle, and the fallback to the evaluator."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from compiler.ir.core.dtypes import is_float
from compiler.ir.core.nodes import Buffer, static_shape
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.evaluator.evaluate import EvaluationError, evaluate
from compiler.ir.interpret.inputs import ParamRoles
from compiler.ir.interpret.oracle.vectorized_eval import Array, OracleError, wide


def given_array(buffer: Buffer, inputs: Mapping[str, Array]) -> Array:
    """Return an input in its wide type.

    Raises:
        OracleError: If it is missing, or of another shape or type.
    """
    array = inputs.get(buffer.name)
    if array is None:
        raise OracleError(f"input {buffer.name} is missing")
    if array.shape != static_shape(buffer) or array.dtype != buffer.dtype:
        raise OracleError(
            f"input {buffer.name} is {array.dtype} of shape {array.shape}: expected "
            f"{buffer.dtype} of shape {static_shape(buffer)}"
        )
    return array.astype(wide(buffer.dtype))


def unwritten(buffer: Buffer) -> Array:
    """Return an array without any written element."""
    # NaN spreads, so a read before the first write shows in the outputs.
    fill = math.nan if is_float(buffer.dtype) else 1
    return np.full(static_shape(buffer), fill, wide(buffer.dtype))


def nudged(array: Array, share: float) -> Array:
    """Return an array with each element moved up or down by a share."""
    signs = np.random.default_rng(0).choice((-share, share), array.shape)
    return array * (1.0 + signs)


def run_in_lockstep(
    func: PrimFunc, inputs: Mapping[Buffer, Array], roles: ParamRoles
) -> dict[str, Array]:
    """Run a program whose threads communicate, one scalar at a time, by the evaluator.

    Raises:
        OracleError: If the evaluator fails.
    """
    try:
        outputs = evaluate(func, {b.name: array.astype(b.dtype) for b, array in inputs.items()})
    except EvaluationError as error:
        raise OracleError(f"the oracle can't run {func.name}: {error}") from error
    return {name: outputs[name] for name in roles.outputs}
