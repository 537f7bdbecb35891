"""Facts about a block for rules and features: its axes, its accesses, its arithmetic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod

from compiler.ir.arith.affine import affine
from compiler.ir.arith.simplify import canonical
from compiler.ir.core.dtypes import is_float, size_bytes
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    BinOp,
    Block,
    BlockRealize,
    Buffer,
    Call,
    Conditional,
    Expr,
    For,
    IntImm,
    Let,
    Load,
    Seq,
    Stmt,
    Store,
    Var,
    static_shape,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import walk
from tuner.space.analysis.operations import Operations, operations


@dataclass(frozen=True)
class IterAxis:
    """A block iterator together with the loop that drives it."""

    name: str
    extent: int
    is_reduction: bool


@dataclass(frozen=True)
class TensorAccess:
    """An array element that a block accesses at each point.

    `coefficients[d][a]` is the growth of index `d` with axis `a`. For an index that is not linear
    it is approximate, and `is_affine` is false. If the address is linear nevertheless, such as that
    of `A[p // 7, p % 7]` in rows of 7 elements, `linear_strides` are its strides. If an index grows
    with a quotient, such as that of `A[c // 24 * 24 + k]`, `divisors[d][a]` is its divisor, and 1
    elsewhere: the 24 channels of a group read the same elements.
    """

    buffer: str
    shape: tuple[int, ...]
    item_bytes: int
    coefficients: tuple[tuple[int, ...], ...]
    is_affine: bool
    linear_strides: tuple[int, ...] | None = None
    divisors: tuple[tuple[int, ...], ...] | None = None

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """Return the distance in memory, in elements, between neighbours along each axis."""
        if self.linear_strides is not None:
            return self.linear_strides
        steps = [prod(self.shape[d + 1 :]) for d in range(len(self.shape))]
        columns = zip(*self.coefficients, strict=True)
        return tuple(sum(s * c for s, c in zip(steps, column, strict=True)) for column in columns)

    @property
    def size_bytes(self) -> int:
        """Return the size of the whole buffer in bytes."""
        return prod(self.shape) * self.item_bytes


@dataclass(frozen=True)
class BlockFacts:
    """A block with one store, under separate loops that drive its iterators one by one.

    `reads` hold each element that is read, once, without the accumulator of a reduction, largest
    buffer first. `axes` are in the order of the loops.
    """

    name: str
    axes: tuple[IterAxis, ...]
    write: TensorAccess
    reads: tuple[TensorAccess, ...]
    flops_per_point: int
    is_conditional: bool
    operations: Operations = field(default_factory=Operations)

    @property
    def is_reduction(self) -> bool:
        """Return whether some axis is reduced over."""
        return any(a.is_reduction for a in self.axes)

    @property
    def is_affine(self) -> bool:
        """Return whether all indices are linear in the axes."""
        return self.write.is_affine and all(r.is_affine for r in self.reads)

    @property
    def is_multiply_add(self) -> bool:
        """Return whether a point adds one product to a sum, of floats or of integers."""
        return self.flops_per_point == 2 or (
            self.flops_per_point == 0 and self.operations.integer == 2
        )

    @property
    def points(self) -> int:
        """Return the number of runs of the body."""
        return prod(a.extent for a in self.axes)

    @cached_property
    def vector_axis(self) -> int | None:
        """Return the spatial axis to vectorize: the output is contiguous along it.

        Inputs are contiguous or constant along it, too; or gathered elements are reused along
        another spatial axis. None if there is no such axis.
        """
        for index, axis in enumerate(self.axes):
            if not axis.is_reduction and self.write.strides[index] == 1:
                gathered = [r for r in self.reads if r.strides[index] not in (0, 1)]
                return index if all(self._is_reused(r) for r in gathered) else None
        return None

    @cached_property
    def lane_axis(self) -> int | None:
        """Return the reduction axis to sum along in lanes: all reads are contiguous along it.

        None if a spatial axis suits vectors, or if there is no such axis.
        """
        if self.vector_axis is not None or self.is_conditional or not self.is_affine:
            return None
        for index in reversed(range(len(self.axes))):
            steps = {read.strides[index] for read in self.reads}
            if self.axes[index].is_reduction and 1 in steps and steps <= {0, 1}:
                return index
        return None

    @property
    def writes_rows(self) -> bool:
        """Return whether the output is contiguous along the last axis, whatever its dimensions."""
        is_linear = self.write.is_affine or self.write.linear_strides is not None
        return is_linear and bool(self.axes) and self.write.strides[-1] == 1

    def runs_on(self, outer: int, inner: int) -> bool:
        """Return whether two axes may be fused: the outer continues at the end of the inner."""
        extent = self.axes[inner].extent
        accesses = (self.write, *self.reads)
        return all(a.strides[outer] == extent * a.strides[inner] for a in accesses)

    def fused(self, first: int, last: int) -> BlockFacts:
        """Return the facts with one axis for those from `first` to `last`, each runs on the next.

        The dimensions that these axes index become one dimension.
        """

        def joined(access: TensorAccess) -> TensorAccess:
            shape, rows = list(access.shape), [list(row) for row in access.coefficients]
            dims = [dim for dim, row in enumerate(rows) if any(row[first : last + 1])]
            if dims:
                span = slice(dims[0], dims[-1] + 1)
                steps = [prod(shape[dim + 1 : span.stop]) for dim in range(span.start, span.stop)]
                columns = zip(*rows[span], strict=True)
                rows[span] = [
                    [sum(s * c for s, c in zip(steps, column, strict=True)) for column in columns]
                ]
                shape[span] = [prod(shape[span])]
            coefficients = tuple((*row[:first], *row[last:]) for row in rows)
            return replace(
                access,
                shape=tuple(shape),
                coefficients=coefficients,
                linear_strides=None,
                divisors=None,
            )

        extent = prod(axis.extent for axis in self.axes[first : last + 1])
        axis = IterAxis("fused", extent, self.axes[last].is_reduction)
        return replace(
            self,
            axes=(*self.axes[:first], axis, *self.axes[last + 1 :]),
            write=joined(self.write),
            reads=tuple(joined(read) for read in self.reads),
        )

    def flattened(self) -> BlockFacts:
        """Return the facts with one axis for all spatial ones, then the axes reduced over.

        Accesses along the new axis are those along the last spatial one.
        """
        spatial = [index for index, axis in enumerate(self.axes) if not axis.is_reduction]
        steps = [index for index, axis in enumerate(self.axes) if axis.is_reduction]

        def flat(access: TensorAccess) -> TensorAccess:
            strides = tuple(access.strides[index] for index in (spatial[-1], *steps))
            return replace(
                access,
                shape=(prod(access.shape),),
                coefficients=(strides,),
                linear_strides=None,
                divisors=None,
            )

        points = prod(self.axes[index].extent for index in spatial)
        fused = IterAxis("fused", points, is_reduction=False)
        return replace(
            self,
            axes=(fused, *(self.axes[index] for index in steps)),
            write=flat(self.write),
            reads=tuple(flat(read) for read in self.reads),
        )

    def _is_reused(self, read: TensorAccess) -> bool:
        return any(
            stride == 0 and axis.extent > 1 and not axis.is_reduction
            for stride, axis in zip(read.strides, self.axes, strict=True)
        )


@dataclass(frozen=True)
class BlockPosition:
    """A block directly under loops of the root, outermost loop first.

    `is_alone` means that no other block is under these loops.
    """

    loops: tuple[For, ...]
    realize: BlockRealize
    is_alone: bool = True

    @property
    def block(self) -> Block:
        """Return the block."""
        return self.realize.block


def sites(func: PrimFunc) -> list[BlockPosition]:
    """Return the blocks of the root in program order."""
    positions = list(_sites(func.root.body, ()))
    outermost = Counter(id(position.loops[0]) for position in positions if position.loops)
    return [
        replace(position, is_alone=not position.loops or outermost[id(position.loops[0])] == 1)
        for position in positions
    ]


def _sites(stmt: Stmt, loops: tuple[For, ...]) -> Iterator[BlockPosition]:
    match stmt:
        case Seq(stmts):
            for child in stmts:
                yield from _sites(child, loops)
        case For(body=body):
            yield from _sites(body, (*loops, stmt))
        case BlockRealize():
            yield BlockPosition(loops, stmt)
        case _:
            pass


def block_facts(site: BlockPosition) -> BlockFacts | None:
    """Return the facts of a block; None if it does not have the form of `BlockFacts`."""
    kinds = {iter_var.kind for iter_var in site.block.iter_vars}
    is_plain = isinstance(site.block.body, Store) and kinds <= {"spatial", "reduce"}
    return _facts(site) if is_plain else None


def special_facts(site: BlockPosition) -> BlockFacts | None:
    """Return the facts of a block that reduces to several buffers at once, or scans along an axis.

    The facts about the output are those of the first buffer; a scanned axis counts as reduced.
    """
    stores = [node for node in walk(site.block.body) if isinstance(node, Store)]
    if isinstance(site.block.body, Store) and block_facts(site) is not None:
        return None
    if not stores or any(store.indices != stores[0].indices for store in stores):
        return None
    return _facts(site)


def step_facts(site: BlockPosition) -> BlockFacts | None:
    """Return the facts of a block that shares loops with others, such as those over steps."""
    return _facts(replace(site, is_alone=True)) if isinstance(site.block.body, Store) else None


def _facts(site: BlockPosition) -> BlockFacts | None:
    block = site.block
    by_loop = dict(zip(site.realize.iter_values, block.iter_vars, strict=True))
    is_driven = len(by_loop) == len(site.loops) and all(
        loop.var in by_loop and loop.extent == by_loop[loop.var].extent for loop in site.loops
    )
    if not is_driven or not site.is_alone:
        return None
    iters = [by_loop[loop.var] for loop in site.loops]
    if not all(isinstance(i.extent, IntImm) for i in iters):
        return None
    axes = tuple(
        IterAxis(i.var.name, i.extent.value, i.kind != "spatial")
        for i in iters
        if isinstance(i.extent, IntImm)
    )
    ranges = {i.var: axis.extent for i, axis in zip(iters, axes, strict=True)}
    nodes = list(walk(block.body))
    stores = [node for node in nodes if isinstance(node, Store)]
    written = {store.buffer for store in stores}
    loads = {n: None for n in nodes if isinstance(n, Load) and n.buffer not in written}
    reads = [_access(n.buffer, n.indices, ranges) for n in loads]
    return BlockFacts(
        block.name,
        axes,
        _access(stores[0].buffer, stores[0].indices, ranges),
        tuple(sorted(dict.fromkeys(reads), key=lambda r: -r.size_bytes)),
        sum(_is_arithmetic(n) for n in nodes),
        any(isinstance(n, Conditional) for n in nodes),
        operations([n.value for n in nodes if isinstance(n, Store | Let)]),
    )


def _access(buffer: Buffer, indices: tuple[Expr, ...], ranges: Mapping[Var, int]) -> TensorAccess:
    rows: list[tuple[int, ...]] = []
    divisors: list[tuple[int, ...]] = []
    is_affine = True
    for index in indices:
        row = dict.fromkeys(ranges, 0)
        divided = dict.fromkeys(ranges, 1)
        for atom, coefficient in affine(index).terms:
            if isinstance(atom, Var):
                row[atom] = row.get(atom, 0) + coefficient
                continue
            is_affine = False
            match atom:
                case BinOp("//", Var() as dividend, IntImm(divisor)) if not row.get(dividend):
                    divided[dividend] = divisor
                case _:
                    pass
            for node in walk(atom):
                if isinstance(node, Var) and node in row:
                    row[node] = row[node] or coefficient
        rows.append(tuple(row[v] for v in ranges))
        divisors.append(tuple(divided[v] for v in ranges))
    # A buffer without dimensions is one with a single element.
    shape = static_shape(buffer) or (1,)
    rows = rows or [(0,) * len(ranges)]
    linear = None if is_affine else _linear_strides(shape, indices, ranges)
    item_bytes = size_bytes(buffer.dtype)
    has_quotients = any(divisor > 1 for row in divisors for divisor in row)
    return TensorAccess(
        buffer.name,
        shape,
        item_bytes,
        tuple(rows),
        is_affine,
        linear,
        tuple(divisors) if has_quotients else None,
    )


def _linear_strides(
    shape: tuple[int, ...], indices: tuple[Expr, ...], ranges: Mapping[Var, int]
) -> tuple[int, ...] | None:
    """Return the strides of an address whose indices are not linear; None if it is not either."""
    if any(isinstance(node, Load) for index in indices for node in walk(index)):
        return None
    address: Expr = IntImm(0)
    for index, size in zip(indices, shape, strict=True):
        address = BinOp("+", BinOp("*", address, IntImm(size)), index)
    terms = dict(canonical(address, ranges).terms)
    return tuple(terms.get(v, 0) for v in ranges) if terms.keys() <= ranges.keys() else None


def _is_arithmetic(node: object) -> bool:
    match node:
        case BinOp():
            return is_float(dtype_of(node))
        case Call():
            return True
        case _:
            return False
