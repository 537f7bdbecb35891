"""From a group of nodes to a program: the operators' tensor expressions, chained.

Operands from outside become parameters: inputs first, in the order of their first use, then the
results. Constants are constant parameters, except numbers, which are part of the expression. Equal
groups give equal programs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compiler import te
from compiler.graph.error import ModelError
from compiler.graph.fusion.group import FusedGroup
from compiler.graph.nodes import Constant, Node, Operand, TensorType, TensorValue
from compiler.graph.operator import find_operator
from compiler.ir.analysis.constant_params import with_constants
from compiler.ir.core.dtypes import is_float
from compiler.ir.core.nodes import Buffer, static_shape
from compiler.ir.core.program import PrimFunc
from compiler.ir.verify.verify_error import VerifyError

SHARED_NUMBERS = frozenset({"quantize", "dequantize"})
"""Operators whose numbers stay parameters: scales differ from layer to layer, and as parts of the
program each would be a task of its own.
"""
MAX_NAME = 48
"""Characters of the name of a program. Chosen."""


@dataclass(frozen=True, slots=True, eq=False)
class LoweredGroup:
    """A group as a program.

    Attributes:
        group: The group.
        func: The program.
        operands: What is passed for each parameter that is read, in order.
        results: What each of the following parameters holds afterwards.
    """

    group: FusedGroup
    func: PrimFunc
    operands: tuple[Operand, ...]
    results: tuple[TensorValue, ...]


class _Immediate(te.Tensor):
    """A tensor of one element that is known: each access is this number."""

    __slots__ = ("number",)

    number: te.Value

    def __getitem__(self, indices: object) -> te.Value:
        """Return the number."""
        del indices
        return self.number

    def __call__(self, *indices: object) -> te.Value:
        """Return the number."""
        del indices
        return self.number


def lower_group(group: FusedGroup) -> LoweredGroup:
    """Return the program of a group.

    Raises:
        ModelError: If an operator can't be expressed for its operands, or the program is too large.
    """
    operands = tuple(x for x in group.inputs if not _is_number(x, group.nodes))
    try:
        func = _program(group, operands)
    except ModelError:
        raise  # it names its node
    except (VerifyError, ValueError) as error:
        raise ModelError(str(error)).at(group.label, group.nodes[-1].name) from error
    constants = [
        buffer.name
        for buffer, operand in zip(func.params, operands, strict=False)
        if isinstance(operand, Constant) and isinstance(buffer, Buffer)
    ]
    return LoweredGroup(
        group, with_constants(func, constants) if constants else func, operands, group.outputs
    )


def _program(group: FusedGroup, operands: Sequence[Operand]) -> PrimFunc:
    params = [_placeholder(operand.type, f"p{number}") for number, operand in enumerate(operands)]
    tensors: dict[Operand, te.Tensor] = dict(zip(operands, params, strict=True))
    for node in group.nodes:
        _apply(node, tensors)
    read = set(params)
    results = [_computed(tensors[value], read) for value in group.outputs]
    return te.create_prim_func([*params, *results], _name(group.nodes))


def lower_copy(tensor_type: TensorType) -> PrimFunc:
    """Return the program that copies a tensor: a result that is also something else."""
    source = te.placeholder((tensor_type.num_elements,), tensor_type.dtype, name="p0")
    copy = te.compute((tensor_type.num_elements,), lambda i: source[i], name="copy")
    return te.create_prim_func([source, copy], "copy")


def _apply(node: Node, tensors: dict[Operand, te.Tensor]) -> None:
    operands = [None if x is None else _tensor(x, tensors) for x in node.inputs]
    try:
        results = find_operator(node.op).apply_tensors(operands, node.attrs)
    except ModelError as error:
        raise error.at(node.op, node.name) from error
    except (TypeError, ValueError) as error:
        raise ModelError(str(error)).at(node.op, node.name) from error
    for value, tensor in zip(node.outputs, results, strict=True):
        made = TensorType(static_shape(tensor.buffer), tensor.dtype)
        assert made == value.type, f"{node.op}: its tensors have {made}, not {value.type}"
    tensors.update(zip(node.outputs, results, strict=True))


def _tensor(operand: Operand, tensors: Mapping[Operand, te.Tensor]) -> te.Tensor:
    if operand in tensors:
        return tensors[operand]
    assert isinstance(operand, Constant), f"{operand.name} is read before it is made"
    return _immediate(operand)


def _immediate(constant: Constant) -> te.Tensor:
    source = _placeholder(constant.type, "number")
    tensor = _Immediate(source.buffer)
    element = constant.elements.reshape(-1)[0]
    number = float(element) if is_float(constant.type.dtype) else int(element)
    object.__setattr__(tensor, "number", te.const(number, constant.type.dtype))
    return tensor


def _placeholder(tensor_type: TensorType, name: str) -> te.Tensor:
    return te.placeholder(tensor_type.static_shape, tensor_type.dtype, name=name)


def _is_number(operand: Operand, nodes: Sequence[Node]) -> bool:
    """Return whether an operand becomes a part of the expressions that read it."""
    return (
        isinstance(operand, Constant)
        and operand.type.num_elements == 1
        and operand.array is not None
        and all(
            find_operator(node.op).kind == "map" and node.op not in SHARED_NUMBERS
            for node in nodes
            if operand in node.operands
        )
    )


def _computed(tensor: te.Tensor, read: set[te.Tensor]) -> te.Tensor:
    """Return a tensor that is computed: a copy of an operand, or of a result that is used twice."""
    if tensor.definition is not None and tensor not in read:
        read.add(tensor)
        return tensor
    return te.compute(tensor.shape, lambda *i: tensor[i], name="copy")


def _name(nodes: Sequence[Node]) -> str:
    operators = [node.op.rpartition(".")[2] for node in nodes]
    name = "_".join(operators)
    return name if len(name) <= MAX_NAME else f"{name[:MAX_NAME]}_{len(nodes)}"
