"""Turn the definitions of tensors into loops around blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from compiler.ir.analysis.regions import with_regions
from compiler.ir.arith.simplify import simplify
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.nodes import (
    TRUE,
    BinOp,
    Block,
    BlockRealize,
    Buffer,
    Compare,
    CompareOp,
    Expr,
    For,
    IterKind,
    IterVar,
    Let,
    Load,
    Stmt,
    Store,
    Var,
    seq,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.replace_buffers import replace_buffers
from compiler.ir.core.visit import substitute, transform
from compiler.te.tensor import Compute, Definition, Extern, Reduction, Scan, Tensor
from compiler.te.value import Value

Naming = Callable[[Definition, str], str]
"""Makes the unique name of a block of a definition."""

_SWAPPED: dict[CompareOp, CompareOp] = {">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Time:
    """The steps of a scan: the loop over them, the number of initial steps, and their iterator."""

    loop: Var
    extent: Expr
    before: Expr
    kind: IterKind


def emit(definition: Compute | Scan | Extern, naming: Naming) -> Stmt:
    """Return the statements that compute the tensors of a definition."""
    match definition:
        case Compute():
            targets = tuple(output.buffer for output in definition.outputs)
            return _nest(definition, targets, naming, None)
        case Scan():
            return _scan(definition, naming)
        case Extern():
            return _extern(definition, naming)


def _nest(compute: Compute, targets: Sequence[Buffer], naming: Naming, time: Time | None) -> Stmt:
    """Return loops around the block that computes `targets`, or around one block each.

    In a scan, the loop over the steps is already around all of it.
    """
    value = compute.value
    indices = tuple(compute.indices)
    axes: list[tuple[Var, Expr]] = []
    stages: list[tuple[str, Stmt | None, Stmt]]
    if isinstance(value, Reduction):
        axes = [(axis.loop, axis.extent) for axis in value.axes]
        stages = [(compute.name, *_combined(value, targets, indices))]
    else:
        stores = [Store(t, indices, v.expr) for t, v in zip(targets, value, strict=True)]
        stages = [(o.name, None, s) for o, s in zip(compute.outputs, stores, strict=True)]
    space = list(zip(compute.indices, compute.extents, strict=True))
    loops = [(Var(var.name, var.dtype), extent) for var, extent in (*space, *axes)]
    if time is not None:
        loops[0] = (time.loop, time.extent)
    blocks: list[Stmt] = []
    for name, init, body in stages:
        iters, mapping = _iterators(space, axes, time)
        first = None if init is None else _tidied(substitute(init, mapping))
        update = substitute(body, mapping)
        update = update if isinstance(update, Let) else _tidied(update)
        block = Block(
            naming(compute, name), iters, (), (), update, first, annotations=compute.attrs
        )
        blocks.append(BlockRealize(tuple(var for var, _ in loops), TRUE, with_regions(block)))
    nest = seq(*blocks)
    for var, extent in reversed(loops if time is None else loops[1:]):
        nest = For(var, extent, nest)
    return nest


def _iterators(
    space: Sequence[tuple[Var, Expr]], axes: Sequence[tuple[Var, Expr]], time: Time | None
) -> tuple[tuple[IterVar, ...], dict[Var, Expr]]:
    """Return the iterators of a block, and the values of indices and axes in terms of them."""
    iters: list[IterVar] = []
    mapping: dict[Var, Expr] = {}
    for var, extent in space:
        iters.append(IterVar(Var(f"v_{var.name}", var.dtype), extent, "spatial"))
        mapping[var] = iters[-1].var
    for var, extent in axes:
        iters.append(IterVar(Var(f"v_{var.name}", var.dtype), extent, "reduce"))
        mapping[var] = iters[-1].var
    if time is not None:
        iters[0] = IterVar(iters[0].var, time.extent, time.kind)
        mapping[space[0][0]] = BinOp("+", iters[0].var, time.before)
    return tuple(iters), mapping


def _combined(
    reduction: Reduction, targets: Sequence[Buffer], indices: tuple[Expr, ...]
) -> tuple[Stmt, Stmt]:
    """Return the initialisation and the update of an element, or of several together."""
    old: dict[Var, Expr] = {
        accumulator: Load(target, indices)
        for accumulator, target in zip(reduction.accumulators, targets, strict=True)
    }
    starts = zip(targets, reduction.initial, strict=True)
    init = seq(*(Store(target, indices, value.expr) for target, value in starts))
    values = [substitute(value.expr, old) for value in reduction.combined]
    if len(values) == 1:
        return init, Store(targets[0], indices, values[0])
    # Compute all new values before the first store: each may read all old ones.
    names = [Var(f"v_{target.name}", target.dtype) for target in targets]
    body = seq(*(Store(t, indices, name) for t, name in zip(targets, names, strict=True)))
    for name, value in zip(reversed(names), reversed(values), strict=True):
        body = Let(name, value, body)
    return init, body


def _scan(scan: Scan, naming: Naming) -> Stmt:
    """Return the first steps of all states, then a loop over the others.

    The states are computed in place: a step reads earlier steps from the output itself.
    """
    nests: list[Stmt] = []
    for first, output in zip(scan.init, scan.outputs, strict=True):
        nests.append(_nest(_as_compute(first), (output.buffer,), naming, None))
    before, num_steps = scan.init[0].buffer.shape[0], scan.outputs[0].buffer.shape[0]
    extent = simplify(BinOp("-", num_steps, before))
    steps = scan.steps
    loop = Var(steps[-1].indices[0].name, dtype_of(extent))
    results = dict(zip(scan.update, scan.outputs, strict=True))
    # A step may read earlier steps of its state, and the same step of another state.
    states = {s.buffer: o.buffer for s, o in zip(scan.state, scan.outputs, strict=True)}
    states.update((tensor.buffer, output.buffer) for tensor, output in results.items())
    inside: list[Stmt] = []
    for step in steps:
        targets = tuple(results.get(tensor, tensor).buffer for tensor in step.outputs)
        # What is no state reads nothing of its own earlier steps.
        kind: IterKind = "scan" if results.keys() & set(step.outputs) else "spatial"
        nest = _nest(step, targets, naming, Time(loop, extent, before, kind))
        inside.append(replace_buffers(nest, states))
    return seq(*nests, For(loop, extent, seq(*inside)))


def _as_compute(tensor: Tensor) -> Compute:
    """Return the definition of a tensor; an input, or one of several outputs, is copied."""
    definition = tensor.definition
    if isinstance(definition, Compute) and len(definition.outputs) == 1:
        return definition
    extents = tensor.buffer.shape
    indices = tuple(Var(f"i{n}", dtype_of(e)) for n, e in enumerate(extents))
    values = (tensor(*map(Value, indices)),)
    return Compute(tensor.name, indices, extents, values, outputs=(tensor,))


def _extern(extern: Extern, naming: Naming) -> Stmt:
    """Return a block around a piece of program, or the piece itself if it is made of blocks."""
    body = extern.body
    if extern.has_blocks:
        assert not isinstance(body, PrimFunc)
        return transform(
            body,
            on_stmt=lambda stmt: (
                replace(stmt, block=replace(stmt.block, name=naming(extern, stmt.block.name)))
                if isinstance(stmt, BlockRealize)
                else None
            ),
        )
    allocated: tuple[Buffer, ...] = ()
    if isinstance(body, PrimFunc):
        buffers = [tensor.buffer for tensor in (*extern.inputs, *extern.outputs)]
        buffer_mapping = dict(zip(body.buffers, buffers, strict=True))
        allocated = body.root.alloc_buffers
        body = replace_buffers(body.root.body, buffer_mapping)
    block = Block(
        naming(extern, extern.name),
        (),
        (),
        (),
        body,
        alloc_buffers=allocated,
        annotations=extern.attrs,
    )
    return BlockRealize((), TRUE, with_regions(block))


def _tidied(stmt: Stmt) -> Stmt:
    """Return a statement in TVM's form: simple indices, and only comparisons `<` and `<=`."""

    def tidy(expr: Expr) -> Expr | None:
        match expr:
            case Load(buffer, indices):
                return Load(buffer, tuple(simplify(index) for index in indices))
            case Compare((">" | ">=") as op, lhs, rhs):
                return Compare(_SWAPPED[op], rhs, lhs)
            case _:
                return None

    def tidy_store(node: Stmt) -> Stmt | None:
        match node:
            case Store(buffer, indices, value):
                return Store(buffer, tuple(simplify(index) for index in indices), value)
            case _:
                return None

    return transform(stmt, tidy, tidy_store)
