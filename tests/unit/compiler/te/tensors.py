"""Tensors that tests compute on."""

from __future__ import annotations

from typing import Any

from compiler import te


def matrix(name: str = "A", m: int = 4, n: int = 4, dtype: Any = "float32") -> te.Tensor:
    return te.placeholder((m, n), dtype, name=name)
