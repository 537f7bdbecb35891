"""Conditional requests: answer 304 if the client has the current version."""

from __future__ import annotations

from typing import Any

NOT_MODIFIED: dict[int | str, dict[str, Any]] = {
    304: {"model": None, "description": "What you have is what would be sent"}
}


def quoted(tag: str) -> str:
    """Return an entity tag in the form of its header."""
    return f'"{tag}"'


def has_it(if_none_match: str | None, etag: str) -> bool:
    """Return whether an If-None-Match header names `etag`; weak tags compare as strong ones."""
    if if_none_match is None:
        return False
    tags = {tag.strip().removeprefix("W/") for tag in if_none_match.split(",")}
    return "*" in tags or etag in tags
