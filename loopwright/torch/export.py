"""A module as a program: `torch.export` captures it, and operators without conversion decompose."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils._pytree import keystr, tree_flatten_with_path, tree_unflatten

from compiler.graph.error import ModelError
from compiler.graph.nodes import Array
from compiler.graph.read_torch.program import Argument, TensorRef, TorchNode, TorchProgram
from compiler.graph.read_torch.registry import CONVERSIONS
from loopwright.torch.fx_nodes import FxNodeReader, is_check, is_getitem
from loopwright.torch.tensors import array_of, require_cpu

_NODES = FxNodeReader()


def export_module(
    module: torch.nn.Module, example_inputs: Sequence[Any] | Mapping[str, Any]
) -> TorchProgram:
    """Capture a module.

    Args:
        module: The module, in evaluation mode.
        example_inputs: The arguments of a call, in order, or by name. Their shapes and types are
            those of the model; their values do not matter.

    Raises:
        ModelError: If the module is in training mode, PyTorch can't export it, or it changes its
            buffers or inputs.
    """
    if module.training:
        raise ModelError(
            f"the module {type(module).__name__} is in training mode",
            advice="call module.eval() before",
        )
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        require_cpu(name, tensor)
    by_name = isinstance(example_inputs, Mapping)
    args: tuple[Any, ...] = () if by_name else tuple(example_inputs)
    kwargs = dict(example_inputs) if by_name else {}
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch warns of its own internals
            exported = torch.export.export(module, args, kwargs)
            return program_of(exported, type(module).__name__)
    except ModelError:
        raise
    except Exception as error:  # PyTorch raises errors of many types, also its own internal ones
        reason = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
        raise ModelError(
            f"torch.export can't export the module {type(module).__name__}:"
            f" {type(error).__name__}: {reason}",
            advice='torch.compile(module, backend="loopwright") compiles the parts that it can',
        ) from error


def program_of(exported: ExportedProgram, name: str) -> TorchProgram:
    """Return what `torch.export` captured as a program.

    Raises:
        ModelError: If it has effects besides its results, or inputs that are no tensors.
    """
    table = without_conversions(torch.export.default_decompositions())
    exported = exported.run_decompositions(table)
    inputs, constants = _inputs(exported)
    nodes: list[TorchNode] = []
    for node in exported.graph.nodes:
        if node.op == "call_function" and not is_getitem(node) and not is_check(node):
            nodes.append(_NODES.node(node))
        elif node.op not in {"placeholder", "call_function", "output"}:
            raise ModelError(f"{node.name} is a {node.op}: expected operators")
    return TorchProgram(name, inputs, constants, tuple(nodes), _outputs(exported))


def without_conversions(decompositions: dict[Any, Any]) -> dict[Any, Any]:
    """Return a table of decompositions without those of operators that have conversions."""
    for overload in CONVERSIONS:
        name, _, variant = overload.partition(".")
        decompositions.pop(getattr(getattr(torch.ops.aten, name, None), variant, None), None)
    return decompositions


def _inputs(exported: ExportedProgram) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the types of inputs, and the values of parameters, buffers and other constants."""
    inputs: dict[str, Any] = {}
    constants: dict[str, Array] = {}
    values = {node.name: node.meta.get("val") for node in exported.graph.nodes}
    for spec in exported.graph_signature.input_specs:
        name = spec.arg.name
        if spec.kind == InputKind.USER_INPUT:
            if not isinstance(values[name], torch.Tensor):
                continue  # a number or None, which the program has as a constant
            require_cpu(f"the input {name}", values[name])
            inputs[name] = _NODES.type_of(values[name])
            continue
        tensor = {**exported.state_dict, **exported.constants}.get(spec.target)
        if not isinstance(tensor, torch.Tensor):
            raise ModelError(f"{spec.target} is no tensor: expected parameters and buffers")
        require_cpu(spec.target, tensor)
        constants[name] = array_of(tensor)
    return inputs, constants


def _outputs(exported: ExportedProgram) -> dict[str, Argument]:
    """Return the results by their names."""
    [output] = [node for node in exported.graph.nodes if node.op == "output"]
    references = [_NODES.argument(value) for value in output.args[0]]
    for spec in exported.graph_signature.output_specs:
        if spec.kind != OutputKind.USER_OUTPUT:
            raise ModelError(
                f"the module changes {spec.target} ({spec.kind.name.lower()}): expected results"
                " alone",
                advice="return the new value as a result",
            )
    names = _output_names(exported, len(references))
    return {
        name: reference
        for name, reference in zip(names, references, strict=True)
        if isinstance(reference, TensorRef)
    }


def _output_names(exported: ExportedProgram, count: int) -> list[str]:
    """Return a name for each result: its keys in what the module returns."""
    structure = exported.call_spec.out_spec
    if structure is None or structure.num_leaves != count:
        return [f"output{number}" for number in range(count)]
    leaves, _ = tree_flatten_with_path(tree_unflatten(list(range(count)), structure))
    return [_name(path, count) for path, _ in leaves]


def _name(path: Any, count: int) -> str:
    words = "".join(c if c.isalnum() else " " for c in keystr(path)).split()
    name = "_".join(words)
    if not name or name[0].isdigit():
        return f"output{name}" if count > 1 else "output"
    return name
