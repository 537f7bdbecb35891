"""`torch.compile(module, backend="loopwright")`, which PyTorch finds by an entry point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from functorch.compile import make_boxed_func
from torch._decomp import core_aten_decompositions
from torch._dynamo.backends.common import aot_autograd
from torch._guards import TracingContext
from torch.fx import GraphModule

from loopwright.errors import FallbackWarning
from loopwright.torch.compiled_part import CompiledPart
from loopwright.torch.export import without_conversions
from loopwright.torch.partition import partition
from loopwright.user_warnings import warn_user


def loopwright(graph: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """Compile a graph that PyTorch captured, for inference on the CPU.

    Operators without a conversion, and graphs that need gradients, are run by PyTorch, and a
    warning says which.

    Args:
        graph: The graph.
        example_inputs: Its inputs; parameters are among them.
    """
    reason = _why_eager([*example_inputs, *graph.parameters(), *graph.buffers()])
    if reason:
        warn_user(f"{reason}; PyTorch runs the graph", FallbackWarning)
        return graph.forward  # type: ignore[no-any-return]
    compiled: Callable[..., Any] = aot_autograd(
        fw_compiler=_compile_graph,
        inference_compiler=_compile_graph,
        decompositions=without_conversions(core_aten_decompositions()),
    )(graph, example_inputs)
    return compiled


def _why_eager(inputs: Sequence[Any]) -> str:
    """Return why PyTorch runs a whole graph; empty if it can be compiled."""
    tensors = [x for x in inputs if isinstance(x, torch.Tensor)]
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        return "loopwright computes no gradients: call the module under torch.no_grad()"
    devices = sorted({str(tensor.device) for tensor in tensors} - {"cpu"})
    if devices:
        return f"inputs are on {', '.join(devices)}: expected tensors of the CPU"
    return ""


def _compile_graph(graph: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    """Return the graph with its supported parts compiled."""
    context = TracingContext.try_get()
    metadata = None if context is None else context.fw_metadata
    fixed = set() if metadata is None else set(metadata.static_input_indices)
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    fixed_names = {placeholders[position].name for position in fixed}
    divided = partition(graph)
    if divided.eager:
        num_eager = len(divided.eager)
        warn_user(
            f"{divided.num_compiled} operators of the graph are compiled, and PyTorch runs"
            f" {num_eager}: {divided.report()}",
            FallbackWarning,
        )
    for node in divided.module.graph.nodes:
        if node.op == "call_module":
            part = divided.module.get_submodule(node.target)
            positions = [
                position
                for position, source in enumerate(node.args)
                if source.name in fixed_names or source.op == "get_attr"
            ]
            setattr(divided.module, node.target, CompiledPart(part, positions))
    divided.module.recompile()
    return make_boxed_func(divided.module.forward)  # type: ignore[no-any-return]
