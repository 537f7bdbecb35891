"""A workload of a request: parsed and checked, but not stored yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class NewWorkload:
    """A parsed and checked workload of a request."""

    key: str
    name: str
    script: str
    flops: int
    operator_key: str | None = None
    shape: Mapping[str, Any] | None = None
    dtype: str | None = None
