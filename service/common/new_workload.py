"""A workload as it comes in: read and checked, and not stored yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class NewWorkload:
    """A workload as it comes in."""

    key: str
    name: str
    script: str
    flops: int
    operator_key: str | None = None
    shape: Mapping[str, Any] | None = None
    dtype: str | None = None
