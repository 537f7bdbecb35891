"""Stored cost models: one line of JSON that says what it is, then the trees of each member.

XGBoost trusts what it loads, so damage has to be found before: a model is loaded only if its
header, its lengths and its digest are right.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import xgboost

from tuner.cost_model.boosting import Member
from tuner.cost_model.cost_model import CostModelError
from tuner.space.features import NUM_FEATURES, SCHEMA_VERSION

FORMAT = "loopwright-xgboost"
FORMAT_VERSION = 2


def encode(members: Sequence[Member]) -> bytes:
    """Return a header line, then the trees of the members in XGBoost's UBJSON."""
    parts = [bytes(member.trees.save_raw("ubj")) for member in members]
    header = {
        **_versions(),
        "sizes_bytes": [len(part) for part in parts],
        "shares": [member.share for member in members],
    }
    trees = b"".join(parts)
    header["sha256"] = _digest(header, trees)
    return json.dumps(header, sort_keys=True).encode() + b"\n" + trees


def decode(stored: bytes) -> list[Member]:
    """Load the members of a stored model.

    Raises:
        CostModelError: If it is no such model, damaged, or of other versions than this program's.
    """
    header, content = _checked(stored)
    members = []
    start = 0
    for size, share in zip(header["sizes_bytes"], header["shares"], strict=True):
        trees = xgboost.Booster({"nthread": 1})
        trees.load_model(bytearray(content[start : start + size]))
        members.append(Member(trees, share))
        start += size
    return members


def check(stored: bytes) -> None:
    """See that a stored model can be used here.

    Raises:
        CostModelError: If not; says why.
    """
    _checked(stored)


def _checked(stored: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the header, and the trees of all members one after another."""
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
