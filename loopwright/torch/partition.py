"""Which parts of an FX graph are compiled, and why the rest is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from compiler.executor.named_type import named_type
from compiler.graph.builder import GraphBuilder
from compiler.graph.error import ModelError
from compiler.graph.nodes import Operand
from compiler.graph.read_torch.program import Argument, TensorRef
from compiler.graph.read_torch.reader import convert
from loopwright.torch.fx_nodes import FxNodeReader, is_check, is_getitem, is_number, overload_of
from loopwright.torch.tensors import require_cpu

_MOVES_ALONE = frozenset(
    {
        *("_unsafe_view", "alias", "clone", "detach", "expand", "permute", "select", "slice"),
        *("split", "split_with_sizes", "squeeze", "t", "transpose", "unsqueeze", "view"),
    }
)
"""Operators that PyTorch computes by a view, or by one copy: alone they gain nothing."""

_SLOW_PATH = "; torch.backends.mha.set_fastpath_enabled(False) makes PyTorch call its parts"
_ADVICE = {
    "_native_multi_head_attention.default": _SLOW_PATH,
    "_transformer_encoder_layer_fwd.default": _SLOW_PATH,
}


@dataclass(frozen=True)
class DividedGraph:
    """A graph whose compiled parts are calls of modules.

    Attributes:
        module: The graph.
        parts: The names of these modules.
        num_compiled: The number of operators in the parts.
        eager: The operators that remain, with the reason.
    """

    module: GraphModule
    parts: tuple[str, ...]
    num_compiled: int
    eager: tuple[tuple[str, str], ...]

    def report(self) -> str:
        """Return what remains and why, in one line; empty if nothing remains."""
        counts = Counter(self.eager)
        return "; ".join(
            f"{operator}{f' ({count} times)' if count > 1 else ''}: {reason}"
            for (operator, reason), count in counts.items()
        )


@dataclass
class _Support(OperatorSupportBase):  # type: ignore[misc]
    """Tries the conversion of each node."""

    refusals: dict[Node, str] = field(default_factory=dict)

    def is_node_supported(self, submodules: Mapping[str, object], node: Node) -> bool:
        if node.op != "call_function" or is_check(node) or is_number(node):
            return False
        if is_getitem(node):
            return self.is_node_supported(submodules, node.args[0])
        try:
            _try_conversion(node)
        except ModelError as error:
            self.refusals[node] = error.reason + _ADVICE.get(overload_of(node), "")
            return False
        return True


def partition(graph: GraphModule) -> DividedGraph:
    """Return a graph in which each connected part of supported operators is a module."""
    support = _Support()
    partitioner = CapabilityBasedPartitioner(graph, support, allows_single_node_partition=True)
    proposed = [each for each in partitioner.propose_partitions() if _computes(each.nodes)]
    num_compiled = sum(not is_getitem(node) for each in proposed for node in each.nodes)
    eager = tuple((overload_of(node), reason) for node, reason in support.refusals.items())
    module = partitioner.fuse_partitions(proposed)
    parts = tuple(node.target for node in module.graph.nodes if node.op == "call_module")
    return DividedGraph(module, parts, num_compiled, eager)


def _computes(nodes: Mapping[Node, object]) -> bool:
    names = (overload_of(node).partition(".")[0] for node in nodes if not is_getitem(node))
    return any(name not in _MOVES_ALONE for name in names)


def _try_conversion(node: Node) -> None:
    """Convert a node alone.

    Raises:
        ModelError: If it is not supported.
    """
    reader = FxNodeReader()
    call = reader.node(node)
    builder = GraphBuilder()
    values: dict[TensorRef, Operand] = {}
    sources = {reader.argument(source): source for source in node.all_input_nodes}
    for argument in call.arguments.values():
        for reference in _references(argument):
            value = sources[reference].meta.get("val")
            if not isinstance(value, torch.Tensor):
                raise ModelError(f"{reference.name} is {named_type(value)}: expected a tensor")
            require_cpu(reference.name, value)
            values[reference] = builder.input(reference.name, reader.type_of(value))
    convert(call, values, builder)


def _references(argument: Argument) -> list[TensorRef]:
    if isinstance(argument, tuple):
        return [reference for each in argument for reference in _references(each)]
    return [argument] if isinstance(argument, TensorRef) else []
