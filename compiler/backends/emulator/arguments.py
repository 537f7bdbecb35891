"""The arguments of a launch: buffers in global memory, tensor maps, numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from compiler.backends.emulator.errors import EmulatorError
from compiler.backends.emulator.memory import PARAMETER_WINDOW, GlobalMemory
from compiler.backends.emulator.program import Program, PtxParameter
from compiler.backends.emulator.tensor_copies import TENSOR_MAP_BYTES, TensorMap
from compiler.backends.emulator.types import Array

Argument: TypeAlias = "Array | TensorMap | int | float"


class LaunchArguments:
    """The arguments of a kernel.

    Attributes:
        buffers: The arrays by name, each once, in the order of their first use.

    Raises:
        EmulatorError: If their number is wrong, or an array is not C-contiguous.
    """

    def __init__(self, program: Program, values: Sequence[Argument]) -> None:
        if len(values) != len(program.parameters):
            raise EmulatorError(
                f"kernel {program.name} has {len(program.parameters)} parameters, not {len(values)}"
            )
        self._program = program
        self._values = values
        self.buffers: list[tuple[str, Array]] = []
        # By argument, the position of its buffer. Two arguments may be one array.
        self._positions: dict[int, int] = {}
        position_of: dict[tuple[int, int], int] = {}
        for number, value in enumerate(values):
            array = value.tensor if isinstance(value, TensorMap) else value
            if isinstance(array, np.ndarray):
                if not array.flags.c_contiguous:
                    raise EmulatorError("the emulator takes C-contiguous arrays")
                key = (array.ctypes.data, array.nbytes)
                if key not in position_of:
                    position_of[key] = len(self.buffers)
                    self.buffers.append((f"argument {number}", array))
                self._positions[number] = position_of[key]

    def _pairs(self) -> Iterator[tuple[int, str, PtxParameter, Argument]]:
        items = self._program.parameters.items()
        for number, ((name, parameter), value) in enumerate(zip(items, self._values, strict=True)):
            yield number, name, parameter, value

    def pack(self, memory: GlobalMemory) -> bytes:
        """Return the bytes of the parameters; `memory` begins with the buffers.

        Raises:
            EmulatorError: If an argument has another size than its parameter.
        """
        parameters = self._program.parameters.values()
        packed = bytearray(max((p.offset + p.num_bytes for p in parameters), default=0))
        for number, name, parameter, value in self._pairs():
            if isinstance(value, TensorMap):
                content = bytes(TENSOR_MAP_BYTES)
            elif isinstance(value, np.ndarray):
                content = memory.address(self._positions[number]).to_bytes(8, "little")
            else:
                content = _scalar(value, parameter)
            if len(content) != parameter.num_bytes:
                raise EmulatorError(
                    f"{value!r} does not fit parameter {name} of {self._program.name}"
                )
            packed[parameter.offset : parameter.offset + parameter.num_bytes] = content
        return bytes(packed)

    def tensor_maps(self, memory: GlobalMemory) -> dict[int, tuple[TensorMap, int]]:
        """Return the tensor maps by the address of their parameter, and where each begins."""
        return {
            PARAMETER_WINDOW + parameter.offset: (value, memory.start(self._positions[number]))
            for number, _, parameter, value in self._pairs()
            if isinstance(value, TensorMap)
        }

    def copy_back(self, memory: GlobalMemory) -> None:
        """Copy what the kernel wrote to the arrays; arrays that are read-only stay."""
        for position, (_, array) in enumerate(self.buffers):
            if array.flags.writeable:
                array.reshape(-1).view(np.uint8)[:] = memory.content(position)


def _scalar(value: Any, parameter: PtxParameter) -> bytes:
    if isinstance(value, np.generic):
        return value.tobytes()
    if isinstance(value, float):
        return np.array(value, f"f{parameter.num_bytes}").tobytes()
    modulus = 1 << 8 * parameter.num_bytes
    return (int(value) % modulus).to_bytes(parameter.num_bytes, "little")
