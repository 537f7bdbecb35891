"""Load a server with HTTP requests over raw keep-alive sockets, from another process.

A client library would use more processor time than the server does. At a fixed rate, a request is
timed from the moment when it was due, so that stalls of the server count.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from urllib.parse import urlsplit

import numpy as np
import uvloop


@dataclass(frozen=True)
class Load:
    """The results of a load.

    Attributes:
        per_sec: The requests per second.
        secs: The seconds of each request, in the order of their answers.
        due_secs: When each was due, in seconds since the beginning.
    """

    per_sec: float
    secs: tuple[float, ...]
    due_secs: tuple[float, ...]
    num_failed: int

    def percentile(self, share: float) -> float:
        """Return the time that this share of the requests did not exceed."""
        return float(np.quantile(self.secs, share))


def run(
    url: str, paths: Sequence[str], *, secs: float, connections: int, per_sec: float | None = None
) -> Load:
    """Request `paths` in turn for `secs`, as fast as possible or `per_sec` times a second."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_run, url, tuple(paths), secs, connections, per_sec).result()


def _run(
    url: str, paths: Sequence[str], secs: float, connections: int, per_sec: float | None
) -> Load:
    return uvloop.run(_loaded(url, paths, secs, connections, per_sec))


async def _loaded(
    url: str, paths: Sequence[str], secs: float, connections: int, per_sec: float | None
) -> Load:
    parts = urlsplit(url)
    host = f"{parts.hostname}:{parts.port}"
    requests = [f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode() for path in paths]
    turn = itertools.count()
    opened = [asyncio.open_connection(parts.hostname, parts.port) for _ in range(connections)]
    streams = await asyncio.gather(*opened)
    begin = time.perf_counter()  # opening a connection is no part of a request
    taken: list[float] = []
    due_at: list[float] = []
    failed = 0

    async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal failed
        while (now := time.perf_counter()) < begin + secs:
            number = next(turn)
            due = now if per_sec is None else begin + number / per_sec
            if due > begin + secs:
                break
            await asyncio.sleep(max(0.0, due - now))
            writer.write(requests[number % len(requests)])
            head = await reader.readuntil(b"\r\n\r\n")
            length = head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]
            await reader.readexactly(int(length))
            taken.append(time.perf_counter() - due)
            due_at.append(due - begin)
            failed += not head.startswith(b"HTTP/1.1 200")
        writer.close()

    await asyncio.gather(*itertools.starmap(ask, streams))
    return Load(len(taken) / (time.perf_counter() - begin), tuple(taken), tuple(due_at), failed)
