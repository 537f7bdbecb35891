"""Arrays in the memory of the host to run candidates on, and their comparison with the oracle."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.backends.trial_arrays import TrialArrays, WrongResultError
from compiler.ir.core.nodes import static_shape
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.oracle.oracle import Mismatch, compare

Array = NDArray[Any]


class HostArrays(TrialArrays):
    """Arrays in the memory of the host; see `TrialArrays`.

    Args:
        inputs: The inputs of the program, by name.
        expected: The expected outputs, by name.
        growth: The growth of rounding errors by output; see `compiler.ir.interpret.error_growth`.
    """

    def __init__(
        self,
        func: PrimFunc,
        inputs: Mapping[str, Array],
        expected: Mapping[str, Array],
        growth: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        self.func = func
        self._inputs = inputs
        self._expected = expected
        self._growth = growth
        # NumPy arrays, as clients pass them: on aligned ones, streaming kernels are a fifth faster.
        self._arrays = {b.name: np.empty(static_shape(b), b.dtype) for b in func.buffers}
        self._first: dict[str, Array] = {}

    def again(self) -> HostArrays:
        """Return the same case with other arrays to run on."""
        return HostArrays(self.func, self._inputs, self._expected, self._growth)

    def fresh_arrays(self) -> list[Array]:
        """Return one array a parameter: inputs with their values, outputs poisoned."""
        for name, array in self._arrays.items():
            if (input_array := self._inputs.get(name)) is not None:
                np.copyto(array, input_array)
            else:
                _poison(array, self._expected[name])
        return list(self._arrays.values())

    def check(self) -> float:
        """Compare the arrays with the oracle's after one run; return the largest error.

        Raises:
            WrongResultError: If they differ by more than rounding explains.
        """
        for name in self._inputs.keys() - self._expected.keys():
            if not _have_same_bytes(self._arrays[name], self._inputs[name]):
                raise WrongResultError(f"the kernel wrote to its input {name}")
        outputs = {name: self._arrays[name] for name in self._expected}
        self._first = {name: array.copy() for name, array in outputs.items()}
        try:
            return float(compare(self.func, outputs, self._expected, self._growth))
        except Mismatch as error:
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
        if self._inputs.keys() & self._expected.keys():
            return  # each run starts from the result of the run before
        if all(_have_same_bytes(self._arrays[name], first) for name, first in self._first.items()):
            return
        try:
            self.check()
        except WrongResultError as error:
            raise WrongResultError(f"a later run differs from the first: {error}") from error


def _poison(array: Array, expected: Array) -> None:
    """Fill an array so that no element equals the expected one."""
    if array.dtype.kind in "biu":
        np.invert(expected, out=array)
    else:  # bfloat16 has no numeric kind in NumPy
        array.fill(np.nan)


def _have_same_bytes(first: Array, second: Array) -> bool:
    """Return whether two arrays have the same bytes, NaN or not."""
    bits = f"u{first.itemsize}"
    return np.array_equal(first.view(bits), second.view(bits))
