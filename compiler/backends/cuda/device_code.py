"""The code of a kernel for a GPU: machine code, and the launches that make up a call.

As bytes it is a magic word with the version of the format, the length of a header, the header as
JSON, and then the cubin and the PTX, whose sizes the header holds. Integers are little-endian.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from compiler.backends.cuda.nvrtc import CompiledSource
from compiler.executor.error import ArtifactError
from compiler.executor.params import Param
from compiler.ir.core.dtypes import DType
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import static_shape
from compiler.passes.device.kernel import DeviceKernel, DeviceProgram, Extents, Launch
from compiler.runtime.resources import KernelResources

FORMAT_VERSION = 2
_MAGIC = b"LWGPU%03d" % FORMAT_VERSION
_LENGTH = struct.Struct("<I")

_MALFORMED = (LookupError, RecursionError, TypeError, ValueError, struct.error)


@dataclass(frozen=True, slots=True)
class TensorArgument:
    """A tensor that the copy engine reads: it becomes a tensor map (`CUtensorMap`) in each call.

    Attributes:
        array: The position of its array, in the parameters followed by the workspaces.
        dtype: The type of its elements.
        shape: Its extents; it is dense.
        box: The extents of what one copy moves. Its rows, of 128 bytes, are swizzled by 128 bytes.
    """

    array: int
    dtype: DType
    shape: tuple[int, ...]
    box: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """One launch of a call.

    Attributes:
        kernel: The name of the function in the machine code.
        shared_bytes: The dynamic shared memory of a block.
        arguments: The positions of its arrays, in the parameters followed by the workspaces.
        scalars: The integers that follow the arrays and the tensors, with their types.
        tensors: The tensors that follow the arrays.
    """

    kernel: str
    grid: Extents
    block: Extents
    shared_bytes: int
    arguments: tuple[int, ...]
    scalars: tuple[tuple[DType, int], ...] = ()
    tensors: tuple[TensorArgument, ...] = ()

    @property
    def arrays(self) -> tuple[int, ...]:
        """Return the positions of all arrays that it uses."""
        return (*self.arguments, *(tensor.array for tensor in self.tensors))


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """The launches of a call in their order, and the arrays in global memory that they need."""

    launches: tuple[KernelLaunch, ...]
    workspaces: tuple[Param, ...] = ()

    @property
    def workspace_bytes(self) -> int:
        """Return the size of all workspaces."""
        return sum(workspace.size_bytes for workspace in self.workspaces)

    def require_arrays(self, num_params: int) -> None:
        """Require that each launch uses arrays that a call has.

        Raises:
            ArtifactError: If one uses another.
        """
        num_arrays = num_params + len(self.workspaces)
        for launch in self.launches:
            if not all(0 <= position < num_arrays for position in launch.arrays):
                raise ArtifactError(
                    f"the GPU code is damaged: {launch.kernel} takes the arrays "
                    f"{list(launch.arrays)} of {num_arrays}"
                )


def launch_plan(program: DeviceProgram) -> LaunchPlan:
    """Return how to run a device program."""
    kernels = {kernel.name: kernel for kernel in program.kernels}
    buffers = (*program.params, *program.workspaces)
    positions = {buffer: position for position, buffer in enumerate(buffers)}

    def planned(launch: Launch) -> KernelLaunch:
        kernel = kernels[launch.kernel]
        arguments = tuple(positions[buffer] for buffer in kernel.buffers)
        return KernelLaunch(
            kernel.name,
            kernel.grid,
            kernel.block,
            kernel.shared_bytes,
            arguments,
            _typed(kernel, launch.scalars),
            tuple(
                TensorArgument(
                    positions[tensor.buffer],
                    tensor.buffer.dtype,
                    static_shape(tensor.buffer),
                    tensor.box,
                )
                for tensor in kernel.tensors
            ),
        )

    workspaces = tuple(
        Param(buffer.name, static_shape(buffer), buffer.dtype, is_output=False)
        for buffer in program.workspaces
    )
    return LaunchPlan(tuple(map(planned, program.launches)), workspaces)


def _typed(kernel: DeviceKernel, values: tuple[int, ...]) -> tuple[tuple[DType, int], ...]:
    return tuple((dtype_of(var), value) for var, value in zip(kernel.scalars, values, strict=True))


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """The code of an artifact for a GPU.

    Attributes:
        plan: The launches of a call.
        cubin: The machine code of all kernels.
        ptx: The code of the virtual machine, which the emulator runs.
        resources: The resources by kernel.
    """

    plan: LaunchPlan
    cubin: bytes
    ptx: str
    resources: Mapping[str, KernelResources]

    @classmethod
    def of(cls, plan: LaunchPlan, compiled: CompiledSource) -> DeviceCode:
        """Return the code of a compiled source text."""
        return cls(plan, compiled.cubin, compiled.ptx, compiled.resources)

    def to_bytes(self) -> bytes:
        """Return the code as bytes; equal code gives equal bytes."""
        ptx = self.ptx.encode()
        header = {
            "launches": [asdict(launch) for launch in self.plan.launches],
            "workspaces": [workspace.to_json() for workspace in self.plan.workspaces],
            "resources": {name: asdict(used) for name, used in sorted(self.resources.items())},
            "cubin_bytes": len(self.cubin),
            "ptx_bytes": len(ptx),
        }
        text = json.dumps(header).encode()
        return b"".join((_MAGIC, _LENGTH.pack(len(text)), text, self.cubin, ptx))

    @classmethod
    def from_bytes(cls, content: bytes) -> DeviceCode:
        """Parse the bytes of `to_bytes`.

        Raises:
            ArtifactError: If the bytes are something else, are damaged, or have another version.
        """
        if not content.startswith(_MAGIC):
            raise ArtifactError(f"not GPU code of format {FORMAT_VERSION}: {content[:8]!r}")
        try:
            start = len(_MAGIC) + _LENGTH.size
            (length,) = _LENGTH.unpack_from(content, len(_MAGIC))
            header = json.loads(content[start : start + length])
            cubin_start = start + length
            ptx_start = cubin_start + int(header["cubin_bytes"])
            end = ptx_start + int(header["ptx_bytes"])
            if end != len(content):
                raise ValueError(f"{len(content)} bytes instead of {end}")
            resources = {
                name: KernelResources(**used) for name, used in header["resources"].items()
            }
            cubin, ptx = content[cubin_start:ptx_start], content[ptx_start:end].decode()
            return cls(_plan(header), cubin, ptx, resources)
        except _MALFORMED as error:
            raise ArtifactError(f"the GPU code is damaged: {error}") from error


def _plan(header: Mapping[str, Any]) -> LaunchPlan:
    launches = tuple(
        KernelLaunch(
            kernel=str(launch["kernel"]),
            grid=_extents(launch["grid"]),
            block=_extents(launch["block"]),
            shared_bytes=int(launch["shared_bytes"]),
            arguments=tuple(map(int, launch["arguments"])),
            scalars=tuple((dtype, int(value)) for dtype, value in launch["scalars"]),
            tensors=tuple(
                TensorArgument(
                    array=int(tensor["array"]),
                    dtype=tensor["dtype"],
                    shape=tuple(map(int, tensor["shape"])),
                    box=tuple(map(int, tensor["box"])),
                )
                for tensor in launch["tensors"]
            ),
        )
        for launch in header["launches"]
    )
    workspaces = tuple(
        Param(w["name"], tuple(map(int, w["shape"])), w["dtype"], is_output=False)
        for w in header["workspaces"]
    )
    return LaunchPlan(launches, workspaces)


def _extents(values: list[int]) -> Extents:
    x, y, z = map(int, values)
    return x, y, z
