"""Run a whole program in the emulator on inputs of the oracle, and compare its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.backends.cuda.device_code import DeviceCode
from compiler.backends.cuda.emulated_call import EmulatedCall
from compiler.backends.emulator.errors import EmulatorError
from compiler.backends.host_arrays import HostArrays
from compiler.backends.inspection import Emulation
from compiler.backends.trial_arrays import WrongResultError
from compiler.executor.artifact import Artifact
from compiler.ir.core.nodes import static_shape
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.error_growth import CheckCase, check_case
from compiler.ir.interpret.inputs import param_roles, random_inputs
from compiler.ir.interpret.oracle.oracle import OracleError, estimated_secs
from compiler.target.cuda import CudaTarget

Array = NDArray[Any]

_SEED = 0
_MAX_THREADS = 1 << 14
"""Threads of a launch that run: a loop of a thousand steps then takes about a second. Chosen."""
_MAX_FETCHING_THREADS = 1 << 11
"""The same with tiles that the copy engine fetches, because each of their bytes is followed: on
Zen 3 a step of a block of 384 threads takes 20 ms, so five blocks of 16 steps take two seconds."""
_MAX_ORACLE_SECS = 2.0
"""A result that takes the oracle longer is not compared: an inspection takes seconds. Chosen."""


def emulate_program(func: PrimFunc, artifact: Artifact) -> Emulation:
    """Run the kernel of a program in the emulator; a fault does not end it.

    Of a large grid only some blocks run. What they write is compared, unless another launch would
    read what is missing.
    """
    code = DeviceCode.from_bytes(artifact.code)
    launches = code.plan.launches
    max_threads = _MAX_FETCHING_THREADS if any(each.tensors for each in launches) else _MAX_THREADS
    is_complete = all(prod(each.grid) * prod(each.block) <= max_threads for each in launches)
    case, problem = _case(func)
    if len(launches) > 1 and not is_complete:
        problem = "not compared: a launch reads results of blocks that were left out"
    trial = HostArrays(func, case)
    arrays = trial.fresh_arrays()
    before = [array.copy() for array in arrays]
    try:
        call = EmulatedCall(code, arrays, CudaTarget(artifact.target))
        reports = call.explore(max_threads)
    except EmulatorError as error:
        return Emulation((), 0, is_complete=False, problem=f"not emulated: {error}")
    max_error = None
    if not problem:
        if not is_complete:
            _fill_unwritten(func, arrays, before, case.expected)
        try:
            max_error = trial.check()
        except WrongResultError as error:
            problem = str(error)
    return Emulation(
        reports=tuple(map(str, reports)),
        num_faults=sum(len(report.faults) for report in reports),
        is_complete=is_complete,
        max_error=max_error,
        problem=problem,
    )


def _case(func: PrimFunc) -> tuple[CheckCase, str]:
    """Return inputs with their expected result, and the reason if it is unknown."""
    reason = "the oracle would take too long"
    try:
        if estimated_secs(func) <= _MAX_ORACLE_SECS:
            return check_case(func, _SEED), ""
    except OracleError as error:
        reason = str(error)
    outputs = param_roles(func).outputs
    unknown = {b.name: np.zeros(static_shape(b), b.dtype) for b in func.buffers}
    expected = {name: unknown[name] for name in outputs}
    return CheckCase(random_inputs(func, _SEED), expected, {}), f"not compared: {reason}"


def _fill_unwritten(
    func: PrimFunc,
    arrays: Sequence[Array],
    before: Sequence[Array],
    expected: Mapping[str, Array],
) -> None:
    """Give the expected values to the elements that no block wrote."""
    for buffer, array, earlier in zip(func.buffers, arrays, before, strict=True):
        if buffer.name in expected:
            bits = f"u{array.itemsize}"
            is_unwritten = array.view(bits) == earlier.view(bits)
            np.copyto(array, expected[buffer.name], where=is_unwritten)
