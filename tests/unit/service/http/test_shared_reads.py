"""Reads of many requests by one statement."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Collection, Mapping

from service.http.shared_reads import SharedReads


class Numbers:
    """Answers each key with the number of the statement, when `go_on` is set."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.go_on = threading.Event()
        self.keys: list[tuple[str, ...]] = []

    def __call__(self, keys: Collection[str]) -> Mapping[str, int]:
        self.keys.append(tuple(keys))
        number = len(self.keys)
        self.begun.release()
        assert self.go_on.wait(30)
        if "broken" in keys:
            raise RuntimeError("the server is gone")
        return {key: number for key in keys if key != "unknown"}


def test_a_read_takes_part_in_the_first_statement_that_begins_after_it() -> None:
    numbers = Numbers()
    reads = SharedReads(numbers)

    async def main() -> None:
        first = asyncio.create_task(reads.get("a"))
        await asyncio.to_thread(numbers.begun.acquire)
        later = [asyncio.create_task(reads.get(key)) for key in ("a", "b", "a", "unknown")]
        await asyncio.sleep(0)
        numbers.go_on.set()
        assert await first == 1
        assert await asyncio.gather(*later) == [2, 2, 2, None]

    asyncio.run(main())
    assert numbers.keys == [("a",), ("a", "b", "unknown")]


def test_a_statement_that_fails_leaves_the_values_unknown_once() -> None:
    numbers = Numbers()
    numbers.go_on.set()
    reads = SharedReads(numbers)

    async def main() -> list[int | None]:
        failed = await asyncio.gather(reads.get("a"), reads.get("broken"))
        return [*failed, await reads.get("a")]

    assert asyncio.run(main()) == [None, None, 2]


def test_a_client_that_disconnects_takes_the_value_of_no_other() -> None:
    numbers = Numbers()
    reads = SharedReads(numbers)

    async def main() -> int | None:
        gone, other = (asyncio.create_task(reads.get("a")) for _ in range(2))
        await asyncio.to_thread(numbers.begun.acquire)
        gone.cancel()
        await asyncio.sleep(0)
        numbers.go_on.set()
        return await other

    assert asyncio.run(main()) == 1


def test_a_second_event_loop_is_not_left_waiting_for_the_first() -> None:
    numbers = Numbers()
    reads = SharedReads(numbers)

    async def leave() -> None:
        waiting = asyncio.create_task(reads.get("a"))
        await asyncio.to_thread(numbers.begun.acquire)
        waiting.cancel()

    asyncio.run(leave())
    numbers.go_on.set()
    assert asyncio.run(reads.get("a")) == 2
