"""Cursors: where a page of a list ended, opaque to clients."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence

from service.errors import Flaw, InvalidRequestError

DEFAULT_LIMIT = 50
MAX_LIMIT = 500
MAX_INT = 2**63 - 1
"""The largest number that a column holds; a cursor may claim any."""


def encode(*keys: str | int) -> str:
    """Return the cursor of the place after the row with these keys."""
    text = json.dumps(keys, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode(cursor: str, *types: type) -> Sequence[str | int]:
    """Return the keys that a cursor holds, one of each of `types`.

    Raises:
        InvalidRequestError: If we did not make this cursor for this list.
    """
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        keys = json.loads(text)
    except (ValueError, RecursionError):
        keys = None
    if not isinstance(keys, list) or [type(key) for key in keys] != list(types):
        raise bad_cursor(cursor)
    if any(isinstance(key, int) and abs(key) > MAX_INT for key in keys):
        raise bad_cursor(cursor)
    return keys


def bad_cursor(cursor: str) -> InvalidRequestError:
    """Return the error of a cursor that is not ours."""
    detail = f"cursor {cursor[:100]!r} is not one that this list gave out"
    return InvalidRequestError(detail, Flaw(detail, "query/cursor"))
