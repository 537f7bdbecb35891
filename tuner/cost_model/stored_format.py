"""What a stored cost model is: one line of JSON that describes it, then the trees of each member.

XGBoost trusts what it loads, so damage has to be found before: a model is loaded only if its
header, its lengths and its digest are correct. Imports no XGBoost: the store checks models, too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from tuner.cost_model.cost_model import CostModelError
from tuner.space.features.features import NUM_FEATURES, SCHEMA_VERSION

FORMAT = "loopwright-xgboost"
FORMAT_VERSION = 2


def packed(sizes_bytes: Sequence[int], shares: Sequence[float], trees: bytes) -> bytes:
    """Return a stored model: a header line, then the trees of the members."""
    header = {**_versions(), "sizes_bytes": list(sizes_bytes), "shares": list(shares)}
    header["sha256"] = _digest(header, trees)
    return json.dumps(header, sort_keys=True).encode() + b"\n" + trees


def check(stored: bytes) -> None:
    """See that a stored model can be used here.

    Raises:
        CostModelError: If not; says why.
    """
    unpacked(stored)


def unpacked(stored: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the header, and the trees of all members one after another.

    Raises:
        CostModelError: If it is no such model, damaged, or of other versions than this program's.
    """
    line, newline, trees = stored.partition(b"\n")
    try:
        header = json.loads(line) if newline else None
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise CostModelError(f"expected a stored cost model, not {stored[:16]!r}...")
    for key, wanted in _versions().items():
        if header.get(key) != wanted:
            raise CostModelError(
                f"the stored cost model has {key} {header.get(key)!r}, this program has "
                f"{wanted!r}: train it anew"
            )
    digest = header.pop("sha256", None)
    if digest != _digest(header, trees):
        raise CostModelError("the stored cost model is damaged: train it anew")
    return header, trees


def _digest(header: dict[str, Any], trees: bytes) -> str:
    return sha256(json.dumps(header, sort_keys=True).encode() + b"\n" + trees).hexdigest()


def _versions() -> dict[str, Any]:
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "feature_schema": SCHEMA_VERSION,
        "num_features": NUM_FEATURES,
    }
