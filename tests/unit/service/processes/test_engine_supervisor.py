from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from compiler.runtime.measurement import Measurement
from service.processes.engine_seat import EngineSeat
from service.processes.engine_supervisor import EngineSupervisor
from service.store import workers
from service.store.database.database import Database
from service.wire.server_models import WorkerRead, WorkerState
from tests.patience import PATIENCE_SECS
from workers.engine.engine import ANYONE, Requester, RequestInterruptedError, WorkerFacts
from workers.measure.compare import CompareRequest
from workers.wire.request import MeasureRequest

REQUEST = MeasureRequest("# a script", "cpu", ("{}", "{}"))


class MemoryEngine:
    """An engine of one worker that answers at once, or breaks."""

    def __init__(self, name: str = "w", *, is_broken: bool = False) -> None:
        self.is_closed = self.is_gone = self.is_empty = False
        self._name = name
        self._is_broken = is_broken

    def measure(
        self,
        request: MeasureRequest | CompareRequest,
        requester: Requester = ANYONE,
    ) -> Iterator[tuple[int, Measurement]]:
        if self._is_broken:
            raise ConnectionError("the engine is gone")
        for index in range(len(request.traces)):
            if requester.is_interrupted():
                raise RequestInterruptedError
            yield index, Measurement((1.0,))

    def compare(
        self,
        request: CompareRequest,
        requester: Requester = ANYONE,
    ) -> Iterator[list[Measurement]]:
        for _ in range(request.num_rounds):
            yield [measurement for _, measurement in self.measure(request, requester)]

    def share(self, target: str, owner: str) -> float:
        return 1.0

    def open_session(self, target: str, owner: str) -> str:
        return f"{target} of {owner}"

    def session_step(self, session: str, owner: str, frame: bytes) -> bytes:
        return frame

    def close_session(self, session: str, owner: str) -> None:
        pass

    def workers(self) -> list[WorkerFacts]:
        if self.is_gone:
            raise ConnectionError("the scheduler is gone")
        if self.is_empty:
            return []
        return [
            WorkerFacts(self._name, "here", "cpu/znver3", 1, False, time.time(), {"noise": 0.1})
        ]

    def close(self) -> None:
        self.is_closed = True


def known(database: Database) -> list[WorkerRead]:
    with database.read() as session:
        return workers.all_workers(session)


def is_resting(database: Database) -> bool:
    return [worker.state for worker in known(database)] == [WorkerState.RESTING]


def test_rounds_are_passed_on(database: Database) -> None:
    request = CompareRequest("# a script", "cpu", ("{}", "{}"), num_rounds=3, seed=0)
    embedded = EngineSupervisor(database, MemoryEngine)
    assert list(embedded.compare(request)) == [[Measurement((1.0,))] * 2] * 3
    embedded.close()


def test_the_engine_starts_with_the_first_request_and_once(database: Database) -> None:
    started: list[MemoryEngine] = []

    def start() -> MemoryEngine:
        started.append(MemoryEngine())
        return started[-1]

    embedded = EngineSupervisor(database, start)
    assert started == []
    for _ in range(2):
        assert [index for index, _ in embedded.measure(REQUEST)] == [0, 1]
    assert len(started) == 1
    embedded.close()
    assert started[0].is_closed


def test_what_was_interrupted_is_ended_and_the_next_request_starts_anew(
    database: Database,
) -> None:
    started: list[MemoryEngine] = []

    def start() -> MemoryEngine:
        started.append(MemoryEngine())
        return started[-1]

    embedded = EngineSupervisor(database, start)
    under_way = embedded.measure(REQUEST)
    next(under_way)
    embedded.interrupt()
    assert started[0].is_closed
    assert is_resting(database)
    assert len(list(embedded.measure(REQUEST))) == 2
    assert len(started) == 2
    embedded.close()


def test_its_workers_are_known_and_rest_when_it_is_closed(database: Database) -> None:
    embedded = EngineSupervisor(database, MemoryEngine)
    list(embedded.measure(REQUEST))
    (worker,) = known(database)
    assert (worker.name, worker.label, worker.state) == ("w", "cpu/znver3", WorkerState.IDLE)
    assert worker.facts == {"noise": 0.1, "pid": 1}
    embedded.close()
    assert is_resting(database)


def test_an_engine_that_breaks_is_replaced(database: Database) -> None:
    engines = [MemoryEngine("a", is_broken=True), MemoryEngine("b")]
    waiting = iter(engines)
    embedded = EngineSupervisor(database, lambda: next(waiting))
    with pytest.raises(ConnectionError):
        list(embedded.measure(REQUEST))
    assert engines[0].is_closed
    assert len(list(embedded.measure(REQUEST))) == 2
    embedded.close()


def test_an_engine_without_work_ends_and_comes_back(database: Database) -> None:
    engines: list[MemoryEngine] = []

    def start() -> MemoryEngine:
        engines.append(MemoryEngine())
        return engines[-1]

    embedded = EngineSupervisor(database, start, rest_after_secs=0.2, report_secs=0.02)
    under_way = embedded.measure(REQUEST)
    next(under_way)
    time.sleep(0.4)
    assert not engines[0].is_closed, "a request is under way"
    assert len(list(under_way)) == 1
    deadline = time.monotonic() + PATIENCE_SECS
    while not is_resting(database) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert is_resting(database)
    assert [index for index, _ in embedded.measure(REQUEST)] == [0, 1]
    # The first one is closed beside the work, and may take its time.
    while not any(engine.is_closed for engine in engines) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert [engine.is_closed for engine in engines] == [True, False]
    embedded.close()


def test_closing_before_any_request_starts_nothing(database: Database) -> None:
    def start() -> MemoryEngine:
        raise AssertionError("started")

    EngineSupervisor(database, start).close()


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_engine_that_stays_is_there_before_any_request_and_comes_back(
    database: Database,
) -> None:
    """It is tried again until its scheduler answers; one that knows its workers no more ends."""
    engines: list[MemoryEngine] = []
    fails = iter([True, True, False, False])

    def start() -> MemoryEngine:
        if next(fails):
            raise ConnectionError("no scheduler answers")
        engines.append(MemoryEngine(f"w{len(engines)}"))
        return engines[-1]

    embedded = EngineSupervisor(database, start, stays=True, rest_after_secs=0.0, report_secs=0.02)
    assert embedded.labels() is None
    embedded.begin()
    wait_until(lambda: [worker.name for worker in known(database)] == ["w0"])
    assert embedded.labels() == {"cpu/znver3"}
    engines[0].is_empty = True
    wait_until(lambda: embedded.labels() is None)
    engines[0].is_gone = True
    wait_until(lambda: [worker.name for worker in known(database)] == ["w0", "w1"])
    assert engines[0].is_closed
    wait_until(lambda: embedded.labels() == {"cpu/znver3"})
    assert len(list(embedded.measure(REQUEST))) == 2
    embedded.close()
    assert engines[1].is_closed
    assert len(engines) == 2
    assert {worker.state for worker in known(database)} == {WorkerState.IDLE}, "they go on"


def test_workers_of_this_process_are_known_before_they_start(database: Database) -> None:
    embedded = EngineSupervisor(database, MemoryEngine, labels=["cpu/x"])
    embedded.begin()
    assert embedded.labels() == {"cpu/x"}
    assert known(database) == []
    embedded.close()


def test_a_worker_not_heard_of_is_lost(database: Database) -> None:
    long_ago = time.time() - 2 * workers.LOST_AFTER_SECS
    with database.write() as session:
        seen = [WorkerFacts("w", "here", "cpu/znver3", 1, True, long_ago, {})]
        workers.record_facts(session, seen)
    assert [worker.state for worker in known(database)] == [WorkerState.LOST]
    with database.write() as session:
        workers.forget_lost(session)
    assert len(known(database)) == 1, "it is shown as lost for an hour"


def test_a_seat_interrupts_its_own_request_and_no_other(database: Database) -> None:
    engine = MemoryEngine()
    embedded = EngineSupervisor(database, lambda: engine)
    seat, other = EngineSeat(embedded), EngineSeat(embedded)
    interrupted, kept = seat.measure(REQUEST), other.measure(REQUEST)
    assert next(interrupted)[0] == next(kept)[0] == 0
    seat.interrupt()
    with pytest.raises(RequestInterruptedError):
        next(interrupted)
    assert [index for index, _ in kept] == [1]
    assert not engine.is_closed
    assert [index for index, _ in seat.measure(REQUEST)] == [0, 1]
    embedded.close()
