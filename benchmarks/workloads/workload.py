"""A workload of kernel benchmarks: a computation, its sizes and its inputs."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Unit = Literal["GFLOP/s", "GOP/s", "GB/s"]
ALIGNMENT = 64


@dataclass(frozen=True)
class BenchmarkWorkload:
    """One computation on tensors of fixed shapes.

    Attributes:
        name: The name of its results.
        op: The name of the computation, for which each library has a function.
        spec: The operator of the library, as `lw.ops.from_spec` reads it.
        shapes: The shapes of the inputs, in the order of the operator's parameters.
        out: The shape of the output.
        flops: Operations of one run, on floats or integers; 0 if only bytes move.
        unit: The unit of its rate: operations if they are the limit, else bytes.
        group: "public" and "seed" are what is aimed at; "models" are layers of models, in several
            types and with constant weights; "classes" are other classes of operators; "extra" is
            what goals mention besides.
        options: Further arguments of the operator, such as `stride`.
        types: The types of the inputs and of the output, if not all are float32.
        max_error: The largest error of a correct result, relative to the largest magnitude.
    """

    name: str
    op: str
    spec: str
    shapes: tuple[tuple[int, ...], ...]
    out: tuple[int, ...]
    flops: float
    unit: Unit = "GFLOP/s"
    group: str = "public"
    options: dict[str, int] = field(default_factory=dict)
    types: tuple[str, ...] = ()
    max_error: float = 1e-3

    @property
    def all_types(self) -> tuple[str, ...]:
        """The types of the inputs and of the output."""
        return self.types or ("float32",) * (len(self.shapes) + 1)

    @property
    def bytes(self) -> int:
        """The bytes of all inputs and the output."""
        tensors = zip((*self.shapes, self.out), self.all_types, strict=True)
        return sum(prod(shape) * storage(kind).itemsize for shape, kind in tensors)

    @property
    def amount(self) -> float:
        """The operations or bytes of one run, depending on the unit."""
        return float(self.bytes) if self.unit == "GB/s" else self.flops

    @property
    def reads_only(self) -> bool:
        """Whether the output is so small that the read bandwidth is the limit."""
        return 20 * storage(self.all_types[-1]).itemsize * prod(self.out) < self.bytes

    @property
    def has_constants(self) -> bool:
        """Whether all inputs but the first are constant: libraries may pack them beforehand."""
        return "constant=" in self.spec

    def inputs(self) -> list[Array]:
        """Return new inputs, equal for every call and every process.

        All but the first are weights, which are small, so that outputs are near 1. Numbers of
        `bfloat16` are stored as their bits.
        """
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        arrays = []
        for number, (shape, kind) in enumerate(zip(self.shapes, self.all_types, strict=False)):
            array = aligned(shape, kind)
            array[...] = self._values(rng, number, kind, shape)
            arrays.append(array)
        return arrays

    def _values(
        self, rng: np.random.Generator, number: int, kind: str, shape: tuple[int, ...]
    ) -> Array:
        if kind == "uint8":  # activations have 7 bits, because libraries add up pairs in 16 bits
            return rng.integers(0, 256 if number else 128, shape, dtype="uint8")
        if kind == "int8":
            return rng.integers(-127, 128, shape, dtype="int8")
        if kind == "int32":
            return rng.integers(-1000, 1000, shape, dtype="int32")
        if number and {"uint8", "int8"} & set(self.types):  # the scale of quantized values
            return rng.uniform(5e-4, 1.5e-3, shape).astype("float32")
        values = rng.standard_normal(shape, dtype="float32") * np.float32(0.1 if number else 1.0)
        return to_bfloat16(values) if kind == "bfloat16" else values


def storage(kind: str) -> np.dtype[Any]:
    """Return the NumPy type that stores elements of a type: NumPy has no `bfloat16`."""
    return np.dtype("uint16" if kind == "bfloat16" else kind)


def to_bfloat16(values: Array) -> Array:
    """Round float32 numbers to the nearest ones of `bfloat16`; return their bits."""
    bits = values.view(np.uint32)
    rounded: Array = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return rounded.astype(np.uint16)


def from_bfloat16(bits: Array) -> Array:
    """Return the numbers of bits of `bfloat16`, in float32."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def aligned(shape: tuple[int, ...], kind: str = "float32") -> Array:
    """Return an uninitialised array, aligned to a cache line."""
    size = storage(kind).itemsize * prod(shape)
    raw = np.empty(size + ALIGNMENT, dtype=np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size].view(storage(kind)).reshape(shape)
