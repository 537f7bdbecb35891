"""Turn tensors into a program: one block a tensor, inputs and outputs as parameters."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.ir.names import identifier, unique
from compiler.ir.nodes import (
    TRUE,
    BinOp,
    Block,
    BlockRealize,
    Buffer,
    Expr,
    For,
    IntImm,
    IterVar,
    Load,
    PrimFunc,
    Stmt,
    Store,
    Var,
    seq,
)
from compiler.ir.regions import with_regions
from compiler.ir.verify import verify
from compiler.ir.visit import replace_buffers, substitute
from compiler.te.value import Definition, Reduction, Tensor


def create_prim_func(tensors: Sequence[Tensor], name: str = "main") -> PrimFunc:
    """Build the program that computes the defined tensors among `tensors` from the others.

    Args:
        tensors: The parameters in their order: inputs and outputs. What else the outputs are
            computed from is allocated inside.
        name: The name of the function.

    Raises:
        ValueError: If an input is not among the parameters, or a tensor is there twice.
        VerifyError: If the program is not legal, for example reads out of bounds.
    """
    if len({id(t) for t in tensors}) != len(tensors):
        raise ValueError("a tensor is given twice as a parameter")
    stages = _stages(tensors)
    for tensor in stages:
        if tensor.definition is None and tensor not in tensors:
            raise ValueError(f"input {tensor.name} is not among the parameters")

    computed = [t for t in stages if t.definition is not None]
    if not computed:
        raise ValueError("nothing to compute: no parameter is made by te.compute")
    renamed = _rename([*tensors, *(t for t in computed if t not in tensors)])
    block_names: set[str] = {"root"}
    nests: list[Stmt] = []
    for tensor in computed:
        block_name = unique(identifier(tensor.name), block_names)
        block_names.add(block_name)
        nests.append(_nest(tensor, block_name))
    body = replace_buffers(seq(*nests), renamed)
    allocated = tuple(renamed[t.buffer] for t in computed if t not in tensors)
    root = Block("root", (), (), (), body, alloc_buffers=allocated)
    params = tuple(renamed[t.buffer] for t in tensors)
    func = PrimFunc(name, params, BlockRealize((), TRUE, root), (("tir.noalias", True),))
    verify(func)
    return func


def _stages(outputs: Sequence[Tensor]) -> list[Tensor]:
    """Return the tensors and all they are computed from, each after its inputs."""
    order: dict[Tensor, None] = {}
    stack = [(tensor, False) for tensor in reversed(outputs)]
    while stack:
        tensor, inputs_done = stack.pop()
        if tensor in order:
            continue
        if inputs_done:
            order[tensor] = None
        else:
            stack.append((tensor, True))
            stack.extend((t, False) for t in reversed(tensor.inputs))
    return list(order)


def _rename(tensors: Sequence[Tensor]) -> dict[Buffer, Buffer]:
    """Give each tensor a buffer of its own with a name of its own."""
    taken: set[str] = set()
    renamed: dict[Buffer, Buffer] = {}
    for tensor in tensors:
        old = tensor.buffer
        name = unique(identifier(old.name), taken)
        taken.add(name)
        renamed[old] = Buffer(Var(name, "handle"), old.shape, old.dtype, old.scope)
    return renamed


def _nest(tensor: Tensor, block_name: str) -> Stmt:
    """Build the loops and the block that compute one tensor."""
    definition = tensor.definition
    assert definition is not None
    loops: list[tuple[Var, int]] = []
    iter_vars: list[IterVar] = []
    mapping: dict[Var, Expr] = {}
    for index, extent in zip(definition.indices, tensor.shape, strict=True):
        iter_vars.append(IterVar(Var(f"v_{index.name}"), IntImm(extent), "spatial"))
        loops.append((Var(index.name), extent))
        mapping[index] = iter_vars[-1].var
    if isinstance(definition.value, Reduction):
        for axis in definition.value.axes:
            iter_vars.append(IterVar(Var(f"v_{axis.var.name}"), IntImm(axis.extent), "reduce"))
            loops.append((Var(axis.var.name), axis.extent))
            mapping[axis.var] = iter_vars[-1].var

    place = tuple(mapping[index] for index in definition.indices)
    init, body = _element(tensor.buffer, place, definition)
    block = with_regions(
        Block(
            block_name,
            tuple(iter_vars),
            (),
            (),
            substitute(body, mapping),
            None if init is None else substitute(init, mapping),
            annotations=definition.attrs,
        )
    )
    nest: Stmt = BlockRealize(tuple(var for var, _ in loops), TRUE, block)
    for var, extent in reversed(loops):
        nest = For(var, IntImm(extent), nest)
    return nest


def _element(
    buffer: Buffer, place: tuple[Expr, ...], definition: Definition
) -> tuple[Stmt | None, Stmt]:
    """Return the initialisation, if it is a reduction, and the computation of an element."""
    value = definition.value
    if not isinstance(value, Reduction):
        return None, Store(buffer, place, value.expr)
    update = BinOp(value.combiner, Load(buffer, place), value.value.expr)
    return Store(buffer, place, value.identity.expr), Store(buffer, place, update)
