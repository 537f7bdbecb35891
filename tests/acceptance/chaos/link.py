"""A network link between two services: a TCP proxy that can stop forwarding."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from threading import Thread
from typing import Any, TypeVar

ResultT = TypeVar("ResultT")
_CHUNK_BYTES = 1 << 16


class Link:
    """Forwards connections from one address to another; safe to use from several threads.

    A broken link keeps what it receives, as TCP does, and delivers it once it is mended.
    """

    def __init__(self, host: str, port: int, to_host: str) -> None:
        self.host = host
        self._port = port
        self._to_host = to_host
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name=f"link {host}", daemon=True)

    def start(self) -> None:
        """Accept connections."""
        self._thread.start()
        self._run(self._start())

    def cut(self) -> None:
        """Stop forwarding."""
        self._loop.call_soon_threadsafe(self._is_whole.clear)

    def mend(self, *, drops: bool) -> None:
        """Forward again.

        Args:
            drops: Close all connections first, as a firewall does that has forgotten them.
        """
        self._run(self._mend(drops))

    def stop(self) -> None:
        """Close all connections and the address."""
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, awaited: Coroutine[Any, Any, ResultT]) -> ResultT:
        return asyncio.run_coroutine_threadsafe(awaited, self._loop).result()

    async def _start(self) -> None:
        self._is_whole = asyncio.Event()
        self._is_whole.set()
        self._server = await asyncio.start_server(self._forward, self.host, self._port)

    async def _mend(self, drops: bool) -> None:
        if drops:
            self._drop()
        self._is_whole.set()

    async def _stop(self) -> None:
        self._server.close()
        self._drop()
        self._is_whole.set()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)

    def _drop(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            await self._is_whole.wait()
            to_reader, to_writer = await asyncio.open_connection(self._to_host, self._port)
            self._writers.add(to_writer)
            try:
                await asyncio.gather(self._pump(reader, to_writer), self._pump(to_reader, writer))
            finally:
                self._writers.discard(to_writer)
                to_writer.close()
        except OSError:
            pass  # the other side is not there: the connection ends
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(_CHUNK_BYTES):
                await self._is_whole.wait()
                writer.write(data)
                await writer.drain()
        writer.close()
