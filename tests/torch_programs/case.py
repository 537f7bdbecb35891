"""Small programs of ATen operators by name, and what makes their arguments."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

Function: TypeAlias = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """A function of tensors.

    Attributes:
        function: The function, or what makes a module.
        inputs: What makes the arguments.
    """

    function: Function
    inputs: tuple[Callable[[], Tensor], ...]

    def module(self, name: str) -> tuple[nn.Module, tuple[Tensor, ...]]:
        """Return a module in evaluation mode and its arguments, the same each time."""
        torch.manual_seed(zlib.crc32(name.encode()))
        is_module = isinstance(self.function, type)
        module = self.function() if is_module else _Function(self.function)
        return module.eval(), tuple(make() for make in self.inputs)


class _Function(nn.Module):  # type: ignore[misc]
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs)


def floats(*shape: int, dtype: torch.dtype = torch.float32) -> Callable[[], Tensor]:
    """Return what makes a tensor of normal numbers."""
    return lambda: torch.randn(*shape).to(dtype)


def positive(*shape: int) -> Callable[[], Tensor]:
    """Return what makes a tensor of numbers from 0.5 to 1.5."""
    return lambda: torch.rand(*shape) + 0.5


def unit(*shape: int) -> Callable[[], Tensor]:
    """Return what makes a tensor of numbers within -0.9 and 0.9."""
    return lambda: torch.rand(*shape) * 1.8 - 0.9


def integers(low: int, high: int, *shape: int, dtype: Any = torch.int64) -> Callable[[], Tensor]:
    """Return what makes a tensor of integers, `high` excluded."""
    return lambda: torch.randint(low, high, shape).to(dtype)


def truths(*shape: int) -> Callable[[], Tensor]:
    """Return what makes a tensor of truth values."""
    return lambda: torch.rand(*shape) > 0.4


def special() -> Tensor:
    """Return infinities, NaN and numbers."""
    return torch.tensor([1.0, float("inf"), -float("inf"), float("nan"), -2.5, 0.0])


x, y = floats(2, 3, 4), floats(2, 3, 4)
image = floats(2, 4, 6, 8)
numbers = integers(-9, 9, 3, 4)
divisors = integers(1, 5, 4)

CASES: dict[str, Case] = {}


def case(name: str, function: Function, *inputs: Callable[[], Tensor]) -> None:
    """Add a case."""
    assert name not in CASES, name
    CASES[name] = Case(function, inputs)
