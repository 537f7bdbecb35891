"""The format of a stored cost model: one line of JSON that describes it, then the members' trees.

XGBoost does not check what it loads, so damage must be found before: a model is loaded only if its
header, its lengths and its digest are correct. The module imports no XGBoost, because the store
checks models, too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from tuner.cost_model.cost_model import CostModelError
from tuner.space.registry import SEARCH_SPACES

FORMAT = "loopwright-xgboost"
FORMAT_VERSION = 3


def packed(sizes_bytes: Sequence[int], shares: Sequence[float], trees: bytes, kind: str) -> bytes:
    """Return a stored model: a header line, then the trees of the members."""
    header = {**_versions(kind), "sizes_bytes": list(sizes_bytes), "shares": list(shares)}
    header["sha256"] = _digest(header, trees)
    return json.dumps(header, sort_keys=True).encode() + b"\n" + trees


def check(stored: bytes, kind: str = "cpu") -> None:
    """Check that a stored model can be used here.

    Raises:
        CostModelError: If not, with the reason.
    """
    unpacked(stored, kind)


def unpacked(stored: bytes, kind: str) -> tuple[dict[str, Any], bytes]:
    """Return the header, and the trees of all members one after another.

    Raises:
        CostModelError: If it is not a stored model, is damaged, or has other versions.
    """
    line, newline, trees = stored.partition(b"\n")
    try:
        header = json.loads(line) if newline else None
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise CostModelError(f"expected a stored cost model, not {stored[:16]!r}...")
    for key, expected in _versions(kind).items():
        if header.get(key) != expected:
            raise CostModelError(
                f"the stored cost model has {key} {header.get(key)!r}, this program has "
                f"{expected!r}: train it anew"
            )
    digest = header.pop("sha256", None)
    if digest != _digest(header, trees):
        raise CostModelError("the stored cost model is damaged: train it again")
    return header, trees


def _digest(header: dict[str, Any], trees: bytes) -> str:
    return sha256(json.dumps(header, sort_keys=True).encode() + b"\n" + trees).hexdigest()


def _versions(kind: str) -> dict[str, Any]:
    space = SEARCH_SPACES.find(kind)
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "feature_schema": space.feature_version,
        "num_features": space.num_features,
        # Models for CPUs do not name their kind, for compatibility with the first stored models.
        **({} if kind == "cpu" else {"kind": kind}),
    }
