"""Which iterators of a block are those of an intrinsic, whatever the layouts of its arrays are.

A convolution is a product of matrices whose rows are its images, rows and columns. An iterator of
the block goes with the iterator of the description that has its kind and indexes the same buffers:

    conv[n, h, w, c] += X[n, h + rh, w + rw, rc] * W[rh, rw, rc, c]    n, h, w go with i; c with j;
    C[i, j]          += A[i, k]                  * B[k, j]             rh, rw, rc with k

`transform_block_layout` by the map that fuses those that go together gives the block the iterators
of the description. Iterators that index all buffers, such as the number of a matrix in a batch, go
with none, and come first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from compiler.ir.arith.iter_map import variables
from compiler.ir.arith.simplify import simplify
from compiler.ir.core.nodes import BinOp, Block, Buffer, Expr, IntImm, Load, Store, Var
from compiler.ir.core.visit import operands_of, same_operation
from compiler.schedule.index.index_map import IndexMap

_Accesses = list[tuple[Store | Load, Store | Load]]


def map_iterators(block: Block, described: Block) -> IndexMap | None:
    """Return the map that gives a block the iterators of a description; None if there is none.

    The map is unique: an iterator that may go with several of the description has no partner.
    """
    accesses = _same_accesses(block, described)
    if accesses is None:
        return None
    ours = _buffers_indexed(block, [mine for mine, _ in accesses])
    theirs = _buffers_indexed(described, [other for _, other in accesses])
    fused: dict[Var, Expr] = {}
    alone: list[Expr] = []
    params = {iterator.var: Var(iterator.var.name) for iterator in block.iter_vars}
    for iterator in block.iter_vars:
        partners = [
            other.var
            for other in described.iter_vars
            if other.kind == iterator.kind and theirs[other.var] == ours[iterator.var]
        ]
        if len(partners) > 1 or not isinstance(iterator.extent, IntImm):
            return None
        param = params[iterator.var]
        if not partners:
            alone.append(param)
        elif partners[0] in fused:
            size = IntImm(iterator.extent.value)
            fused[partners[0]] = BinOp("+", BinOp("*", fused[partners[0]], size), param)
        else:
            fused[partners[0]] = param
    if len(fused) != len(described.iter_vars):
        return None
    results = [simplify(fused[iterator.var]) for iterator in described.iter_vars]
    return IndexMap(tuple(params.values()), (*alone, *results))


def _same_accesses(block: Block, described: Block) -> _Accesses | None:
    """Return the accesses of two blocks in pairs, if the blocks compute the same otherwise."""
    ours, theirs = block.body, described.body
    if not (isinstance(ours, Store) and isinstance(theirs, Store)):
        return None
    accesses: _Accesses = [(ours, theirs)]
    if not _is_same(ours.value, theirs.value, accesses):
        return None
    buffers: dict[Buffer, Buffer] = {}
    for mine, other in accesses:
        if buffers.setdefault(other.buffer, mine.buffer) != mine.buffer:
            return None
    return accesses if len(set(buffers.values())) == len(buffers) else None


def _is_same(ours: Expr, theirs: Expr, accesses: _Accesses) -> bool:
    """Compare values but for the indices of their loads, which are added to the accesses."""
    if isinstance(ours, Load) and isinstance(theirs, Load):
        accesses.append((ours, theirs))
        return ours.buffer.dtype == theirs.buffer.dtype
    operands = operands_of(ours), operands_of(theirs)
    return same_operation(ours, theirs) and all(
        _is_same(a, b, accesses) for a, b in zip(*operands, strict=True)
    )


def _buffers_indexed(block: Block, accesses: list[Store | Load]) -> Mapping[Var, set[int]]:
    """Return which accesses the iterators of a block index, by number."""
    uses: dict[Var, set[int]] = {iterator.var: set() for iterator in block.iter_vars}
    for number, access in enumerate(accesses):
        for var in _used_by(access, block):
            uses[var].add(number)
    return uses


def _used_by(access: Store | Load, block: Block) -> Iterator[Var]:
    """Yield the iterators that move an access."""
    # An iterator of a single value counts, too: it has a place in the map.
    extents = {
        iterator.var: max(2, iterator.extent.value)
        for iterator in block.iter_vars
        if isinstance(iterator.extent, IntImm)
    }
    for index in access.indices:
        yield from variables(simplify(index, extents)) & extents.keys()
