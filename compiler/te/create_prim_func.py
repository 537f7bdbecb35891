"""Turn tensors into a program: one block a tensor; inputs and outputs become parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from compiler.ir.core.limits import size_problem
from compiler.ir.core.nodes import (
    TRUE,
    Block,
    BlockRealize,
    Buffer,
    Stmt,
    Var,
    seq,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.replace_buffers import replace_buffers
from compiler.ir.text.names import identifier, unique
from compiler.ir.verify.verify import verify
from compiler.ir.verify.verify_error import VerifyError
from compiler.te.emit import emit
from compiler.te.tensor import Compute, Definition, Scan, Tensor
from compiler.te.value import Variable


@dataclass(frozen=True, slots=True)
class TensorProgram:
    """A program, with what its parts compute.

    Attributes:
        func: The program.
        block_names: The names of the blocks of each definition, in program order.
        buffers: The buffer of each tensor.
    """

    func: PrimFunc
    block_names: Mapping[Definition, Sequence[str]]
    buffers: Mapping[Tensor, Buffer]


def create_prim_func(ops: Sequence[Tensor | Variable] | Tensor, name: str = "main") -> PrimFunc:
    """Build the program that computes the defined tensors among `ops` from the others.

    Args:
        ops: The parameters in their order: inputs and outputs, and symbolic scalars. The program
            allocates all intermediate tensors.
        name: The name of the function.

    Raises:
        TypeError: If a parameter is neither a tensor nor a scalar.
        ValueError: If an input is not among the parameters, or a tensor is given twice.
        VerifyError: If the program is not legal, for example reads out of bounds.
    """
    return create_program(ops, name).func


def parameters_of(ops: object) -> list[Tensor | Variable]:
    """Return the parameters of a program: tensors and symbolic variables, or one tensor.

    Raises:
        TypeError: If one is something else.
    """
    given = list(ops) if isinstance(ops, Iterable) and not isinstance(ops, str) else [ops]
    parameters: list[Tensor | Variable] = []
    for op in given:
        if not isinstance(op, Tensor | Variable):
            raise TypeError(f"a parameter is a tensor or a symbolic variable, not {op!r}"[:200])
        parameters.append(op)
    return parameters


def create_program(ops: Sequence[Tensor | Variable] | Tensor, name: str = "main") -> TensorProgram:
    """Do what `create_prim_func` does, and return what the parts of the program compute.

    Raises:
        TypeError: As `create_prim_func`.
        ValueError: As `create_prim_func`.
        VerifyError: As `create_prim_func`.
    """
    parameters = parameters_of(ops)
    tensors = [op for op in parameters if isinstance(op, Tensor)]
    if len({id(op) for op in parameters}) != len(parameters):
        raise ValueError("a tensor is given twice as a parameter")
    definitions, read = needed(tensors)
    for tensor in read:
        if tensor.definition is None and tensor not in tensors:
            raise ValueError(f"input {tensor.name} is not among the parameters")
    if not definitions:
        raise ValueError("nothing to compute: no parameter is made by te.compute")

    computed = [tensor for definition in definitions for tensor in _tensors_of(definition)]
    inner = [tensor for tensor in computed if tensor not in tensors]
    renamed = _rename([*tensors, *inner])
    used_names: set[str] = {"root"}
    block_names: dict[Definition, list[str]] = {}

    def naming(definition: Definition, base: str) -> str:
        name = unique(identifier(base), used_names)
        used_names.add(name)
        block_names.setdefault(definition, []).append(name)
        return name

    _require_size(definitions)
    nests: list[Stmt] = [emit(definition, naming) for definition in definitions]
    body = replace_buffers(seq(*nests), renamed)
    root = Block("root", (), (), (), body, alloc_buffers=tuple(renamed[t.buffer] for t in inner))
    params = tuple(op.var if isinstance(op, Variable) else renamed[op.buffer] for op in parameters)
    func = PrimFunc(name, params, BlockRealize((), TRUE, root), (("tir.noalias", True),))
    verify(func)
    buffers = {tensor: renamed[tensor.buffer] for tensor in (*tensors, *inner)}
    return TensorProgram(func, block_names, buffers)


def _require_size(definitions: Sequence[Definition]) -> None:
    """Refuse expressions that are too large for recursive passes.

    Raises:
        VerifyError: If an expression is too large.
    """
    for definition in definitions:
        steps = definition.steps if isinstance(definition, Scan) else (definition,)
        for step in steps:
            values = step.values if isinstance(step, Compute) else ()
            for value in values:
                problem = size_problem(value.expr)
                if problem is not None:
                    message = f"an element of {step.name} is too large: {problem}"
                    raise VerifyError(message, value.expr, "limit")


def needed(tensors: Sequence[Tensor]) -> tuple[list[Definition], list[Tensor]]:
    """Return the definitions to compute, each after its inputs, and all tensors that are read."""
    order: dict[int, Definition] = {}
    read: dict[Tensor, None] = {}
    stack: list[tuple[Tensor, bool]] = [(tensor, False) for tensor in reversed(tensors)]
    while stack:
        tensor, inputs_done = stack.pop()
        definition = tensor.definition
        if definition is None or id(definition) in order:
            read.setdefault(tensor)
        elif inputs_done:
            order[id(definition)] = definition
            read.setdefault(tensor)
        else:
            stack.append((tensor, True))
            stack.extend((t, False) for t in reversed(definition.inputs))
    return list(order.values()), list(read)


def _tensors_of(definition: Definition) -> tuple[Tensor, ...]:
    """Return the tensors that a definition writes, first those inside the steps of a scan."""
    if not isinstance(definition, Scan):
        return definition.outputs
    inner = (t for step in definition.steps for t in step.outputs if t not in definition.update)
    return (*inner, *definition.outputs)


def _rename(tensors: Sequence[Tensor]) -> dict[Buffer, Buffer]:
    """Give each tensor its own buffer with a unique name."""
    used_names: set[str] = set()
    renamed: dict[Buffer, Buffer] = {}
    for tensor in tensors:
        name = unique(identifier(tensor.name), used_names)
        used_names.add(name)
        renamed[tensor.buffer] = replace(tensor.buffer, data=Var(name, "handle"))
    return renamed
