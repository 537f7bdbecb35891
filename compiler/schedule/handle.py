"""Handles: the random variables of a trace. Each stands for a block, a loop or an integer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, eq=False)
class BlockRV:
    """A block of the program under schedule."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class LoopRV:
    """A loop of the program under schedule."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class ExprRV:
    """An integer that a sampling instruction chose."""

    name: str


Handle: TypeAlias = BlockRV | LoopRV | ExprRV
