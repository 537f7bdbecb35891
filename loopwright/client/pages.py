"""Iterate over a server's paged lists as one stream."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel

from loopwright.client.decoding import read
from loopwright.client.steps import HttpCall, Item, Params, Stream, send
from service.wire.models import Page

ModelT = TypeVar("ModelT", bound=BaseModel)

PAGE_LIMIT = 200
"""Items of a page: few requests for a long list, below the server's limit of 500. Chosen."""


def pages(
    model: type[ModelT], path: str, params: Params | None = None, *, limit: int | None = None
) -> Stream[ModelT]:
    """Yield the items of a list, `limit` at most."""
    query = dict(params or {})
    while limit is None or limit > 0:
        query["limit"] = PAGE_LIMIT if limit is None else min(limit, PAGE_LIMIT)
        page = read(Page[model], (yield from send(HttpCall("GET", path, params=query))))  # type: ignore[valid-type] # pydantic's generics are made at run time
        for item in page.items[:limit]:
            yield Item(item)
        if limit is not None:
            limit -= len(page.items)
        if page.next_cursor is None:
            return
        query["cursor"] = page.next_cursor
