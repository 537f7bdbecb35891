"""Matrix products scheduled for warpgroups (wgmma with TMA), by schedule primitives alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compiler import te
from compiler.ir.core.dtypes import DType
from compiler.ir.core.program import PrimFunc
from compiler.schedule.schedule import Schedule
from compiler.te.value import Value


@dataclass(frozen=True)
class Layout:
    """The types of a product, and whether its operands are stored transposed."""

    operand: DType = "bfloat16"
    is_a_transposed: bool = False
    is_b_transposed: bool = False
    num_batches: int = 0


@dataclass(frozen=True)
class RingTiles:
    """The sums of a block, the warpgroups that share its rows, and the stages of its pipeline.

    With `blocks`, so many blocks compute all tiles, several one after another.
    """

    block: tuple[int, int] = (64, 64)
    consumers: int = 1
    stages: int = 2
    blocks: int = 0


PLAIN = Layout()
SMALLEST = RingTiles()


def matmul(
    shape: tuple[int, int, int],
    layout: Layout = PLAIN,
    epilogue: Callable[[Value, Value], Value] | None = None,
) -> PrimFunc:
    """Return a product of m by k and k by n matrices with sums of float32.

    Args:
        shape: The extents m, n and k.
        layout: The types and the order of the dimensions.
        epilogue: From a sum and a bias of its column to an element of the result, a bfloat16.
    """
    m, n, k = shape
    batch = (layout.num_batches,) if layout.num_batches else ()
    a_shape = (k, m) if layout.is_a_transposed else (m, k)
    b_shape = (n, k) if layout.is_b_transposed else (k, n)
    a = te.placeholder((*batch, *a_shape), layout.operand, name="A")
    b = te.placeholder((*batch, *b_shape), layout.operand, name="B")
    r = te.reduce_axis((0, k), name="k")

    def term(*at: Value) -> Value:
        *outer, i, j = at
        left = a[*outer, r, i] if layout.is_a_transposed else a[*outer, i, r]
        right = b[*outer, j, r] if layout.is_b_transposed else b[*outer, r, j]
        return left.astype("float32") * right.astype("float32")

    c = te.compute((*batch, m, n), lambda *at: te.sum(term(*at), axis=r), name="C")
    if epilogue is None:
        return te.create_prim_func([a, b, c])
    bias = te.placeholder((n,), "float32", name="bias")
    d = te.compute(
        (*batch, m, n), lambda *at: epilogue(c[at], bias[at[-1]]).astype("bfloat16"), name="D"
    )
    return te.create_prim_func([a, b, bias, d])


def scheduled(func: PrimFunc, tiles: RingTiles = SMALLEST) -> Schedule:
    """Schedule a product: the whole reduction of a tile is one instruction of warpgroups."""
    sch = Schedule(func)
    block = sch.get_block("C")
    names = {b.name for b in func.buffers}
    if "D" in names:
        sch.set_scope(block, 0, "wmma.accumulator")
        out = sch.get_block("D")
    else:
        out = sch.cache_write(block, 0, "wmma.accumulator")
    *outer, i, j, k = sch.get_loops(block)
    block_m, block_n = tiles.block
    bi, wi, ii = sch.split(i, [None, tiles.consumers, block_m // tiles.consumers])
    bj, jj = sch.split(j, [None, block_n])
    sch.reorder(*outer, bi, bj, wi, ii, jj, k)
    tile = sch.fuse(*outer, bi, bj)
    if tiles.blocks:
        turn, tile = sch.split(tile, [None, tiles.blocks])
        sch.reorder(tile, turn)
    sch.bind(tile, "blockIdx.x")
    sch.bind(wi, "threadIdx.y")
    sch.reverse_compute_at(out, wi)
    sch.decompose_reduction(block, ii)
    operand = {"bfloat16": "bf16", "float16": "f16"}[func.buffers[0].dtype]
    sch.annotate(ii, "device_instruction", f"wgmma.m64nNk16.{operand}.f32")
    sch.annotate(ii, "wgmma_stages", tiles.stages)
    return sch
