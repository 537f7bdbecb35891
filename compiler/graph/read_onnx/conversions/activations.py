"""The activations of recurrent layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from compiler.graph.error import ModelError
from compiler.graph.nodes import Operand
from compiler.graph.read_onnx.call import OnnxCall

Activation: TypeAlias = Callable[[Operand], Operand]

_PLAIN = {
    "relu": "nn.relu",
    "sigmoid": "sigmoid",
    "softplus": "nn.softplus",
    "softsign": "nn.softsign",
    "tanh": "tanh",
}

_WITH_NUMBERS: dict[str, tuple[str, dict[str, float]]] = {
    "affine": ("", {"alpha": 1.0, "beta": 0.0}),
    "elu": ("nn.elu", {"alpha": 1.0}),
    "hardsigmoid": ("nn.hard_sigmoid", {"alpha": 0.2, "beta": 0.5}),
    "leakyrelu": ("nn.leakyrelu", {"alpha": 0.01}),
    "scaledtanh": ("tanh", {"alpha": 1.0, "beta": 1.0}),
    "thresholdedrelu": ("nn.thresholded_relu", {"alpha": 1.0}),
}


def activations(call: OnnxCall, default: Sequence[str], directions: int) -> list[list[Activation]]:
    """Return the activations of each direction of a recurrent layer.

    Args:
        call: The layer.
        default: The names of the activations of a direction, unless the layer names others.
        directions: The number of directions.

    Raises:
        ModelError: If there are more or fewer, or one is unknown.
    """
    names = activation_names(call, default, directions)
    alphas = iter(call.floats_attr("activation_alpha", ()))
    betas = iter(call.floats_attr("activation_beta", ()))
    functions = [_activation(call, name, alphas, betas) for name in names]
    size = len(default)
    return [functions[start : start + size] for start in range(0, len(functions), size)]


def activation_names(call: OnnxCall, default: Sequence[str], directions: int) -> list[str]:
    """Return the names of the activations of all directions, in small letters.

    Raises:
        ModelError: If there are more or fewer than the layer has.
    """
    names = call.strings_attr("activations", tuple(default) * directions)
    if len(names) != len(default) * directions:
        raise ModelError(f"activations are {names}: expected {len(default) * directions}")
    return [name.lower() for name in names]


def _activation(
    call: OnnxCall, name: str, alphas: Iterator[float], betas: Iterator[float]
) -> Activation:
    if name in _PLAIN:
        return lambda x: call.add(_PLAIN[name], x)
    if name not in _WITH_NUMBERS:
        raise ModelError(f"the activation {name} is not known")
    op, defaults = _WITH_NUMBERS[name]
    given = {"alpha": alphas, "beta": betas}
    numbers = {key: next(given[key], default) for key, default in defaults.items()}

    def scaled(x: Operand, factor: float) -> Operand:
        return call.add("multiply", x, call.like(x, factor))

    if name == "scaledtanh":
        return lambda x: scaled(call.add(op, scaled(x, numbers["beta"])), numbers["alpha"])
    if name == "affine":
        return lambda x: call.add("add", scaled(x, numbers["alpha"]), call.like(x, numbers["beta"]))
    return lambda x: call.add(op, x, **numbers)
