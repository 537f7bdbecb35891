"""Programs of a device: kernels without blocks and bound loops, and the launches of them.

for bx in 4:  # blockIdx.x             DeviceKernel(grid=(4, 1, 1), block=(256, 1, 1)):
    for tx in 256:  # threadIdx.x    ->       B[bx * 256 + tx] = A[bx * 256 + tx] + 1
        B[...] = A[...] + 1
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compiler.ir.core.nodes import Buffer, Call, Load, Stmt, Var, static_int

Extents = tuple[int, int, int]
"""The numbers of blocks or threads along x, y and z."""


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of a kernel, such as `blockIdx.x` or `threadIdx.y`, and the variable on it."""

    thread: str
    var: Var
    extent: int


@dataclass(frozen=True, slots=True)
class TensorBox:
    """A tensor in global memory, and the box of it that one copy of the copy engine moves.

    Elements outside of the tensor are zeros. In shared memory the rows of a box are swizzled by
    128 bytes, which is the length of a row.
    """

    buffer: Buffer
    box: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DeviceKernel:
    """A kernel: what each of its threads runs.

    Attributes:
        name: Its name in the source code, which no other kernel of the program has.
        axes: The axes with more than one block or thread, blocks first, each from z to x. A kernel
            without axes has one thread.
        buffers: The global buffers that it uses by address, in the order of its arguments.
        written: Those of them that it writes.
        tensors: Its tensors that the copy engine reads: arguments after the buffers.
        scalars: Its integer arguments, the last ones; each launch gives their values.
        body: The work of one thread. Loops are serial, unrolled or vectorized ("parallel" ones
            count as serial); a loop over virtual threads is unrolled. No loop is bound.
            `tvm_storage_sync` is a barrier of the threads of a block. `Allocate` introduces memory
            of a thread (scope "local"), fragments of a warp (scopes "wmma.*"), and memory of a
            block (scopes "shared", "shared.dyn"): the same for all threads, and at
            `shared_offsets`, wherever the allocation stands. Besides the functions of programs it
            calls `shuffle_xor(value, distance)` (the value of another lane), and
            `pack_float16(low, high)` or `pack_bfloat16` (two rounded numbers), and for their effect
            `async_copy(target, source, size_bytes[, condition])` (the first elements as loads),
            `async_commit_group()` and `async_wait_group(in_flight)`, and what the rings of
            warpgroups need (`compiler/passes/device/fragments/operand_ring.py`).
        shared_offsets: The position of each shared buffer in the shared memory of a block, in
            bytes. Two buffers that are not used at the same time may overlap.
        shared_bytes: The size of that memory.
    """

    name: str
    axes: tuple[Axis, ...]
    buffers: tuple[Buffer, ...]
    written: frozenset[Buffer]
    scalars: tuple[Var, ...]
    body: Stmt
    shared_offsets: Mapping[Buffer, int]
    shared_bytes: int
    tensors: tuple[TensorBox, ...] = ()

    @property
    def grid(self) -> Extents:
        """Return the numbers of blocks."""
        return self._extents("blockIdx")

    @property
    def block(self) -> Extents:
        """Return the numbers of threads of a block."""
        return self._extents("threadIdx")

    def _extents(self, prefix: str) -> Extents:
        extents = {axis.thread: axis.extent for axis in self.axes}
        x, y, z = (extents.get(f"{prefix}.{letter}", 1) for letter in "xyz")
        return x, y, z


def tensor_box(copy: Call) -> TensorBox:
    """Return what `tensor_copy(target, source, barrier, *box)` moves."""
    _, source, _, *box = copy.args
    assert isinstance(source, Load)
    return TensorBox(source.buffer, tuple(map(static_int, box)))


@dataclass(frozen=True, slots=True)
class Launch:
    """One run of a kernel, with the values of its integer arguments."""

    kernel: str
    scalars: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceProgram:
    """A whole program of a device: its launches run one after another.

    Attributes:
        params: The buffers that a caller passes.
        workspaces: Buffers in global memory that live during a call. What they hold at first is
            arbitrary.
        kernels: Each kernel once, in the order of the first launches.
        launches: At most a few thousand.
    """

    params: tuple[Buffer, ...]
    workspaces: tuple[Buffer, ...]
    kernels: tuple[DeviceKernel, ...]
    launches: tuple[Launch, ...]
