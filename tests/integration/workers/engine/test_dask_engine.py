import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import islice
from typing import Any

import dask
import psutil
import pytest

from compiler.remote.protocol import Kind, encode, read_facts, read_frame
from compiler.runtime.measurement import ErrorKind, Measurement
from compiler.target.target import Target
from tests.faults.processes import survivors
from tests.faults.requests import COPY, DEFAULT_TRACE, LIMITS, TARGET, request
from tests.patience import PATIENCE_SECS
from workers.engine import batch_client, batch_protocol
from workers.engine.dask_engine import DaskEngine
from workers.engine.dask_worker import DaskWorker
from workers.engine.engine import EngineClosedError, NoWorkerError, SessionOverError
from workers.health.self_test import SelfTestError
from workers.measure.compare import CompareRequest
from workers.wire.request import MeasureRequest

NUM_CANDIDATES = 40


@pytest.fixture(scope="module")
def engine() -> Iterator[DaskEngine]:
    engine = DaskEngine.embedded(num_workers=1)
    yield engine
    engine.close()


def measure(engine: DaskEngine, num_candidates: int = NUM_CANDIDATES) -> dict[int, Measurement]:
    return dict(engine.measure(request(*[DEFAULT_TRACE] * num_candidates)))


def comparison(num_rounds: int = 5) -> CompareRequest:
    traces = (DEFAULT_TRACE, DEFAULT_TRACE)
    return CompareRequest(COPY, TARGET, traces, num_rounds=num_rounds, seed=0, limits=LIMITS)


def worker_of(engine: DaskEngine) -> psutil.Process:
    (worker,) = engine.workers()
    return psutil.Process(worker.pid)


def child_of(engine: DaskEngine) -> psutil.Process:
    (child,) = worker_of(engine).children()
    return child


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def assert_all_right(found: dict[int, Measurement], num_candidates: int = NUM_CANDIDATES) -> None:
    assert sorted(found) == list(range(num_candidates))
    assert {measurement.message for measurement in found.values()} == {""}
    assert all(measurement.ok for measurement in found.values())


def test_every_candidate_is_measured_once(engine: DaskEngine) -> None:
    results = list(engine.measure(request(*[DEFAULT_TRACE] * NUM_CANDIDATES)))
    assert len(results) == NUM_CANDIDATES
    assert_all_right(dict(results))


def test_a_list_of_workers_has_facts_and_nothing_that_dask_measures(engine: DaskEngine) -> None:
    client: Any = engine._client
    for num_workers in (-1, 1):
        identity = client.sync(client.scheduler.identity, n_workers=num_workers)
        assert identity["n_workers"] == 1
        (worker,) = identity["workers"].values()
        assert list(worker["metrics"]) == [batch_protocol.FACTS]
        assert worker[batch_protocol.FACTS]["protocol"] == batch_protocol.PROTOCOL
    assert client.sync(client.scheduler.identity, n_workers=0)["workers"] == {}


def test_rounds_come_from_a_worker(engine: DaskEngine) -> None:
    rounds = list(engine.compare(comparison()))
    assert [[m.ok for m in measured] for measured in rounds] == [[True, True]] * 5
    (worker,) = engine.workers()
    assert {m.worker for measured in rounds for m in measured} == {worker.name}


def test_a_library_takes_part_in_the_rounds_of_a_worker(engine: DaskEngine) -> None:
    winner = replace(comparison(), traces=(DEFAULT_TRACE,))
    request = replace(winner, libraries=("numpy", "unknown"), operator="transpose:16")
    rounds = list(engine.compare(request))
    assert len(rounds) in range(1, 6)
    for kernel, numpy, unknown in rounds:
        assert (kernel.ok, numpy.ok, unknown.ok) == (True, True, False)
        assert numpy.toolchain.startswith("NumPy")


def test_a_worker_that_is_lost_amid_a_round_costs_none(engine: DaskEngine) -> None:
    lost = worker_of(engine)
    killer = threading.Timer(0.3, lost.kill)
    # Dask gives up a worker that is missing for so long; ours takes longer to return.
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "10 ms"}):
        killer.start()
        assert len(list(engine.compare(comparison(num_rounds=30)))) == 30
        killer.join()
    # The tests that follow want another one.
    wait_until(lambda: [worker.pid for worker in engine.workers()] not in ([], [lost.pid]))


@pytest.mark.parametrize("is_comparison", [True, False])
def test_a_batch_that_the_scheduler_does_not_know_is_sent_again(
    engine: DaskEngine, is_comparison: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    client: Any = engine._client
    lost: list[str] = []
    send = client._send_to_scheduler_safe

    def send_all_but_the_first_batch(message: dict[str, Any]) -> None:
        if message["op"] == batch_protocol.SUBMIT and not lost:
            lost.append(message["op"])
        else:
            send(message)

    monkeypatch.setattr(client, "_send_to_scheduler_safe", send_all_but_the_first_batch)
    if is_comparison:
        assert len(list(engine.compare(comparison()))) == 5
    else:
        assert_all_right(measure(engine))
    assert lost


def test_cut_connections_to_the_scheduler_cost_no_candidate(engine: DaskEngine) -> None:
    client: Any = engine._client
    found: dict[int, dict[int, Measurement]] = {}
    threads = [
        threading.Thread(target=lambda n=n: found.update({n: measure(engine, 30)}))
        for n in range(4)
    ]

    def cut() -> None:
        if client.status == "running":
            client.scheduler_comm.comm.abort()

    for thread in threads:
        thread.start()
    for _ in range(6):  # more often than a batch may be lost
        client.loop.add_callback(cut)
        time.sleep(0.1)
    for thread in threads:
        thread.join()
    assert [sorted(found) for found in found.values()] == [list(range(30))] * 4
    for n in range(4):
        assert_all_right(found[n], 30)


def test_a_scheduler_that_knows_the_connection_no_more_gets_another(
    engine: DaskEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of a lost connection may be noticed after the next one has begun."""
    monkeypatch.setattr(batch_client, "_SILENCE_SECS", 2.5)
    client: Any = engine._client
    scheduler: Any = client.cluster.scheduler
    scheduler.loop.add_callback(scheduler.client_comms.pop, client.id)
    assert_all_right(measure(engine))


def test_rounds_for_a_target_that_no_worker_serves_are_refused(engine: DaskEngine) -> None:
    with pytest.raises(NoWorkerError, match="no worker serves"):
        next(engine.compare(replace(comparison(), target="cpu -mcpu=skylake-avx512")))


def test_workers_tell_who_they_are(engine: DaskEngine) -> None:
    (worker,) = engine.workers()
    assert worker.label == Target("cpu").label
    assert worker.host in worker.name
    assert psutil.pid_exists(worker.pid)
    assert abs(time.time() - worker.last_seen) < 60
    assert worker.facts["self_test"]["noise"] >= 0
    assert "LLVM" in worker.facts["self_test"]["toolchain"]
    found = measure(engine, 1)
    assert found[0].worker == worker.name


def test_requests_of_several_threads_are_kept_apart(engine: DaskEngine) -> None:
    found: dict[int, dict[int, Measurement]] = {}
    threads = [
        threading.Thread(target=lambda n=n: found.update({n: measure(engine)})) for n in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert_all_right(found[0])
    assert_all_right(found[1])


def test_an_iterator_may_be_left_in_the_middle(engine: DaskEngine) -> None:
    results = engine.measure(request(*[DEFAULT_TRACE] * NUM_CANDIDATES))
    next(results)
    del results
    assert_all_right(measure(engine))


def test_a_target_that_no_worker_serves_is_refused(engine: DaskEngine) -> None:
    other = MeasureRequest("", "cpu -mcpu=neoverse-n1", (DEFAULT_TRACE,), limits=LIMITS)
    with pytest.raises(NoWorkerError, match="no worker serves cpu/neoverse-n1"):
        list(engine.measure(other))


@pytest.mark.parametrize("victim_of", [worker_of, child_of])
def test_who_kills_a_worker_or_its_child_delays_one_batch(
    engine: DaskEngine, victim_of: Callable[[DaskEngine], psutil.Process]
) -> None:
    num_candidates = 150  # more than fit into the batches in flight, so that some are still to come
    results = engine.measure(request(*[DEFAULT_TRACE] * num_candidates))
    found = dict([next(results)])
    victim, child = victim_of(engine), child_of(engine)
    victim.kill()
    found.update(results)
    assert_all_right(found, num_candidates)
    assert not survivors([victim, child], timeout_secs=PATIENCE_SECS)
    assert child_of(engine) != child


def test_a_batch_that_is_lost_too_often_is_reported_and_the_rest_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("workers.engine.dask_engine._MAX_RESUBMISSIONS", 0)
    num_candidates = 250
    with closing(DaskEngine.embedded(num_workers=1)) as engine:
        results = engine.measure(request(*[DEFAULT_TRACE] * num_candidates))
        # By then batches have their full length, and the next one is under way.
        found = dict(islice(results, 60))
        worker_of(engine).kill()
        found.update(results)
    assert sorted(found) == list(range(num_candidates))
    assert {measurement.error for measurement in found.values()} == {None, ErrorKind.WORKER_LOST}
    lost = next(measurement for measurement in found.values() if not measurement.ok)
    assert lost.message == "its worker was lost 1 times: its process ended"


def test_a_worker_that_fails_its_self_test_takes_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.health.self_test.PROGRAM", "not a program")
    slot = DaskWorker()
    slot.open("bench/0")
    assert slot.facts["refuses"].startswith("self-test: build_error: ")
    with pytest.raises(SelfTestError, match="self-test: build_error"):
        slot.measure(request(DEFAULT_TRACE))


def test_a_slot_without_work_ends_its_child() -> None:
    slot = DaskWorker(idle_secs=0.3)
    slot.open("bench/0")
    assert slot.runner is not None
    for _ in range(2):
        assert slot.measure(request(DEFAULT_TRACE))[0].ok
        deadline = time.monotonic() + PATIENCE_SECS
        while slot.runner.child_pid is not None:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    slot.close()


def test_everything_listens_on_loopback_only_behind_tls(engine: DaskEngine) -> None:
    assert engine.address.startswith("tls://127.0.0.1:")
    family = [psutil.Process(), *psutil.Process().children(recursive=True)]
    addresses = {
        connection.laddr.ip
        for process in family
        for connection in process.net_connections()
        if connection.status == psutil.CONN_LISTEN
    }
    assert addresses == {"127.0.0.1"}


def test_closing_ends_what_is_under_way_and_leaves_nothing() -> None:
    before = set(psutil.Process().children(recursive=True))
    engine = DaskEngine.embedded(num_workers=1)
    family = set(psutil.Process().children(recursive=True)) - before
    results = engine.measure(request(*[DEFAULT_TRACE] * 400))
    next(results)
    engine.close()
    engine.close()
    with pytest.raises(EngineClosedError):
        list(results)
    with pytest.raises(EngineClosedError):
        measure(engine)
    assert engine.workers() == []
    servants = [p for p in family if "resource_tracker" not in " ".join(command(p))]
    assert not survivors(servants, timeout_secs=PATIENCE_SECS)


def test_a_failure_to_connect_again_is_a_lost_connection_and_the_engine_can_be_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Dask expects an `OSError` there; TLS may raise a `ValueError`."""
    with closing(DaskEngine.embedded()) as engine:
        client: Any = engine._client

        async def fail(**_: object) -> None:
            raise ValueError("IOStream is not idle; cannot convert to SSL")

        monkeypatch.setattr(client, "_ensure_connected", fail)
        client.loop.add_callback(client.scheduler_comm.comm.abort)
        with pytest.raises(NoWorkerError, match="the connection to the scheduler was lost"):
            measure(engine)


def command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def test_the_environment_of_this_process_is_left_alone(engine: DaskEngine) -> None:
    assert "MALLOC_TRIM_THRESHOLD_" not in os.environ


def test_a_session_is_on_one_worker_and_measuring_goes_on_beside_it(engine: DaskEngine) -> None:
    session = engine.open_session(TARGET, "ann")
    hello = encode(Kind.HELLO, 1, b"\1\0\0\0")
    header, body = read_frame(engine.session_step(session, "ann", hello))
    assert (header.kind, read_facts(body).runner) == (Kind.DONE, "loopwright worker 1")
    for wrong, owner in ((session, "bob"), (f"{session}x", "ann"), ("bm93aGVyZQ.x", "ann")):
        with pytest.raises(SessionOverError, match="no such session"):
            engine.session_step(wrong, owner, hello)
    assert len(measure(engine, 3)) == 3
    assert read_frame(engine.session_step(session, "ann", hello))[0].kind == Kind.DONE
    engine.close_session(session, "ann")
    with pytest.raises(SessionOverError):
        engine.session_step(session, "ann", hello)
    with pytest.raises(NoWorkerError, match="no worker serves cpu/cortex-a72"):
        engine.open_session("cpu -mcpu=cortex-a72", "ann")


def test_a_session_ends_with_its_worker(engine: DaskEngine) -> None:
    session = engine.open_session(TARGET, "ann")
    worker = worker_of(engine)
    worker.kill()
    with pytest.raises(SessionOverError):
        engine.session_step(session, "ann", encode(Kind.HELLO, 1, b"\1\0\0\0"))
    wait_until(lambda: bool(engine.workers()) and worker_of(engine).pid != worker.pid)
    engine.close_session(engine.open_session(TARGET, "ann"), "ann")
