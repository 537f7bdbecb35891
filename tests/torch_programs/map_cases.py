"""Programs that compute element by element, and that make tensors; importing it adds them."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812 - its usual name

from tests.torch_programs.case import (
    case,
    divisors,
    floats,
    image,
    integers,
    numbers,
    positive,
    special,
    truths,
    unit,
    x,
    y,
)

aten = torch.ops.aten

for _name in [
    "abs",
    "cos",
    "cosh",
    "erf",
    "exp",
    "neg",
    "sgn",
    "sign",
    "sigmoid",
    "sin",
    "sinh",
    "tan",
    "tanh",
    "atan",
    "asinh",
]:
    case(_name, getattr(torch, _name), x)
for _name in ["acos", "asin", "atanh"]:
    case(_name, getattr(torch, _name), unit(5))
for _name in ["log", "log2", "log10", "reciprocal", "rsqrt", "sqrt"]:
    case(_name, getattr(torch, _name), positive(5))
case("acosh", lambda a: torch.acosh(a + 1), positive(5))
for _name in ["floor", "ceil", "trunc", "round", "isnan", "isinf"]:
    case(_name, getattr(torch, _name), floats(5))
    case(f"{_name} of integers", getattr(torch, _name), numbers)
case("isnan and isinf of special values", lambda a: (a.isnan(), a.isinf()), special)
case("sqrt of integers", torch.sqrt, integers(1, 9, 5))
case("logical_not", torch.logical_not, numbers)
case("bitwise_not", lambda a, b: (~a, ~b), numbers, truths(4))
case("nan_to_num", lambda a: (a.nan_to_num(), a.nan_to_num(1, 2, 3)), special)

for _name in [
    "relu",
    "silu",
    "mish",
    "hardswish",
    "hardsigmoid",
    "relu6",
    "selu",
    "softsign",
    "tanhshrink",
]:
    case(_name, getattr(F, _name), lambda: torch.randn(3, 5) * 4)
case("logsigmoid", F.logsigmoid, x)
case("gelu", lambda a: (F.gelu(a), F.gelu(a, approximate="tanh")), x)
case("leaky_relu", lambda a: (F.leaky_relu(a), F.leaky_relu(a, 0.3)), x)
case("elu", lambda a: (F.elu(a), F.elu(a, 0.5)), x)
case("celu", lambda a: F.celu(a, 0.5), x)
case("softplus", lambda a: (F.softplus(a), F.softplus(a, 2, 1)), x)
case("shrink", lambda a: (F.softshrink(a), F.hardshrink(a, 0.3)), x)
case("prelu", F.prelu, image, floats(4))
case("glu", lambda a: F.glu(a, 2), x)
case("hardtanh", lambda a: F.hardtanh(a, -0.5, 0.25), x)
case("threshold", lambda a: F.threshold(a, 0.1, 20), x)
case("clamp", lambda a: (a.clamp(-0.5, 0.5), a.clamp(min=0), a.clamp(max=0.25)), x)
case("clamp of integers", lambda a: (a.clamp(-3, 4), a.clamp(-2.5, 4)), numbers)
case("clamp by tensors", lambda a, b: torch.clamp(a, b, b + 1), x, floats(4))

for _name in ["add", "sub", "mul", "div", "maximum", "minimum", "remainder", "fmod", "rsub"]:
    case(_name, getattr(torch, _name), x, floats(3, 1))
    case(f"{_name} of integers", getattr(torch, _name), numbers, divisors)
    case(f"{_name} of types", getattr(torch, _name), integers(1, 9, 3, 4), positive(4))
case("scaled sums", lambda a, b: (torch.add(a, b, alpha=2), torch.sub(a, b, alpha=3)), x, y)
case("rsub scaled", lambda a, b: torch.rsub(a, b, alpha=2), x, y)
case("numbers", lambda a: (a + 1, 2 - a, a * 0.5, a / 3, 1 / a, a // 2, a % 3), positive(4))
case("integers and numbers", lambda a: (a + 1, a * 2.5, a / 2, a // 2, a % 3), numbers)
case(
    "bools", lambda a, b: (a + b, a * b, torch.maximum(a, b), a & b, a | b, a ^ b), *[truths(4)] * 2
)
case("bools and numbers", lambda a: (a + 1, a * 2.5), truths(4))
case("rank 0", lambda a, b: (a + b, a * b.long(), (a.long() + b)), x, lambda: torch.tensor(2.5))
case(
    "narrow floats",
    lambda a, b: a * b + 1,
    floats(6, dtype=torch.bfloat16),
    floats(6, dtype=torch.bfloat16),
)
case(
    "half and bfloat16", torch.add, floats(6, dtype=torch.float16), floats(6, dtype=torch.bfloat16)
)
case(
    "widths of integers",
    torch.add,
    integers(0, 9, 4, dtype=torch.uint8),
    integers(-9, 0, 4, dtype=torch.int8),
)
for _mode in ("floor", "trunc"):
    _div = lambda a, b, mode=_mode: torch.div(a, b, rounding_mode=mode)  # noqa: E731
    case(f"div by {_mode}", _div, x, floats(3, 1))
    case(f"div by {_mode} of integers", _div, numbers, lambda: torch.tensor([-3, 2, 4, -1]))
case("floor_divide", lambda a: a.floor_divide(0.1), lambda: torch.tensor([1.0, -1.0, 0.3, 0.35]))
case(
    "floor_divide by zero",
    lambda a, b: a // b,
    lambda: torch.tensor([1.0, -1.0, 0.0]),
    lambda: torch.zeros(3),
)
case("pow", lambda a: (a**2, a**3, a**0.5, a**-1.5, 2**a), positive(4))
case("pow of tensors", torch.pow, positive(4), floats(4))
case("pow of integers", lambda a: (a**2, a**5, a**2.0), numbers)
case("bits", lambda a, b: (a & b, a | b, a ^ b, a & 3, a | 3, a ^ 3), numbers, numbers)
case(
    "shifts",
    lambda a, b: (a << b, a >> b, torch.bitwise_left_shift(a, b), torch.bitwise_right_shift(a, b)),
    numbers,
    divisors,
)

for _name in ["eq", "ne", "lt", "le", "gt", "ge"]:
    _compare = getattr(torch, _name)
    case(_name, lambda a, b, f=_compare: (f(a, b), f(a, 1)), numbers, divisors)
    case(f"{_name} of types", lambda a, b, f=_compare: (f(a, b), f(a, 1.5)), numbers, floats(4))
case(
    "logic", lambda a, b: (a.logical_and(b), a.logical_or(b), a.logical_xor(b)), numbers, truths(4)
)
case("where", torch.where, truths(3, 4), numbers, floats(4))
case("where of numbers", lambda a: torch.where(a > 0, a, -1), x)
case("masked_fill", lambda a, b: a.masked_fill(b, -float("inf")), x, truths(3, 4))
case(
    "types", lambda a: (a.int(), a.bool(), a.double(), a.half(), a.bfloat16(), a.to(torch.int8)), x
)
case("copies", lambda a: (a.clone(), a.detach() + 1, a.contiguous(), aten.alias(a)), x)
case("constant", lambda a: a + torch.tensor([1.0, 2.0, 3.0, 4.0]), x)

case("full", lambda a: (torch.full((2, 3), 1.5) + a[0, 0, 0], torch.zeros(3) * a[0, 0, 0]), x)
case("full_like", lambda a: (torch.full_like(a, 2), torch.zeros_like(a), torch.ones_like(a)), x)
case(
    "creation",
    lambda a: (aten.zeros([2]), aten.ones([3]), aten.zeros_like(a), aten.ones_like(a)),
    x,
)
case(
    "arange",
    lambda a: (torch.arange(4) + a, torch.arange(1, 9, 2.0) * a, torch.arange(0, 3, 0.8)),
    x,
)
case("scalar_tensor", lambda a: a * torch.scalar_tensor(2.5), x)
case("eye", lambda a: a @ torch.eye(4), x)
