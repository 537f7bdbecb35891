"""Mutated requests in any number: `make fuzz-requests`.

Each follows from a seed and its number, so that one can be sent again (`--only`). They are sent to
a private server on loopback. No answer may be a server error or slow, and the memory of the
server's processes must not grow.
"""

from __future__ import annotations

import argparse
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from threading import Lock

import psutil

from service.store.database.database import open_database
from tests.acceptance.service.server import Server, serving
from tests.fuzz_requests.known_requests import TOKEN, Request, known_requests
from tests.fuzz_requests.mutations import mutated

PATIENCE_SECS = 30.0
STALLED_SECS = 0.3
"""How long the answer to a request is waited for that may never be whole."""
WARM_UP = 500
"""After so many requests the server has started what it needs, and filled its caches."""
OPTIONS = ("--token", TOKEN, "--rate-limit", "0")


@dataclass
class Outcome:
    """What became of the requests."""

    statuses: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, str]] = field(default_factory=list)
    slowest: list[tuple[float, int]] = field(default_factory=list)
    rss: list[int] = field(default_factory=list)
    """Bytes of memory of the server's processes, from the end of the warm-up on."""

    @property
    def growth_bytes(self) -> int:
        """The maximum growth of memory since the warm-up."""
        return max(self.rss) - self.rss[0] if self.rss else 0

    def note(self, number: int, status: str, secs: float) -> None:
        """Record an answer."""
        self.statuses[status] += 1
        self.slowest = sorted([*self.slowest, (secs, number)], reverse=True)[:5]


def make(seed: int, number: int, known: Sequence[Request]) -> Request:
    """Return the request with a number."""
    return mutated(Random(f"{seed}:{number}"), known)


def run(seed: int, numbers: Iterable[int], *, threads: int = 4) -> Outcome:
    """Send the requests with these numbers to a private server."""
    outcome, lock = Outcome(), Lock()
    with tempfile.TemporaryDirectory(prefix="loopwright-") as folder:
        file = Path(folder, "fuzz.db")
        with closing(open_database(f"sqlite:///{file}")) as database:
            known = known_requests(database)
        with (
            serving(file, *OPTIONS, part="api") as server,
            ThreadPoolExecutor(threads) as pool,
        ):

            def one(number: int) -> None:
                request = make(seed, number, known)
                began = time.monotonic()
                status = send(server, request)
                secs = time.monotonic() - began
                with lock:
                    outcome.note(number, status, secs)
                    if status.startswith("5") or status == "none":
                        outcome.failures.append((number, f"{status}: {request.wire()[:2000]!r}"))

            for number, _ in enumerate(pool.map(one, _shown(numbers))):
                if number >= WARM_UP and number % 50 == 0:
                    outcome.rss.append(memory(server))
            assert server.process.poll() is None, "the server ended"
            outcome.rss.append(memory(server))
            assert server.http.get(
                "/caller", headers={"Authorization": f"Bearer {TOKEN}"}
            ).is_success
    return outcome


def send(server: Server, request: Request) -> str:
    """Return the status of the answer, `none` without one, or `-` if none is required."""
    url = server.http.base_url
    may_stall = request.lies
    with socket.create_connection((url.host, url.port or 80), PATIENCE_SECS) as connection:
        with suppress(ConnectionError):  # it may be refused before all of it was sent
            connection.sendall(request.wire())
        connection.settimeout(STALLED_SECS if may_stall else PATIENCE_SECS)
        answer = b""
        try:
            while piece := connection.recv(1 << 16):
                # A stream of events ends with its job, which nothing drives here.
                answer = answer or piece
                if b"text/event-stream" in answer[:1000]:
                    break
        except (TimeoutError, ConnectionError):
            if not answer and may_stall:
                return "-"
    if answer.startswith(b"HTTP/1.1 "):
        return answer[9:12].decode()
    return "-" if may_stall else "none"


def memory(server: Server) -> int:
    """Return the bytes of memory of the server and its permanent children."""
    total = 0
    for process in (psutil.Process(server.process.pid), *server.tree()):
        with suppress(psutil.Error):
            if "service.schedules.kernel_child" not in process.cmdline():
                total += process.memory_info().rss
    return total


def _shown(numbers: Iterable[int]) -> Iterator[int]:
    for sent, number in enumerate(numbers):
        if sys.stderr.isatty() and sent % 100 == 0:
            sys.stderr.write(f"\r{sent} requests ")
        yield number


def show(outcome: Outcome, secs: float) -> None:
    """Print the outcomes of the requests."""
    lines = [f"{outcome.statuses.total()} requests in {secs:.0f} s; answers by status:"]
    lines += [f"  {status:>5}  {count:6}" for status, count in sorted(outcome.statuses.items())]
    lines.append("  `-`: a request without an end, to which no answer came at once")
    lines += [f"slowest: {taken:.2f} s, request {number}" for taken, number in outcome.slowest]
    if outcome.rss:
        first, most, last = outcome.rss[0], max(outcome.rss), outcome.rss[-1]
        lines.append(
            f"memory: {first / 2**20:.0f} MiB after {WARM_UP} requests, at most "
            f"{most / 2**20:.0f}, {last / 2**20:.0f} at the end"
        )
    lines += [f"FAILED: request {number}: {what}" for number, what in outcome.failures[:20]]
    sys.stdout.write("\n".join(lines) + "\n")


def main() -> int:
    """Send requests; return an exit code of 1 if one failed."""
    parser = argparse.ArgumentParser(prog="make fuzz-requests", description=__doc__)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="the number of one request to send")
    options = parser.parse_args()
    numbers = range(options.requests) if options.only is None else [options.only]
    began = time.monotonic()
    outcome = run(options.seed, numbers)
    show(outcome, time.monotonic() - began)
    return 1 if outcome.failures else 0


if __name__ == "__main__":
    sys.exit(main())
