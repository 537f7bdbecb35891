"""Pages of short lists, and cursors that were tampered with."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.common.errors import UnprocessableError
from service.common.paging import ListRequest, page_of_rows


def request(cursor: str | None = None, **changes: object) -> ListRequest:
    fields: dict[str, object] = {"sort": "name", "filters": {}, "limit": 2, "cursor": cursor}
    return ListRequest(**(fields | changes))  # type: ignore[arg-type]


@given(st.sets(st.text("abc", min_size=1, max_size=3), max_size=9), st.integers(1, 4))
def test_pages_of_any_size_are_the_list(given_names: set[str], limit: int) -> None:
    names = sorted(given_names)
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = page_of_rows(names, names, request(cursor, limit=limit))
        assert len(page.rows) <= limit
        seen += [str(row) for row in page.rows]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == names


def test_a_row_that_vanishes_hides_no_other() -> None:
    names = ["a", "b", "c", "d"]
    first = page_of_rows(names, names, request())
    left = ["a", "c", "d"]
    assert page_of_rows(left, left, request(first.next_cursor)).rows == ["c", "d"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sort": "-name"}, "sorted by 'name'"),
        ({"filters": {"state": "queued"}}, "other filters"),
        ({"cursor": "????"}, "not a cursor of this list"),
        ({"cursor": "e30"}, "not a cursor of this list"),
    ],
)
def test_a_cursor_of_another_list_is_refused(changes: dict[str, object], message: str) -> None:
    names = ["a", "b", "c"]
    cursor = page_of_rows(names, names, request()).next_cursor
    with pytest.raises(UnprocessableError, match=message):
        page_of_rows(names, names, request(**({"cursor": cursor} | changes)))  # type: ignore[arg-type]
