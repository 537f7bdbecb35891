"""HTTP to one server for asynchronous programs; see `loopwright.client.connection`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import httpx2

from loopwright.atomic_file import atomic_file
from loopwright.client.connection import (
    BusyError,
    ConnectionBase,
    arguments,
    checked,
    not_busy,
    present_params,
    stream_options,
    upload_options,
)
from loopwright.client.steps import (
    Download,
    HttpCall,
    Item,
    Listen,
    LocalWork,
    NextEvent,
    Pause,
    Plan,
    PlanRunner,
    Step,
    Stream,
    Upload,
)

T = TypeVar("T")

_CHUNK_BYTES = 1 << 16
"""Bytes of a file in one chunk. Chosen."""


@dataclass
class _AsyncOpened:
    """What a plan that is carried out has open."""

    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    events: AsyncIterator[httpx2.ServerSentEvent] | None = None


class AsyncConnection(ConnectionBase):
    """The asynchronous connection: `run` is awaited, `items` iterated with `async for`."""

    def __init__(self, url: str, token: str | None, **options: Any) -> None:
        super().__init__(url, token, **options)
        self._http = httpx2.AsyncClient(**self._options)

    def _is_closed(self) -> bool:
        return self._http.is_closed

    async def close(self) -> None:
        """Close the pool; a second call does nothing."""
        await self._http.aclose()

    async def run(self, plan: Plan[T]) -> T:
        """Run a plan, and return its result."""
        opened = _AsyncOpened()
        async with opened.stack:
            with PlanRunner(plan) as runner:
                while not runner.is_over:
                    await self._take(runner, opened)
                return runner.result

    async def items(self, stream: Stream[T]) -> AsyncGenerator[T]:
        """Run a stream, and yield its items; close it (`aclosing`) to leave it early."""
        opened = _AsyncOpened()
        async with opened.stack:
            with PlanRunner(stream) as runner:
                while not runner.is_over:
                    if isinstance(runner.step, Item):
                        yield runner.step.value
                        runner.resume(None)
                    else:
                        await self._take(runner, opened)

    async def _take(self, runner: PlanRunner[Any], opened: _AsyncOpened) -> None:
        try:
            with self.translated_errors(runner.step):
                result = await self._do(runner.step, opened)
        except Exception as error:
            runner.fail(error)
        else:
            runner.resume(result)

    async def _do(self, step: Step | Item[Any], opened: _AsyncOpened) -> Any:
        match step:
            case HttpCall():
                return await self._send(step)
            case Pause(secs):
                return await anyio.sleep(secs)
            case LocalWork(act):
                return await anyio.to_thread.run_sync(act)
            case Listen():
                await opened.stack.aclose()
                opened.events = await opened.stack.enter_async_context(self._listening(step))
                return None
            case NextEvent():
                assert opened.events is not None, "a stream is opened before it is read"
                return await anext(opened.events, None)
            case Download():
                return await self._download(step)
            case Upload(path, file):
                async with aclosing(_chunks(file)) as content:
                    options = upload_options()
                    return checked(await self._http.post(path, content=content, **options))
            case Item():
                raise AssertionError("an item is for the user of a stream")

    async def _send(self, call: HttpCall) -> httpx2.Response:
        try:
            async for attempt in self.retries(call):
                with attempt:
                    response = not_busy(await self._http.request(**arguments(call)))
        except BusyError as error:
            response = error.response
        return checked(response)

    @asynccontextmanager
    async def _listening(
        self, step: Listen
    ) -> AsyncIterator[AsyncIterator[httpx2.ServerSentEvent]]:
        async with self._http.stream("GET", step.path, **stream_options(step)) as response:
            if response.is_error:
                await response.aread()
            yield aiter(httpx2.EventSource(checked(response)))

    async def _download(self, step: Download) -> None:
        async with self._http.stream(
            "GET", step.path, params=present_params(step.params)
        ) as response:
            if response.is_error:
                await response.aread()
            with atomic_file(step.file) as file:
                async for chunk in checked(response).aiter_bytes():
                    file.write(chunk)


async def _chunks(file: Path) -> AsyncGenerator[bytes]:
    with file.open("rb") as content:
        while chunk := content.read(_CHUNK_BYTES):
            yield chunk
