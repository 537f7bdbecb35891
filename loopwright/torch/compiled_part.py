"""A part of a graph that `torch.compile` captured, compiled when it is called first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch.fx import GraphModule, Node

from compiler.backends.error import BuildError
from compiler.graph.error import ModelError
from compiler.graph.nodes import Array, TensorType
from compiler.graph.read_torch import read_torch
from compiler.graph.read_torch.program import TensorRef, TorchNode, TorchProgram
from loopwright.errors import FallbackWarning
from loopwright.models.compiling import compile
from loopwright.models.executable import Executable
from loopwright.torch.fx_nodes import FxNodeReader, is_check, is_getitem
from loopwright.torch.tensors import array_of, tensor_of
from loopwright.user_warnings import warn_user

MAX_SHAPES = 8
"""Shapes of inputs for which a part is compiled, as many as PyTorch compiles a function. Chosen."""

_Shapes: TypeAlias = "tuple[tuple[int, ...] | int, ...]"
_Stamp: TypeAlias = "tuple[int, int]"


@dataclass(frozen=True)
class _ShapeVariant:
    """The compiled code for inputs of certain shapes.

    Attributes:
        executable: The code; None if the part could not be compiled.
        inputs: The positions of the arguments that it takes.
        layouts: The shape and the strides of each result, as PyTorch expects them.
    """

    executable: Executable | None
    inputs: tuple[int, ...]
    layouts: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]


class CompiledPart(torch.nn.Module):  # type: ignore[misc]
    """Runs a graph by compiled code.

    Parameters are constants of the code, as long as they do not change. One that changed is an
    input from then on.

    Args:
        graph: The graph, all of whose operators have conversions.
        fixed: The positions of the arguments that are parameters or buffers.
    """

    def __init__(self, graph: GraphModule, fixed: Sequence[int]) -> None:
        super().__init__()
        self.graph_module = graph
        self._fixed = set(fixed)
        self._stamps: dict[int, _Stamp] = {}
        self._variants: dict[_Shapes, _ShapeVariant] = {}

    def forward(self, *args: Any) -> Any:
        """Return what the graph returns."""
        self._check_fixed(args)
        shapes = tuple(tuple(x.shape) if isinstance(x, torch.Tensor) else int(x) for x in args)
        if shapes not in self._variants:
            self._variants[shapes] = self._variant(args)
        variant = self._variants[shapes]
        if variant.executable is None:
            return self.graph_module(*args)
        arrays = [array_of(args[position]) for position in variant.inputs]
        results = variant.executable.executor.run(arrays).values()
        tensors = tuple(
            _laid_out(tensor_of(array), *layout)
            for array, layout in zip(results, variant.layouts, strict=True)
        )
        is_single = isinstance(self.graph_module.graph.output_node().args[0], Node)
        return tensors[0] if is_single else tensors

    def _check_fixed(self, args: Sequence[Any]) -> None:
        """Forget all code with constants that changed since it was compiled."""
        changed = [k for k, stamp in self._stamps.items() if _stamp(args[k]) != stamp]
        if changed:
            self._fixed.difference_update(changed)
            self._stamps.clear()
            self._variants.clear()

    def _variant(self, args: Sequence[Any]) -> _ShapeVariant:
        """Compile the graph for the shapes of these arguments."""
        if len(self._variants) >= MAX_SHAPES:
            _warn(f"a part of the graph has inputs of more than {MAX_SHAPES} shapes")
            return _ShapeVariant(None, (), ())
        self._fixed.difference_update([k for k in self._fixed if _stamp(args[k]) is None])
        try:
            program, inputs, layouts = _program(self.graph_module, args, self._fixed)
            variant = _ShapeVariant(compile(read_torch(program)), inputs, layouts)
        except (ModelError, BuildError) as error:
            _warn(f"a part of the graph can't be compiled: {error}")
            return _ShapeVariant(None, (), ())
        self._stamps |= {k: stamp for k in self._fixed if (stamp := _stamp(args[k])) is not None}
        return variant


def _stamp(tensor: torch.Tensor) -> _Stamp | None:
    """Return what differs after a change: the address and the version; None if none is known."""
    return None if tensor.is_inference() else (tensor.data_ptr(), tensor._version)


def _warn(reason: str) -> None:
    warn_user(f"{reason}; PyTorch runs it", FallbackWarning)


def _laid_out(
    tensor: torch.Tensor, shape: tuple[int, ...], strides: tuple[int, ...]
) -> torch.Tensor:
    """Return a tensor with the strides that PyTorch expects: what follows may depend on them."""
    if tensor.stride() == strides or tensor.numel() < 2:
        return tensor
    return torch.empty_strided(shape, strides, dtype=tensor.dtype).copy_(tensor)


def _program(
    graph: GraphModule, args: Sequence[Any], fixed: set[int]
) -> tuple[TorchProgram, tuple[int, ...], tuple[tuple[Any, Any], ...]]:
    """Return the program for arguments, the positions of its inputs, and layouts of its results.

    Raises:
        ModelError: If an operator is not supported for their shapes.
    """
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    reader = FxNodeReader(_extents(placeholders, args))
    inputs: dict[str, TensorType] = {}
    constants: dict[str, Array] = {}
    positions: list[int] = []
    for position, (node, value) in enumerate(zip(placeholders, args, strict=True)):
        if position in fixed:
            constants[node.name] = array_of(value)
        elif isinstance(value, torch.Tensor):
            inputs[node.name] = reader.type_of(value)
            positions.append(position)
    calls = [node for node in graph.graph.nodes if node.op == "call_function"]
    nodes: list[TorchNode] = [
        reader.node(node) for node in calls if not is_getitem(node) and not is_check(node)
    ]
    returned = graph.graph.output_node().args[0]
    results = [returned] if isinstance(returned, Node) else list(returned)
    references = [reader.argument(node) for node in results]
    outputs = {f"output{number}": reference for number, reference in enumerate(references)}
    assert all(isinstance(reference, TensorRef) for reference in references), "parts return tensors"
    layouts = tuple(_layout(reader.integer, node) for node in results)
    program = TorchProgram("part", inputs, constants, tuple(nodes), outputs)
    return program, tuple(positions), layouts


def _layout(integer: Callable[[Any], int], node: Node) -> tuple[tuple[int, ...], tuple[int, ...]]:
    tensor = node.meta["val"]
    return tuple(map(integer, tensor.shape)), tuple(map(integer, tensor.stride()))


def _extents(placeholders: Sequence[Node], args: Sequence[Any]) -> dict[Any, int]:
    """Return the values of the symbols in the extents of arguments."""
    extents: dict[Any, int] = {}
    for node, value in zip(placeholders, args, strict=True):
        traced = node.meta["val"]
        if isinstance(traced, torch.Tensor):
            pairs = list(zip(traced.shape, value.shape, strict=True))
        else:
            pairs = [(traced, value)]
        for symbol, extent in pairs:
            if isinstance(symbol, torch.SymInt) and symbol.node.expr.is_symbol:
                extents[symbol.node.expr] = int(extent)
    return extents
