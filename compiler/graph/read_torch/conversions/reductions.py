"""Reductions, positions of extremes, and cumulative sums."""

from __future__ import annotations

import math

from compiler.graph.error import ModelError
from compiler.graph.nodes import Operand
from compiler.graph.read_torch.call import TorchCall
from compiler.graph.read_torch.registry import aten


def _axes(call: TorchCall, x: Operand) -> tuple[int, ...]:
    """Return the axes that are reduced: without any, all of them."""
    axes = call.integers("dim") if "dim" in call.node.arguments else ()
    return tuple(axis % max(x.type.rank, 1) for axis in axes) or tuple(range(x.type.rank))


def _keepdims(call: TorchCall) -> bool:
    return "keepdim" in call.node.arguments and call.flag("keepdim")


def _reduced(call: TorchCall, op: str, x: Operand) -> Operand:
    if x.type.rank == 0:
        return x
    axes = _axes(call, x)
    if any(x.type.shape[axis] == 0 for axis in axes):
        raise ModelError(f"{call.overload} of no elements is not supported")
    return call.add(op, x, axis=axes, keepdims=_keepdims(call))


@aten(
    *("sum.default", "sum.dim_IntList", "mean.default", "mean.dim"),
    *("prod.default", "prod.dim_int", "amax.default", "amin.default", "max.default", "min.default"),
    "logsumexp.default",
)
def _reduction(call: TorchCall) -> Operand:
    op = call.overload.partition(".")[0]
    x = call.cast(call.operand("self"), call.result().dtype)
    if x.type.dtype == "bool":  # an extreme of truth values
        return call.cast(_reduced(call, _plain_name(op), call.cast(x, "uint8")), "bool")
    return _reduced(call, _plain_name(op), x)


def _plain_name(op: str) -> str:
    return {"amax": "max", "amin": "min"}.get(op, op)


@aten("any.default", "any.dim", "any.dims", "all.default", "all.dim", "all.dims")
def _any_or_all(call: TorchCall) -> Operand:
    truth = call.cast(call.cast(call.operand("self"), "bool"), "uint8")
    op = "max" if call.overload.startswith("any") else "min"
    return call.cast(_reduced(call, op, truth), call.result().dtype)


@aten("var.correction", "var_mean.correction")
def _variance(call: TorchCall) -> tuple[Operand, Operand]:
    x = call.operand("self")
    axes = _axes(call, x)
    mean = call.add("mean", x, axis=axes, keepdims=True)
    centred = call.add("subtract", x, mean)
    squares = call.add("multiply", centred, centred)
    total = call.add("sum", squares, axis=axes, keepdims=_keepdims(call))
    correction = call.argument("correction")
    taken = 1 if correction is None else call.number("correction")
    divisor = math.prod(x.type.static_shape[axis] for axis in axes) - taken
    variance = call.add("divide", total, call.like(x, max(divisor, 0)))
    return variance, mean if _keepdims(call) else call.add("squeeze", mean, axis=axes)


@aten("argmax.default", "argmin.default")
def _position(call: TorchCall) -> Operand:
    x, op = call.operand("self"), call.overload.partition(".")[0]
    if call.argument("dim") is not None:
        return call.add(op, x, axis=call.integer("dim"), keepdims=call.flag("keepdim"))
    flat = call.reshaped(x, (x.type.num_elements,))
    return call.reshaped(call.add(op, flat, axis=0), call.result().static_shape)


@aten("max.dim", "min.dim")
def _extreme(call: TorchCall) -> tuple[Operand, Operand | None]:
    x, op = call.operand("self"), call.overload.partition(".")[0]
    axis, keepdims = call.integer("dim"), call.flag("keepdim")
    extreme = _reduced(call, op, x)
    if not call.wants(1):
        return extreme, None
    return extreme, call.add(f"arg{op}", x, axis=axis, keepdims=keepdims)


@aten("cumsum.default", "cumprod.default")
def _cumulative(call: TorchCall) -> Operand:
    x = call.cast(call.operand("self"), call.result().dtype)
    if x.type.rank == 0:
        return x
    return call.add(call.overload.partition(".")[0], x, axis=call.integer("dim"))


@aten("linalg_vector_norm.default")
def _norm(call: TorchCall) -> Operand:
    x, order = call.cast(call.operand("self"), call.result().dtype), call.number("ord")
    if order == 2:
        return call.add("sqrt", _reduced(call, "sum", call.add("multiply", x, x)))
    if order in {1, math.inf}:
        return _reduced(call, "sum" if order == 1 else "max", call.add("abs", x))
    raise ModelError(f"ord is {order}: expected 1, 2 or inf")
