"""Matrix products scheduled for tensor cores, by schedule primitives alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compiler import te
from compiler.backends.cuda.nvrtc import compile_cuda
from compiler.backends.cuda.text.emit import emit_cuda
from compiler.backends.emulator.emulate import emulate
from compiler.backends.emulator.report import EmulationReport
from compiler.ir.core.dtypes import size_bytes
from compiler.ir.core.nodes import static_shape
from compiler.ir.core.program import PrimFunc
from compiler.passes.device.lower import lower_for_device
from compiler.runtime.resources import KernelResources
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.handle import BlockRV
from compiler.target.gpus import ARCHS
from compiler.target.tensor_cores import MMA_INSTRUCTIONS, MmaInstruction
from compiler.te.value import Value

BF16 = MMA_INSTRUCTIONS["mma.m16n8k16.bf16.f32"]
NAMES = {"float16": "f16", "float32": "f32", "int32": "s32"}


@dataclass(frozen=True)
class Tiles:
    """The tiles of a block of threads and of a warp; B may be stored as n rows.

    The intrinsics are of one instruction each ("mma"), or of 16 by 16 by 16 elements ("wmma").
    """

    block: tuple[int, int, int] = (64, 64, 32)
    warp: tuple[int, int] = (32, 32)
    is_b_transposed: bool = False
    vector_bytes: int = 16
    family: str = "mma"
    is_swizzled: bool = False

    @property
    def num_warps(self) -> int:
        return self.block[0] // self.warp[0] * (self.block[1] // self.warp[1])


def matmul(
    shape: tuple[int, int, int], instruction: MmaInstruction, *, is_b_transposed: bool = False
) -> PrimFunc:
    """Return the program of a product of m by k and k by n (or n by k) matrices."""
    m, n, k = shape
    dtype, sums = instruction.operand, instruction.accumulator
    a = te.placeholder((m, k), dtype, name="A")
    b = te.placeholder((n, k) if is_b_transposed else (k, n), dtype, name="B")
    r = te.reduce_axis((0, k), name="k")

    def term(i: Value, j: Value) -> Value:
        left, right = a[i, r], b[j, r] if is_b_transposed else b[r, j]
        return left.astype(sums) * right.astype(sums) if dtype != sums else left * right

    c = te.compute((m, n), lambda i, j: te.sum(term(i, j), axis=r), name="C")
    return te.create_prim_func([a, b, c])


def scheduled(
    shape: tuple[int, int, int], instruction: MmaInstruction = BF16, tiles: Tiles = Tiles()
) -> Schedule:
    """Schedule a product: warps multiply fragments of tiles that a block copies together."""
    transposed = tiles.is_b_transposed
    sch = Schedule(matmul(shape, instruction, is_b_transposed=transposed))
    shape_of_tile = (16, 16, 16) if tiles.family == "wmma" else instruction.shape
    size, family = "x".join(map(str, shape_of_tile)), tiles.family
    operand, sums = instruction.ptx_types[1], NAMES[instruction.accumulator]
    mma_m, mma_n, mma_k = shape_of_tile
    block_m, block_n, block_k = tiles.block
    warp_m, warp_n = tiles.warp
    c = sch.get_block("C")
    out = sch.cache_write(c, 0, "wmma.accumulator")
    i, j, k = sch.get_loops(c)
    bi, wi, mi, ii = sch.split(i, [None, block_m // warp_m, warp_m // mma_m, mma_m])
    bj, wj, mj, jj = sch.split(j, [None, block_n // warp_n, warp_n // mma_n, mma_n])
    ko, km, kk = sch.split(k, [None, block_k // mma_k, mma_k])
    sch.reorder(bi, bj, wi, wj, ko, km, mi, mj, ii, jj, kk)
    sch.bind(bi, "blockIdx.y")
    sch.bind(bj, "blockIdx.x")
    warp = sch.fuse(wi, wj)
    sch.bind(warp, "threadIdx.y")
    sch.reverse_compute_at(out, warp)
    _tensorize_tile(sch, out, (mma_m, mma_n), f"{family}_store_{size}_{sums}_global")
    b_tile = (mma_n, mma_k) if transposed else (mma_k, mma_n)
    for index, scope, tile, operand_name in (
        (0, "wmma.matrix_a", (mma_m, mma_k), "a"),
        (1, "wmma.matrix_b", b_tile, "b_trans" if transposed else "b"),
    ):
        fragment = sch.cache_read(c, index, scope)
        sch.compute_at(fragment, km)
        shared = sch.cache_read(fragment, 0, "shared")
        sch.compute_at(shared, ko)
        _share_copy(sch, shared, instruction, tiles)
        if tiles.is_swizzled:
            sch.annotate(shared, "permuted_layout", 1)
        _tensorize_tile(
            sch, fragment, tile, f"{family}_load_{size}_{operand}_{operand_name}_shared"
        )
    init = sch.decompose_reduction(c, ko)
    sch.tensorize(sch.get_loops(init)[-2], f"{family}_fill_{size}_{sums}")
    sync = f"{family}_sync_{size}_{operand}{operand}{sums}"
    sch.tensorize(ii, f"{sync}_trans" if transposed else sync)
    return sch


def _share_copy(sch: Schedule, block: BlockRV, instruction: MmaInstruction, tiles: Tiles) -> None:
    """Let all threads of a block copy a tile together, with vectors."""
    element_bytes = size_bytes(instruction.operand)
    fused = sch.fuse(*sch.get_loops(block)[-2:])
    _, warp, lane, vector = sch.split(
        fused, [None, tiles.num_warps, 32, tiles.vector_bytes // element_bytes]
    )
    sch.vectorize(vector)
    sch.bind(warp, "threadIdx.y")
    sch.bind(lane, "threadIdx.x")


def _tensorize_tile(sch: Schedule, block: BlockRV, tile: tuple[int, int], intrin: str) -> None:
    """Tile the last two loops of a copy, and let an intrinsic copy each tile."""
    rows, columns = sch.get_loops(block)[-2:]
    row, row_in_tile = sch.split(rows, [None, tile[0]])
    column, column_in_tile = sch.split(columns, [None, tile[1]])
    sch.reorder(row, column, row_in_tile, column_in_tile)
    sch.tensorize(row_in_tile, intrin)


@dataclass(frozen=True)
class EmulatedProduct:
    """The result of an emulated kernel, the exact one, and how the kernel ran."""

    result: np.ndarray
    expected: np.ndarray
    report: EmulationReport
    resources: KernelResources


def emulate_product(
    func: PrimFunc,
    instruction: MmaInstruction = BF16,
    *,
    is_b_transposed: bool = False,
    arch: str = "sm_80",
) -> EmulatedProduct:
    """Compile a product for a GPU, and run it on the CPU for small whole numbers."""
    program = lower_for_device(func, ARCHS[arch])
    compiled = compile_cuda(emit_cuda(program), arch)
    (kernel,) = program.kernels
    shapes = [static_shape(buffer) for buffer in func.buffers]
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape) for shape in shapes[:2])
    c = np.zeros(shapes[2], func.buffers[2].dtype)
    arrays = [array.astype(instruction.operand) for array in (a, b)]
    report = emulate(
        compiled.ptx,
        kernel.name,
        kernel.grid,
        kernel.block,
        [*arrays, c],
        dynamic_shared_bytes=kernel.shared_bytes,
    )
    expected = a @ (b.T if is_b_transposed else b)
    return EmulatedProduct(c, expected, report, compiled.resources[kernel.name])
