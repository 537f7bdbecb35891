"""Operators that map elements: functions, arithmetic, comparisons, choices, conversions."""

from __future__ import annotations

import math
from collections.abc import Callable

from compiler.graph.error import ModelError
from compiler.graph.nodes import Operand
from compiler.graph.read_torch.call import TorchCall
from compiler.graph.read_torch.program import TensorRef
from compiler.graph.read_torch.promotion import common_dtype
from compiler.graph.read_torch.registry import Conversion, aten
from compiler.ir.core.dtypes import is_float, smallest_and_largest

_FUNCTIONS = {
    "abs": "abs",
    "acos": "acos",
    "acosh": "acosh",
    "asin": "asin",
    "asinh": "asinh",
    "atan": "atan",
    "atanh": "atanh",
    "cos": "cos",
    "cosh": "cosh",
    "erf": "erf",
    "exp": "exp",
    "hardswish": "nn.hard_swish",
    "log": "log",
    "mish": "nn.mish",
    "neg": "negative",
    "reciprocal": "reciprocal",
    "relu": "nn.relu",
    "rsqrt": "rsqrt",
    "sgn": "sign",
    "sigmoid": "sigmoid",
    "sign": "sign",
    "silu": "nn.silu",
    "sin": "sin",
    "sinh": "sinh",
    "sqrt": "sqrt",
    "tan": "tan",
    "tanh": "tanh",
}
"""Functions of one tensor; those of floats take integers too, and return floats."""


def _function(op: str) -> Conversion:
    def convert(call: TorchCall) -> Operand:
        return call.add(op, call.cast(call.operand("self"), call.result().dtype))

    return convert


for _name, _op in _FUNCTIONS.items():
    aten(f"{_name}.default")(_function(_op))


@aten("floor.default", "ceil.default", "trunc.default", "round.default")
def _rounded(call: TorchCall) -> Operand:
    x = call.operand("self")
    return call.add(call.overload.partition(".")[0], x) if is_float(x.type.dtype) else x


@aten("log2.default", "log10.default")
def _logarithm(call: TorchCall) -> Operand:
    natural = call.add("log", call.cast(call.operand("self"), call.result().dtype))
    base = 2 if call.overload == "log2.default" else 10
    return call.add("multiply", natural, call.like(natural, 1 / math.log(base)))


@aten("isnan.default", "isinf.default")
def _is_special(call: TorchCall) -> Operand:
    x = call.operand("self")
    if not is_float(x.type.dtype):
        return call.expanded(call.scalar(False, "bool"), x.type.static_shape)
    return call.add(call.overload.partition(".")[0], x)


@aten("logical_not.default")
def _logical_not(call: TorchCall) -> Operand:
    return call.add("logical_not", call.cast(call.operand("self"), "bool"))


@aten("bitwise_not.default")
def _bitwise_not(call: TorchCall) -> Operand:
    x = call.operand("self")
    return call.add("logical_not" if x.type.dtype == "bool" else "bitwise_not", x)


# Activations with numbers


@aten("gelu.default")
def _gelu(call: TorchCall) -> Operand:
    is_exact = call.word("approximate") == "none"
    return call.add("nn.gelu" if is_exact else "nn.gelu_tanh", call.operand("self"))


@aten("leaky_relu.default")
def _leaky_relu(call: TorchCall) -> Operand:
    return call.add(
        "nn.leakyrelu", call.operand("self"), alpha=float(call.number("negative_slope"))
    )


@aten("elu.default")
def _elu(call: TorchCall) -> Operand:
    x = call.operand("self")
    alpha, scale = float(call.number("alpha")), float(call.number("scale"))
    if call.number("input_scale") != 1:
        raise ModelError(f"input_scale is {call.number('input_scale')}: expected 1")
    if scale != 1:
        return call.add("nn.selu", x, alpha=alpha, gamma=scale)
    return call.add("nn.elu", x, alpha=alpha)


@aten("hardsigmoid.default")
def _hard_sigmoid(call: TorchCall) -> Operand:
    return call.add("nn.hard_sigmoid", call.operand("self"), alpha=1 / 6, beta=0.5)


@aten("softplus.default")
def _softplus(call: TorchCall) -> Operand:
    x, beta = call.operand("self"), call.number("beta")
    scaled = x if beta == 1 else call.add("multiply", x, call.like(x, beta))
    result = call.add("nn.softplus", scaled)
    if beta != 1:
        result = call.add("divide", result, call.like(x, beta))
    is_linear = call.add("greater", scaled, call.like(x, call.number("threshold")))
    return call.add("where", is_linear, x, result)


@aten("celu.default")
def _celu(call: TorchCall) -> Operand:
    return call.add("nn.celu", call.operand("self"), alpha=float(call.number("alpha")))


@aten("log_sigmoid_forward.default")
def _log_sigmoid(call: TorchCall) -> tuple[Operand, None]:
    x = call.operand("self")
    return call.add("negative", call.add("nn.softplus", call.add("negative", x))), None


@aten("_prelu_kernel.default")
def _prelu(call: TorchCall) -> Operand:
    return call.add("nn.prelu", call.operand("self"), call.operand("weight"))


# Limits


@aten("clamp.default", "hardtanh.default")
def _clamp(call: TorchCall) -> Operand:
    low, high = ("min", "max") if call.overload == "clamp.default" else ("min_val", "max_val")
    x = call.cast(call.operand("self"), call.result().dtype)
    least = -math.inf if call.argument(low) is None else call.number(low)
    most = math.inf if call.argument(high) is None else call.number(high)
    return call.add("clip", x, min=float(least), max=float(most))


@aten("clamp.Tensor")
def _clamp_tensor(call: TorchCall) -> Operand:
    dtype = call.result().dtype
    x = call.cast(call.operand("self"), dtype)
    for name, op in (("min", "maximum"), ("max", "minimum")):
        limit = call.optional(name)
        x = x if limit is None else call.add(op, x, call.cast(limit, dtype))
    return x


# Arithmetic


def _both(call: TorchCall) -> tuple[Operand, Operand]:
    """Return both operands in the type of the result."""
    dtype = call.result().dtype
    return call.number_or_operand("self", dtype), call.number_or_operand("other", dtype)


def _plain(op: str, of_bools: str = "") -> Conversion:
    def convert(call: TorchCall) -> Operand:
        left, right = _both(call)
        return call.add(of_bools if left.type.dtype == "bool" else op, left, right)

    return convert


aten("mul.Tensor", "mul.Scalar")(_plain("multiply", "logical_and"))
aten("maximum.default")(_plain("maximum", "logical_or"))
aten("minimum.default")(_plain("minimum", "logical_and"))
aten("remainder.Tensor", "remainder.Scalar")(_plain("mod"))
aten("fmod.Tensor")(_plain("fmod"))
aten("bitwise_and.Tensor", "bitwise_and.Scalar")(_plain("bitwise_and", "logical_and"))
aten("bitwise_or.Tensor", "bitwise_or.Scalar")(_plain("bitwise_or", "logical_or"))
aten("bitwise_xor.Tensor", "bitwise_xor.Scalar")(_plain("bitwise_xor", "logical_xor"))
aten("bitwise_left_shift.Tensor", "__lshift__.Tensor")(_plain("left_shift"))
aten("bitwise_right_shift.Tensor", "__rshift__.Tensor")(_plain("right_shift"))


def _scaled(call: TorchCall, x: Operand, name: str) -> Operand:
    factor = call.number(name)
    return x if factor == 1 else call.add("multiply", x, call.like(x, factor))


@aten("add.Tensor", "add.Scalar")
def _add(call: TorchCall) -> Operand:
    left, right = _both(call)
    if left.type.dtype == "bool":
        return call.add("logical_or", left, right)
    return call.add("add", left, _scaled(call, right, "alpha"))


@aten("sub.Tensor", "sub.Scalar")
def _subtract(call: TorchCall) -> Operand:
    left, right = _both(call)
    return call.add("subtract", left, _scaled(call, right, "alpha"))


@aten("rsub.Tensor", "rsub.Scalar")
def _subtract_from(call: TorchCall) -> Operand:
    left, right = _both(call)
    return call.add("subtract", right, _scaled(call, left, "alpha"))


@aten("div.Tensor", "div.Scalar", "div.Tensor_mode", "floor_divide.default")
def _divide(call: TorchCall) -> Operand:
    left, right = _both(call)
    mode = {
        "div.Tensor_mode": call.node.arguments.get("rounding_mode"),
        "floor_divide.default": "floor",
    }.get(call.overload)
    if not is_float(left.type.dtype):
        return call.add("floor_divide" if mode == "floor" else "divide", left, right)
    quotient = call.add("divide", left, right)
    if mode == "trunc":
        return call.add("trunc", quotient)
    if mode is None:
        return quotient
    # The quotient may have been rounded up to an integer: 1.0 // 0.1 is 9.
    rest = call.add("subtract", left, call.add("mod", left, right))
    whole = call.add("round", call.add("divide", rest, right))
    is_zero = call.add("equal", right, call.like(right, 0))
    return call.add("where", is_zero, quotient, whole)


@aten("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar")
def _power(call: TorchCall) -> Operand:
    dtype = call.result().dtype
    base = call.number_or_operand("self", dtype)
    exponent = call.argument("exponent")
    if exponent == 0.5 and is_float(dtype):
        return call.add("sqrt", base)
    if isinstance(exponent, int | float) and exponent in {1, 2, 3}:
        result = base
        for _ in range(int(exponent) - 1):
            result = call.add("multiply", result, base)
        return result
    return call.add("power", base, call.number_or_operand("exponent", dtype))


# Comparisons, logic, choices

_COMPARISONS = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}


def _comparison(op: str) -> Conversion:
    def convert(call: TorchCall) -> Operand:
        other = call.argument("other")
        right = call.operand("other") if isinstance(other, TensorRef) else call.number("other")
        dtype = common_dtype([call.operand("self"), right])
        left = call.cast(call.operand("self"), dtype)
        return call.add(op, left, call.number_or_operand("other", dtype))

    return convert


for _name, _op in _COMPARISONS.items():
    aten(f"{_name}.Tensor", f"{_name}.Scalar")(_comparison(_op))


@aten("logical_and.default", "logical_or.default", "logical_xor.default")
def _logical(call: TorchCall) -> Operand:
    operands = (call.cast(call.operand(name), "bool") for name in ("self", "other"))
    return call.add(call.overload.partition(".")[0], *operands)


@aten("where.self")
def _where(call: TorchCall) -> Operand:
    return call.add("where", call.cast(call.operand("condition"), "bool"), *_both(call))


# Conversions of types, and what changes nothing


@aten("_to_copy.default")
def _converted(call: TorchCall) -> Operand:
    return call.cast(call.operand("self"), call.result().dtype)


@aten("copy.default")
def _copied(call: TorchCall) -> Operand:
    result = call.result()
    return call.expanded(call.cast(call.operand("src"), result.dtype), result.static_shape)


@aten("alias.default", "clone.default", "detach.default")
def _same(call: TorchCall) -> Operand:
    return call.operand("self")


@aten("nan_to_num.default")
def _nan_to_num(call: TorchCall) -> Operand:
    x = call.operand("self")
    if not is_float(x.type.dtype):
        return x
    least, most = smallest_and_largest(x.type.dtype)
    numbers = [
        default if call.argument(name) is None else call.number(name)
        for name, default in (("nan", 0.0), ("posinf", most), ("neginf", least))
    ]
    choices: list[Callable[[], Operand]] = [
        lambda: call.add("isnan", x),
        lambda: call.add("isinf", x, detect_negative=False),
        lambda: call.add("isinf", x, detect_positive=False),
    ]
    result = x
    for is_chosen, number in zip(choices, numbers, strict=True):
        result = call.add("where", is_chosen(), call.like(x, number), result)
    return result
