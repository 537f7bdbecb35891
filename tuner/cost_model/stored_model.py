"""Store and load cost models; `tuner.cost_model.stored_format` describes the bytes."""

from __future__ import annotations

from collections.abc import Sequence

from tuner.cost_model.boosting import Member, load_trees
from tuner.cost_model.stored_format import packed, unpacked


def encode(members: Sequence[Member], kind: str = "cpu") -> bytes:
    """Return a header line, then the trees of the members in XGBoost's UBJSON."""
    parts = [bytes(member.trees.save_raw("ubj")) for member in members]
    shares = [member.share for member in members]
    return packed([len(tree_bytes) for tree_bytes in parts], shares, b"".join(parts), kind)


def decode(stored: bytes, kind: str = "cpu") -> list[Member]:
    """Load the members of a stored model.

    Raises:
        CostModelError: If it is not a stored model, is damaged, or has other versions.
    """
    header, content = unpacked(stored, kind)
    members = []
    start = 0
    for size, share in zip(header["sizes_bytes"], header["shares"], strict=True):
        members.append(Member(load_trees(content[start : start + size]), share))
        start += size
    return members
