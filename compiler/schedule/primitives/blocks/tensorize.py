"""Replace the computation of a block or loop by a tensor intrinsic: `tensorize`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from compiler.ir.arith.affine import Affine
from compiler.ir.arith.iter_map import Extents
from compiler.ir.arith.simplify import normal
from compiler.ir.core.nodes import (
    Annotations,
    Block,
    BlockRealize,
    Buffer,
    BufferRegion,
    For,
    IntImm,
    IterVar,
    MatchBuffer,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import Refuse, ScheduleError, refusal
from compiler.schedule.intrinsics.match_description import MatchedBuffer, Matcher, MismatchError
from compiler.schedule.intrinsics.tensor_intrin import TensorIntrin
from compiler.schedule.legality.placed_block import scope_extents
from compiler.schedule.primitives.blocks.blockize import blockize
from compiler.schedule.rewrite.renew import renewed_block
from compiler.schedule.tree.tree import (
    Path,
    block_path,
    blocks,
    child_blocks,
    extents_of,
    loop_path,
    loops_below,
    loops_on,
    realize_at,
    replace_at,
    with_block,
)


def tensorize(
    func: PrimFunc, target: Var | str, intrin: TensorIntrin, *, preserve_unit_iters: bool = True
) -> PrimFunc:
    """Replace the computation of a block, or of a loop, by a tensor intrinsic.

    Args:
        target: The name of a block, or a loop, which becomes a block first (see
            `compiler.schedule.primitives.blocks.blockize`).
        intrin: The intrinsic: a description to match, and an implementation to insert.
        preserve_unit_iters: As for `blockize`.

    Requires:
        The block matches the description: the same loops, blocks and values. Each buffer of the
        description is a box of one of the program's, of the same type and memory scope; a buffer
        with more dimensions has fixed indices in the leading ones. No buffer that is written stands
        for two. The boxes have the offsets and the strides that the implementation requires. The
        block has no views yet.

        If the block has an init (moved out of its loops), so has the description, and the block
        holds the whole reduction.

    Rewrites:
        with block(C_o):                        with block(C_o):
            for i in range(8):         ->           C_1 = match_buffer(C[v_o * 8:v_o * 8 + 8])
                with block(C):                      C_1[0:8] = ...
                    C[v_o * 8 + i] = ...

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("tensorize", func)
    if isinstance(target, Var):
        at = loop_path(func, target, refuse)[-1]
        func, target = blockize(
            func, target, preserve_unit_iters=preserve_unit_iters, refuse=refuse
        )
    else:
        at = block_path(func, target, refuse)[-1]
        if at is func.body:
            raise refuse(f'"{target}" is the root block: it holds the program', func, "structure")
    tensorized = _TensorizedBlock(func, block_path(func, target, refuse), at, refuse)
    block = tensorized.block
    if block.match_buffers:
        raise tensorized.error(f"block {block.name} has views already")
    impl = _implementation(tensorized, intrin, _matched(tensorized, intrin.desc))
    new = replace(
        block,
        body=impl.body,
        init=None,
        alloc_buffers=(*block.alloc_buffers, *impl.alloc_buffers),
        annotations=_merged(block.annotations, impl.annotations),
        match_buffers=impl.match_buffers,
    )
    return replace_at(func, tensorized.path, with_block(realize_at(tensorized.path), new))


@dataclass(frozen=True)
class _TensorizedBlock:
    """The block to replace by an intrinsic; errors mark `at`, a node of the old program."""

    func: PrimFunc
    path: Path
    at: object
    refuse: Refuse

    @property
    def block(self) -> Block:
        """Return the block."""
        return realize_at(self.path).block

    @cached_property
    def extents(self) -> Extents:
        """Return the extents of all variables around the body of the block."""
        extents = dict(extents_of(loops_on(self.path)))
        for stmt in self.path:
            if isinstance(stmt, BlockRealize):
                extents.update(scope_extents(stmt))
        return extents

    def error(self, reason: str) -> ScheduleError:
        """Return the error for a reason."""
        return self.refuse(reason, self.at, "intrinsic_mismatch")


def _matched(target: _TensorizedBlock, desc: PrimFunc) -> Mapping[Buffer, MatchedBuffer]:
    """Return the regions that the description's buffers match."""
    block = target.block
    description = desc.root if block.init is None else _outer_description(desc)
    if description is None:
        reason = f"block {block.name} has an init, and the intrinsic has none"
        raise target.error(f"{reason}: decompose the reduction first")
    if block.init is not None and any(i.kind != "spatial" and _repeats(i) for i in block.iter_vars):
        reason = f"block {block.name} holds a part of its reduction only, and the intrinsic"
        raise target.error(f"{reason} initialises, too: decompose the reduction first")
    matcher = Matcher(desc.buffers, target.extents)
    try:
        matcher.block_body(block, description)
    except MismatchError as error:
        reason = f"block {block.name} is not what the intrinsic computes: {error}"
        raise target.error(reason) from None
    _require_disjoint_matches(target, matcher.places, desc)
    return matcher.places


def _repeats(iter_var: IterVar) -> bool:
    return not (isinstance(iter_var.extent, IntImm) and iter_var.extent.value == 1)


def _outer_description(desc: PrimFunc) -> Block | None:
    """Return a description with its init before its loops; None if it has no init."""
    below = list(child_blocks(desc.body))
    loops: list[For] = list(loops_below(desc.body))
    if len(below) != 1 or below[0].block.init is None or not loops:
        return None
    blockized, name = blockize(desc, loops[0].var, preserve_unit_iters=False)
    return realize_at(block_path(blockized, name, refusal("tensorize", blockized))).block


def _require_disjoint_matches(
    target: _TensorizedBlock, matched_buffers: Mapping[Buffer, MatchedBuffer], desc: PrimFunc
) -> None:
    written = {region.buffer for child in child_blocks(desc.body) for region in child.block.writes}
    for buffer, matched in matched_buffers.items():
        for other, other_matched in matched_buffers.items():
            if other != buffer and matched.buffer == other_matched.buffer and buffer in written:
                names = f"{buffer.name}, which the intrinsic writes, and its {other.name}"
                raise target.error(f"{matched.buffer.name} would be both {names}")


# The implementation


def _implementation(
    target: _TensorizedBlock, intrin: TensorIntrin, places: Mapping[Buffer, MatchedBuffer]
) -> Block:
    """Return the root of a copy of the implementation, with views of the program's buffers."""
    views: list[MatchBuffer] = []
    for theirs, buffer in zip(intrin.desc.buffers, intrin.impl.buffers, strict=True):
        source = places[theirs].region(buffer.shape)
        problem = _view_problem(buffer, source, target.extents)
        if problem is not None:
            raise target.error(f"{buffer.name} of the intrinsic {problem}")
        views.append(MatchBuffer(buffer, source))
    root = _outermost(intrin.impl)
    viewed_root = replace(root, match_buffers=(*views, *root.match_buffers))
    return renewed_block(viewed_root, {realize.block.name for realize in blocks(target.func)})


def _outermost(impl: PrimFunc) -> Block:
    """Return the block that has the body of an implementation: of a call, not its root."""
    root, body = impl.root, impl.root.body
    if not isinstance(body, BlockRealize) or body.iter_values or body.block.name != root.name:
        return root
    return replace(body.block, alloc_buffers=(*root.alloc_buffers, *body.block.alloc_buffers))


def _view_problem(buffer: Buffer, source: BufferRegion, extents: Extents) -> str | None:
    """Return the property that a view requires and its source lacks; None if there is none."""
    strides = _strides(source.buffer)
    if strides is None:
        if buffer.strides or buffer.elem_offset is not None or buffer.offset_factor > 1:
            return f"requires strides or an offset, and those of {source.buffer.name} are unknown"
        return None
    box_strides = strides[len(strides) - len(buffer.shape) :]
    for promised, stride in zip(buffer.strides, box_strides, strict=False):
        if isinstance(promised, IntImm) and promised.value != stride:
            return f"has a stride of {promised.value}: in {source.buffer.name} it is {stride}"
    offset = Affine((), 0)
    for r, stride in zip(source.region, strides, strict=True):
        offset += normal(r.minimum, extents).scaled(stride)
    if isinstance(buffer.elem_offset, IntImm) and (
        offset.terms or offset.const != buffer.elem_offset.value
    ):
        return f"begins at {buffer.elem_offset.value}: its box in {source.buffer.name} does not"
    factor = buffer.offset_factor
    if factor > 1 and any(part % factor for part in (offset.const, *(c for _, c in offset.terms))):
        where = f"its box in {source.buffer.name} is not proved to"
        return f"begins at a multiple of {factor}: {where}"
    return None


def _strides(buffer: Buffer) -> list[int] | None:
    """Return the strides of a buffer in elements, if they are known."""
    strides: list[int] = []
    if buffer.strides or buffer.elem_offset is not None:
        return None
    stride = 1
    for extent in reversed(buffer.shape):
        strides.append(stride)
        if not isinstance(extent, IntImm):
            return None
        stride *= extent.value
    return strides[::-1]


def _merged(existing: Annotations, more: Annotations) -> Annotations:
    """Return annotations together with others whose keys are not set."""
    existing_keys = {key for key, _ in existing}
    return (*existing, *(item for item in more if item[0] not in existing_keys))
