"""Arrays in the memory of the host to run candidates on, and their comparison with the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.backends.trial_arrays import TrialArrays, WrongResultError
from compiler.executor.memory import aligned_empty
from compiler.ir.analysis.specialize import sized
from compiler.ir.analysis.symbols import TIMED, declared
from compiler.ir.core.nodes import Buffer, static_shape
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.compare_case import compare_case
from compiler.ir.interpret.error_growth import CheckCase
from compiler.ir.interpret.spot_check.signed_sums import SumMismatchError
from compiler.ir.interpret.tolerance import Mismatch

Array = NDArray[Any]


class HostArrays(TrialArrays):
    """Arrays in the memory of the host; see `TrialArrays`.

    Args:
        func: The program.
        case: Its inputs, and what is expected of its outputs.
    """

    def __init__(self, func: PrimFunc, case: CheckCase) -> None:
        self.func = func
        self._sized = sized(func)
        self.is_spot_checked = case.spot is not None
        self._case = case
        # They begin at cache lines, as those of models, packages and PyTorch do. Where arrays begin
        # decides which kernel is the fastest: see docs/tuning.md, "Memory alignment".
        self._arrays = {
            b.name: aligned_empty(static_shape(b), b.dtype) for b in self._sized.buffers
        }
        self._first: dict[str, Array] = {}

    def again(self) -> HostArrays:
        """Return the same case with other arrays to run on."""
        return HostArrays(self.func, self._case)

    def fresh_arrays(self) -> list[Any]:
        """Return one array, or number, a parameter: inputs with their values, outputs poisoned."""
        for name, array in self._arrays.items():
            if (input_array := self._case.inputs.get(name)) is not None:
                np.copyto(array, input_array)
            else:
                _poison(array, None if self._case.spot else self._case.expected[name])
        arrays, numbers = iter(self._arrays.values()), declared(self.func, TIMED)
        return [
            next(arrays) if isinstance(param, Buffer) else numbers[param.name]
            for param in self.func.params
        ]

    def check(self) -> float:
        """Compare the arrays with the oracle's after one run; return the largest error.

        Raises:
            WrongResultError: If they differ by more than rounding explains.
        """
        for name in self._case.inputs.keys() - self._case.expected.keys():
            if not _have_same_bytes(self._arrays[name], self._case.inputs[name]):
                raise WrongResultError(f"the kernel wrote to its input {name}")
        outputs = {name: self._arrays[name] for name in self._case.expected}
        self._first = {name: array.copy() for name, array in outputs.items()}
        try:
            return compare_case(self._sized, outputs, self._case)
        except (Mismatch, SumMismatchError) as error:
            raise WrongResultError(str(error)) from error

    def check_result(self, result: Array) -> None:
        """Compare the returned result of a library, for the only output, with the oracle's.

        Raises:
            WrongResultError: If it is another array, or the library wrote to an input.
        """
        output = next(reversed(self._arrays.values()))
        if (result.shape, result.dtype) != (output.shape, output.dtype):
            actual = f"an array {result.shape} of {result.dtype}"
            raise WrongResultError(f"{actual} instead of {output.shape} of {output.dtype}")
        np.copyto(output, result)
        self.check()

    def check_again(self) -> None:
        """Compare the outputs once more after many runs.

        Raises:
            WrongResultError: If a later run went wrong, as the race of a parallel loop may.
        """
        if self._case.inputs.keys() & self._case.expected.keys():
            return  # each run starts from the result of the run before
        if all(_have_same_bytes(self._arrays[name], first) for name, first in self._first.items()):
            return
        try:
            self.check()
        except WrongResultError as error:
            raise WrongResultError(f"a later run differs from the first: {error}") from error


def _poison(array: Array, expected: Array | None) -> None:
    """Fill an array so that no element equals the expected one; if unknown, no sum of elements."""
    if array.dtype.kind not in "biu":  # bfloat16 has no numeric kind in NumPy
        array.fill(np.nan)
    elif expected is None:
        array.fill(np.iinfo(array.dtype).max)
    else:
        np.invert(expected, out=array)


def _have_same_bytes(first: Array, second: Array) -> bool:
    """Return whether two arrays have the same bytes, NaN or not."""
    bits = f"u{first.itemsize}"
    return np.array_equal(first.view(bits), second.view(bits))
