"""Compare results with the oracle's on the device that computed them.

Arrays are flat bytes of CuPy or NumPy, whose module is `xp`: CuPy lacks types such as bfloat16, so
elements are decoded here. The same code runs on both. The allowed errors are those of
`compiler.ir.interpret.tolerance`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from compiler.backends.trial_arrays import WrongResultError
from compiler.ir.core.dtypes import DType, is_float, size_bytes
from compiler.ir.core.nodes import Buffer, static_shape
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.error_growth import CheckCase
from compiler.ir.interpret.spot_check.signed_sums import SumMismatchError, three_dims
from compiler.ir.interpret.tolerance import Mismatch, allowed_errors

Bytes: TypeAlias = Any
"""Flat bytes of the array library, whose stubs CuPy lacks."""

_CHUNK = 1 << 24
"""Elements that are compared at once: each temporary array in float64 then has 128 MiB."""


@dataclass(frozen=True, slots=True)
class ExpectedOutput:
    """An output as the oracle expects it, in the memory of the device.

    Attributes:
        param: The parameter.
        raw: The expected bytes; with a spot check, of the known rows alone.
        scale: The largest finite magnitude, of which errors are shares; 1 if that is 0.
        allowed: The largest error that is allowed.
    """

    param: Buffer
    raw: Bytes
    scale: float
    allowed: float


class DeviceCase:
    """The inputs and the expected outputs of a workload on a device, uploaded once.

    Args:
        xp: The module of the arrays: CuPy, or NumPy.
        func: The workload.
        case: Its inputs, and what is expected of its outputs, in the memory of the host.
    """

    def __init__(self, xp: Any, func: PrimFunc, case: CheckCase) -> None:
        self.func = func
        self.is_spot_checked = case.spot is not None
        self._xp = xp
        self._spot = case.spot
        self._inputs = {name: self._upload(array) for name, array in case.inputs.items()}
        allowed = allowed_errors(func, case.growth)
        self._outputs = [
            ExpectedOutput(
                param,
                self._upload(case.expected[param.name]),
                _scale(case.expected[param.name]),
                allowed[param.name],
            )
            for param in func.buffers
            if param.name in case.expected
        ]

    @property
    def is_updated_in_place(self) -> bool:
        """Return whether a run starts from the result of the run before."""
        return any(output.param.name in self._inputs for output in self._outputs)

    def new_arrays(self) -> dict[str, Bytes]:
        """Return memory for each parameter."""
        return {
            b.name: self._xp.empty(math.prod(static_shape(b)) * size_bytes(b.dtype), self._xp.uint8)
            for b in self.func.buffers
        }

    def fill(self, arrays: Mapping[str, Bytes]) -> None:
        """Give inputs their values, and poison outputs: no element is then as expected."""
        for name, raw in self._inputs.items():
            arrays[name][:] = raw
        for output in self._outputs:
            if output.param.name not in self._inputs:
                self._poison(arrays[output.param.name], output)

    def check(self, arrays: Mapping[str, Bytes]) -> float:
        """Return the largest error of the outputs.

        Raises:
            WrongResultError: If it is more than rounding explains, or an input was changed.
        """
        written = {output.param.name for output in self._outputs}
        for name in self._inputs.keys() - written:
            if not self._are_equal(arrays[name], self._inputs[name]):
                raise WrongResultError(f"the kernel wrote to its input {name}")
        return max(
            self._check_output(arrays[output.param.name], output) for output in self._outputs
        )

    def outputs_of(self, arrays: Mapping[str, Bytes]) -> dict[str, Bytes]:
        """Return copies of the outputs."""
        return {o.param.name: arrays[o.param.name].copy() for o in self._outputs}

    def are_outputs(self, arrays: Mapping[str, Bytes], outputs: Mapping[str, Bytes]) -> bool:
        """Return whether the outputs have these bytes."""
        return all(self._are_equal(arrays[name], raw) for name, raw in outputs.items())

    def _upload(self, array: NDArray[Any]) -> Bytes:
        return self._xp.asarray(np.ascontiguousarray(array).reshape(-1).view(np.uint8))

    def _are_equal(self, first: Bytes, second: Bytes) -> bool:
        return bool(self._xp.array_equal(first, second))

    def _poison(self, raw: Bytes, output: ExpectedOutput) -> None:
        if is_float(output.param.dtype):
            raw.fill(0xFF)  # a NaN in each of the types
        elif self._spot is not None:
            raw.fill(0x55)  # no sum of results
        elif output.param.dtype == "bool":
            self._xp.bitwise_xor(output.raw, 1, out=raw)
        else:
            self._xp.invert(output.raw, out=raw)

    def _check_output(self, raw: Bytes, output: ExpectedOutput) -> float:
        if self._spot is None:
            return self._check_elements(raw, output)
        rows = _slices(self._xp, raw, output.param, self._spot.row_axis)
        error = self._check_elements(rows(self._spot.rows), output)
        summed = _slices(self._xp, raw, output.param, self._spot.sum_axis)
        dims = three_dims(static_shape(output.param), self._spot.sum_axis)

        def slices(part: slice) -> Any:
            decoded = values(self._xp, summed(part), output.param.dtype)
            return decoded.reshape(dims[0], -1, dims[2])

        try:
            self._spot.require_sums(self._xp, output.param, slices, output.allowed)
        except SumMismatchError as error_of_sums:
            raise WrongResultError(str(error_of_sums)) from error_of_sums
        return error

    def _check_elements(self, raw: Bytes, output: ExpectedOutput) -> float:
        worst, index, num_wrong = 0.0, 0, 0
        for start, errors in self._errors(raw, output):
            largest = float(errors.max())
            if largest > worst:
                worst, index = largest, start + int(errors.argmax())
            num_wrong += int((errors > output.allowed).sum())
        if num_wrong:
            raise WrongResultError(str(self._mismatch(raw, output, worst, index, num_wrong)))
        return worst

    def _errors(self, raw: Bytes, output: ExpectedOutput) -> Iterator[tuple[int, Any]]:
        """Yield the errors of some elements, in shares of the scale, and the first one's number."""
        xp, dtype = self._xp, output.param.dtype
        size = size_bytes(dtype)
        for start in range(0, len(raw) // size, _CHUNK):
            part = slice(start * size, (start + _CHUNK) * size)
            actual, expected = (values(xp, each[part], dtype) for each in (raw, output.raw))
            with np.errstate(all="ignore"):
                # Equal infinities have no difference; a NaN on either side has an infinite one.
                off = xp.where(actual == expected, 0.0, xp.abs(actual - expected))
                errors = xp.where(xp.isnan(off), xp.inf, off) / output.scale
            if not is_float(dtype):  # float64 does not hold all of 64 bits
                bits = np.dtype(f"u{size}")
                differ = raw[part].view(bits) != output.raw[part].view(bits)
                errors = xp.where(differ, xp.maximum(errors, 1 / output.scale), 0.0)
            yield start, errors

    def _mismatch(
        self, raw: Bytes, output: ExpectedOutput, error: float, index: int, count: int
    ) -> Mismatch:
        dtype = output.param.dtype
        size = size_bytes(dtype)
        part = slice(index * size, (index + 1) * size)
        got, expected = (bytes(int(byte) for byte in each[part]) for each in (raw, output.raw))
        shape = list(static_shape(output.param))
        if self._spot is not None:
            shape[self._spot.row_axis] = len(self._spot.rows)
        position = tuple(int(i) for i in np.unravel_index(index, shape))
        return Mismatch(
            output.param.name,
            position if self._spot is None else self._spot.index_of(position),
            got=np.frombuffer(got, dtype)[0].item(),
            expected=np.frombuffer(expected, dtype)[0].item(),
            error=error,
            tolerance=output.allowed,
            count=count,
        )


def _slices(xp: Any, raw: Bytes, param: Buffer, axis: int) -> Callable[[Any], Bytes]:
    """Return what selects slices of an array along an axis, as flat bytes."""
    outer, extent, inner = three_dims(static_shape(param), axis)
    cube = raw.reshape(outer, extent, inner * size_bytes(param.dtype))
    return lambda part: xp.ascontiguousarray(cube[:, part]).reshape(-1)


def values(xp: Any, raw: Bytes, dtype: DType) -> Any:
    """Return the elements of flat bytes in float64, decoded by the module `xp`."""
    if dtype == "bfloat16":
        raw, dtype = (raw.view(np.uint16).astype(np.uint32) << 16).view(np.uint8), "float32"
    if dtype in ("float8_e4m3fn", "float8_e5m2"):
        table = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float64)
        return xp.asarray(table)[raw]
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return raw.view(np.dtype(dtype)).astype(np.float64)


def _scale(expected: NDArray[Any]) -> float:
    dtype: Any = expected.dtype.name
    decoded = values(np, np.ascontiguousarray(expected).reshape(-1).view(np.uint8), dtype)
    finite = np.abs(decoded[np.isfinite(decoded)])
    return float(finite.max(initial=0.0)) or 1.0
