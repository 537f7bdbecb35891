"""Tensors that a given piece of program computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from compiler.executor.named_type import named_type
from compiler.ir.analysis.regions import with_regions
from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import (
    TRUE,
    AnnotationValue,
    Block,
    BlockRealize,
    Buffer,
    For,
    IterVar,
    Stmt,
    Store,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.ir.core.visit import is_stmt
from compiler.te.compute import outputs_of, shape_of
from compiler.te.tensor import Extent, Extern, Tensor


def extern(  # noqa: PLR0917 - TVM's arguments
    shape: Sequence[Extent] | Sequence[Sequence[Extent]],
    inputs: Sequence[Tensor],
    fcompute: Callable[[list[Buffer], list[Buffer]], Stmt | PrimFunc],
    name: str = "extern",
    dtype: DType | Sequence[DType] | None = None,
    attrs: Mapping[str, AnnotationValue] | None = None,
) -> Any:
    """Define tensors by a piece of program that writes them.

    Args:
        shape: The shape of the tensor, or several.
        inputs: The tensors that the program reads.
        fcompute: Takes the buffers of the inputs and of the outputs. Returns statements on them,
            or a function whose parameters are these buffers in this order.
        name: The name of the tensor and its block; several tensors are called `name_v0, ...`.
        dtype: The type of the tensor, or of each; by default that of the inputs.
        attrs: Annotations of the block.

    Returns:
        The tensor, or a list of as many as there are shapes.

    Raises:
        TypeError: If `fcompute` returns no program.
        ValueError: If no type is given and the inputs have several, or the function has other
            parameters.
    """
    shapes = list(shape) if any(isinstance(s, Sequence) for s in shape) else [shape]
    if dtype is None:
        input_dtypes = {tensor.dtype for tensor in inputs}
        if len(input_dtypes) != 1:
            raise ValueError(f"the inputs of {name} have {len(input_dtypes)} types: give its dtype")
        dtype = input_dtypes.pop()
    dtypes = [dtype] * len(shapes) if isinstance(dtype, str) else list(dtype)
    kinds = [(shape_of(s), d) for s, d in zip(shapes, dtypes, strict=True)]  # type: ignore[arg-type]
    input_tensors = tuple(inputs)
    definition = Extern(name, input_tensors, PrimFunc, tuple((attrs or {}).items()))  # type: ignore[arg-type]
    definition.outputs = outputs_of(definition, kinds)
    body = fcompute([t.buffer for t in input_tensors], [t.buffer for t in definition.outputs])
    if not (isinstance(body, PrimFunc) or is_stmt(body)):
        raise TypeError(
            f"the function that computes {name} returns {named_type(body)}: expected "
            "statements or a PrimFunc"
        )
    definition.body = body
    _check_params(definition)
    return list(definition.outputs) if len(kinds) > 1 else definition.outputs[0]


def extern_primfunc(input_tensors: Sequence[Tensor], primfunc: PrimFunc, name: str = "") -> Any:
    """Define tensors by a function: the parameters after the inputs are its outputs.

    Raises:
        ValueError: If the function has no such parameters, or symbolic ones.
    """
    outputs = primfunc.params[len(input_tensors) :]
    kinds = [(out.shape, out.dtype) for out in outputs if isinstance(out, Buffer)]
    if not kinds or len(kinds) < len(outputs):
        raise ValueError(
            f"{primfunc.name} has {len(primfunc.params)} parameter(s), {len(input_tensors)} of "
            "them inputs: expected buffers for outputs after them"
        )
    definition = Extern(name or primfunc.name, tuple(input_tensors), primfunc)
    definition.outputs = outputs_of(definition, kinds)
    _check_params(definition)
    return list(definition.outputs) if len(kinds) > 1 else definition.outputs[0]


def extern_blocks(
    shape: Sequence[int],
    inputs: Sequence[Tensor],
    fcompute: Callable[..., Stmt],
    name: str,
    dtype: DType | None = None,
) -> Tensor:
    """Define a tensor by loops around blocks, which become part of the program unchanged.

    Unlike the piece of `extern`, the blocks can be scheduled.

    Args:
        shape: The shape of the tensor.
        inputs: The tensors that the blocks read.
        fcompute: Takes the buffers of the inputs, then that of the tensor, and returns the loops.
        name: The name of the tensor; the blocks have their own names.
        dtype: The type of the tensor; by default that of the first input.
    """
    definition = Extern(name, tuple(inputs), PrimFunc, has_blocks=True)  # type: ignore[arg-type]
    definition.outputs = outputs_of(definition, [(shape_of(shape), dtype or inputs[0].dtype)])
    (output,) = definition.outputs
    definition.body = fcompute(*(tensor.buffer for tensor in inputs), output.buffer)
    return output


def block_nest(name: str, iters: Sequence[IterVar], store: Store) -> Stmt:
    """Return loops over all values of some iterators, around a block of one statement."""
    block = with_regions(Block(name, tuple(iters), (), (), store))
    loops = [Var(iterator.var.name.removeprefix("v_")) for iterator in iters]
    nest: Stmt = BlockRealize(tuple(loops), TRUE, block)
    for loop, iterator in reversed(list(zip(loops, iters, strict=True))):
        nest = For(loop, iterator.extent, nest)
    return nest


def _check_params(extern: Extern) -> None:
    """Refuse a function whose parameters are not the tensors."""
    if not isinstance(extern.body, PrimFunc):
        return
    tensors = (*extern.inputs, *extern.outputs)
    expected = [(t.buffer.shape, t.dtype) for t in tensors]
    actual = [(b.shape, b.dtype) for b in extern.body.buffers]
    if expected != actual or len(extern.body.params) != len(actual):
        raise ValueError(
            f"the parameters of {extern.body.name} are not the inputs and outputs of {extern.name}"
        )
