"""The oracle: the expected results of a program by NumPy, to compare kernels with.

It runs any program statement by statement. Loops whose iterations it proves independent become
axes of arrays; reductions become array operations, sums of products `einsum`; the rest runs in
order. Numbers are float64 or int64. A value is rounded to its type when it is stored; an
accumulator, such as a running sum, only when its nest of loops is done. Threads that exchange data
run in lockstep, in the evaluator. The oracle shares no code with lowering and code generation. A
billion operations of a tensor expression take seconds; the oracle runs once a workload.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from compiler.ir.core.dtypes import is_float
from compiler.ir.core.nodes import Buffer
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.inputs import ParamRoles, param_roles, random_inputs
from compiler.ir.interpret.oracle.oracle_memory import given_array, nudged, run_in_lockstep
from compiler.ir.interpret.oracle.oracle_plan import OraclePlan
from compiler.ir.interpret.oracle.oracle_run import OracleRun
from compiler.ir.interpret.oracle.vectorized_eval import Array, OracleError
from compiler.ir.interpret.rounded_conversions import with_rounded_conversions
from compiler.ir.interpret.tolerance import Mismatch, compare, tolerance
from compiler.ir.verify.races.check import threads_communicate

__all__ = [
    "Mismatch",
    "OracleError",
    "ParamRoles",
    "compare",
    "interpret",
    "param_roles",
    "random_inputs",
    "tolerance",
]

# Elements that are evaluated at once: temporaries of this size stay in the cache.
_CHUNK = 1 << 18

# The estimated time of the evaluator relative to scalar code.
_LOCKSTEP_FACTOR = 16


def interpret(
    func: PrimFunc,
    inputs: Mapping[str, Array],
    limit_secs: float = 3600.0,
    nudge: float = 0.0,
    nudges: Mapping[Buffer, float] = MappingProxyType({}),
) -> dict[str, Array]:
    """Run a program.

    Args:
        func: A program, scheduled or not, without symbolic variables.
        inputs: The parameters that the program reads, by name; others are ignored.
        limit_secs: The limit on the run time, as estimated beforehand.
        nudge: The share by which each floating-point input is moved, up or down at random. Stored
            values are moved, too, except in loops that run one scalar at a time.
        nudges: The share for the stored values of some buffers, if that is larger.

    Returns:
        The parameters that the program writes, by name.

    Raises:
        OracleError: If an input is missing or has another shape, the program has an operation that
            the oracle lacks, or it would take too long.
    """
    plan = OraclePlan(_CHUNK)
    secs = plan.secs(func.root.body)
    if secs > limit_secs:
        raise OracleError(
            f"the oracle would take about {secs:.0f} s to run {func.name}: "
            f"expected {limit_secs:.0f} s at most"
        )
    roles = param_roles(func)
    arrays = {b: given_array(b, inputs) for b in func.buffers if b.name in roles.inputs}
    if nudge:
        arrays = {b: nudged(a, nudge) if is_float(b.dtype) else a for b, a in arrays.items()}
    if threads_communicate(func):
        secs = _LOCKSTEP_FACTOR * plan.scalar_secs(func.root.body)
        if secs > limit_secs:
            raise OracleError(
                f"threads of {func.name} share memory, and the oracle would take about "
                f"{secs:.0f} s to run them in lockstep: expected {limit_secs:.0f} s at most"
            )
        return run_in_lockstep(func, arrays, roles)
    func = with_rounded_conversions(func)
    run = OracleRun(func, arrays, plan, roles, nudge, nudges)
    with np.errstate(all="ignore"):
        run.program(func.root.body)
    return run.outputs()


def estimated_secs(func: PrimFunc) -> float:
    """Return the estimated run time of `interpret`, in seconds."""
    return OraclePlan(_CHUNK).secs(func.root.body)
