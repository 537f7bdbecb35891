"""Pages of lists: sorted, filtered, and continued by a cursor that is opaque to clients.

A cursor holds the keys of the last row of a page, the order, and a digest of the filters. The next
page begins after those keys, so concurrent inserts and deletes neither repeat nor hide rows.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias
from uuid import UUID

from sqlalchemy import ColumnElement, Row, Select, and_, literal, or_, tuple_
from sqlalchemy.orm import Session

from service.common.errors import Flaw, UnprocessableError

DEFAULT_LIMIT = 50
"""Rows of a page: a screen or two. Chosen."""
MAX_LIMIT = 500
"""Rows of the largest page: bounds the time and the size of an answer. Chosen."""
MAX_INT = 2**63 - 1
"""The largest number that a column holds; a forged cursor may hold a larger one."""

Value: TypeAlias = str | int | float | None


@dataclass(frozen=True)
class CursorKey:
    """A column that a list is sorted by, and the type of its values; nulls come last."""

    column: Any
    kind: type[int | float | str | datetime | UUID]
    is_nullable: bool = False


@dataclass(frozen=True)
class ListRequest:
    """A request for a page of a list: `sort` names an order; a leading `-` reverses it."""

    sort: str
    filters: Mapping[str, Any]
    limit: int
    cursor: str | None

    @property
    def digest(self) -> str:
        """Return a digest of the filters."""
        text = json.dumps(self.filters, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def is_descending(self) -> bool:
        """Return whether the order is descending."""
        return self.sort.startswith("-")


@dataclass(frozen=True)
class ListPage:
    """The rows of a page, without their keys, and the cursor of the next page."""

    rows: Sequence[Sequence[Any]]
    next_cursor: str | None


def page(
    session: Session,
    query: Select[*tuple[Any, ...]],
    keys: Sequence[CursorKey],
    request: ListRequest,
) -> ListPage:
    """Return a page of the rows of a query.

    Args:
        keys: The columns that the list is sorted by: the requested one first, then those that make
            the order unique. Only the first may be null.

    Raises:
        UnprocessableError: If the cursor belongs to another list, order or filter.
    """
    if request.cursor is not None:
        query = query.where(_after(keys, _decode(request, keys), request))
    query = query.add_columns(*(key.column for key in keys))
    rows = session.execute(query.order_by(*_order(keys, request)).limit(request.limit + 1)).all()
    shown = rows[: request.limit]
    next_cursor = _encode(request, shown[-1], len(keys)) if len(rows) > request.limit else None
    return ListPage([row[: -len(keys)] for row in shown], next_cursor)


def page_of_rows(rows: Sequence[Any], names: Sequence[str], request: ListRequest) -> ListPage:
    """Return a page of a short list in memory that is sorted by unique names, ascending."""
    start = 0
    if request.cursor is not None:
        (last,) = _decode(request, [CursorKey(None, str)])
        start = sum(name <= last for name in names)
    end = start + request.limit
    is_more = end < len(rows)
    return ListPage(rows[start:end], _written(request, [names[end - 1]]) if is_more else None)


def _order(keys: Sequence[CursorKey], request: ListRequest) -> list[ColumnElement[Any]]:
    first = keys[0]
    order = [key.column.desc() if request.is_descending else key.column.asc() for key in keys]
    return [first.column.is_(None), *order] if first.is_nullable else order


def _after(
    keys: Sequence[CursorKey], values: Sequence[Any], request: ListRequest
) -> ColumnElement[bool]:
    """Return the condition that selects the rows after those values."""
    first, *ties = keys
    if not first.is_nullable:
        return _beyond(keys, values, request)
    tied = _beyond(ties, values[1:], request)
    if values[0] is None:
        return and_(first.column.is_(None), tied)
    beyond = _beyond([first], values[:1], request)
    return or_(beyond, and_(first.column == values[0], tied), first.column.is_(None))


def _beyond(
    keys: Sequence[CursorKey], values: Sequence[Any], request: ListRequest
) -> ColumnElement[bool]:
    row_keys = tuple_(*(key.column for key in keys))
    pairs = zip(keys, values, strict=True)
    cursor_keys = tuple_(*(literal(value, key.column.type) for key, value in pairs))
    beyond: ColumnElement[bool] = (
        row_keys < cursor_keys if request.is_descending else row_keys > cursor_keys
    )
    return beyond


def _encode(request: ListRequest, row: Row[*tuple[Any, ...]], num_keys: int) -> str:
    return _written(request, [_plain(value) for value in row[-num_keys:]])


def _written(request: ListRequest, values: Sequence[Value]) -> str:
    text = json.dumps([request.sort, request.digest, *values], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _plain(value: Any) -> Value:
    match value:
        case datetime():
            return value.isoformat()
        case UUID():
            return str(value)
        case None | int() | float() | str():
            return value
        case _:
            raise AssertionError(value)


def _decode(request: ListRequest, keys: Sequence[CursorKey]) -> list[Any]:
    """Return the values of the keys that a cursor holds."""
    cursor = request.cursor or ""
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        sort, digest, *values = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        raise _bad(f"cursor {cursor[:100]!r} is not a cursor of this list") from None
    if not isinstance(sort, str) or not isinstance(digest, str):
        raise _bad(f"cursor {cursor[:100]!r} is not a cursor of this list")
    if sort != request.sort:
        raise _bad(
            f"the cursor belongs to a list sorted by {sort[:40]!r}, not by {request.sort!r}: keep "
            "the order of the first page, or omit the cursor"
        )
    if digest != request.digest:
        raise _bad(
            "the cursor belongs to another list, or to other filters: keep the filters of the "
            "first page, or omit the cursor"
        )
    try:
        return [_value(key, value) for key, value in zip(keys, values, strict=True)]
    except (ValueError, OverflowError):
        raise _bad(f"cursor {cursor[:100]!r} is not a cursor of this list") from None


def _value(key: CursorKey, value: Any) -> Any:
    """Return the value of a key, decoded from JSON.

    Raises:
        ValueError: If the value has another type.
    """
    if value is None and key.is_nullable:
        return None
    if key.kind in (datetime, UUID):
        if not isinstance(value, str):
            raise ValueError(value)
        return UUID(value) if key.kind is UUID else _moment(value)
    if type(value) is not key.kind or (isinstance(value, str) and "\0" in value):
        raise ValueError(value)
    if isinstance(value, int | float) and not (math.isfinite(value) and abs(value) <= MAX_INT):
        raise ValueError(value)
    return value


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(text)
    return moment.astimezone(UTC)


def _bad(detail: str) -> UnprocessableError:
    return UnprocessableError(detail, Flaw(detail, "query/cursor"))
