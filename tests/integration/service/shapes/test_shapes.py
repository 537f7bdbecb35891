"""Searches over ranges over HTTP: submitted, tuned by made-up times, read, interrupted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from uuid import UUID

import pytest
from fastapi.testclient import TestClient

from compiler.executor.artifact import Artifact
from compiler.ir.analysis.specialize import sized
from compiler.ir.analysis.symbols import symbolic_vars
from compiler.ir.core.nodes import static_shape
from compiler.ir.core.program import IRModule
from compiler.runtime.measurement import ErrorKind, Measurement
from service.coordinator.coordinator import Coordinator
from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.store.database.database import Database
from tests.service_fixtures import problem
from tuner.candidate import Candidate
from tuner.measurer.memory import MemoryMeasurer
from tuner.task import Task

PRODUCT = """
@T.prim_func
def product(
    A: T.Buffer(("M", 32), "float32"),
    B: T.Buffer((32, 32), "float32"),
    C: T.Buffer(("M", 32), "float32"),
):
    for i, j, k in T.grid(M, 32, 32):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""
BODY: dict[str, Any] = {
    "workload": {"script": PRODUCT},
    "ranges": {"M": [2, 16]},
    "max_trials": 32,
    "target": "cpu -num-cores=1",
    "warm_start": False,
    "strategy": "random",
}


def formula(task: Task, candidate: Candidate) -> float:
    """Return a time by the rows and the sketch, each of which is fast in a range of its own."""
    rows = static_shape(sized(task.func).buffers[0])[0]
    favourite = {"direct": 3.0, "cached": 12.0}.get(candidate.sketch, 1e6)
    return 1e-6 * rows * (1 + abs(math.log(rows / favourite)))


class Timer(MemoryMeasurer):
    """Times by a formula of the rows and the sketch, and records what was timed of all sizes.

    Args:
        at: After so many timings of symbolic programs, `then` is called once.
        then: What to do then.
    """

    def __init__(self, at: int = -1, then: Callable[[], object] = lambda: None) -> None:
        super().__init__(lambda _: 1.0)
        self.timed: list[tuple[str, str]] = []
        self.is_wrong = False
        self._at = at
        self._then = then

    def measure(
        self, task: Task, candidates: Sequence[Candidate], incumbent_secs: float | None
    ) -> Iterator[tuple[int, Measurement]]:
        for index, candidate in enumerate(candidates):
            if symbolic_vars(task.func):
                self.timed.append((task.key, candidate.key))
            if len(self.timed) == self._at:
                self._at = -1
                self._then()
            yield index, Measurement((formula(task, candidate),))

    def compare(
        self, task: Task, candidates: Sequence[Candidate], num_rounds: int, seed: int
    ) -> Iterator[Sequence[Measurement]]:
        for _ in range(num_rounds):
            yield [Measurement((formula(task, candidate),)) for candidate in candidates]

    def measure_module(self, task: Task, module: IRModule) -> Measurement:
        if self.is_wrong:
            return Measurement(error=ErrorKind.WRONG_RESULT, message="all zeros")
        return Measurement((1.0,))


@pytest.fixture
def client(database: Database) -> Iterator[TestClient]:
    app = create_app(Dependencies(database))
    with TestClient(app, base_url="http://test/api/v1", raise_server_exceptions=False) as client:
        yield client


def submit(client: TestClient, **options: Any) -> dict[str, Any]:
    response = client.post("/shapes", json={**BODY, **options})
    assert response.status_code == 201, response.text
    return dict(response.json())


@pytest.mark.on_both_databases
def test_a_search_over_ranges_is_submitted_tuned_and_read(
    client: TestClient, database: Database
) -> None:
    headers = {"Idempotency-Key": "k"}
    response = client.post("/shapes", json={**BODY, "name": "rows"}, headers=headers)
    made = response.json()
    assert response.headers["location"] == f"/api/v1/shapes/{made['id']}"
    assert (made["name"], made["ranges"], made["state"]) == ("rows", {"M": [2, 16]}, "queued")
    assert [size["sizes"] for size in made["tuned"]] == [{"M": 2}, {"M": 16}]
    assert (made["kernels"], made["times"], made["dispatcher"]) == ([], [], None)
    refused = problem(client.post(f"/shapes/{made['id']}/artifact"), 404)
    assert "has no kernels yet; they are chosen when its last job has ended" in refused["detail"]

    assert Coordinator(database, (timer := Timer())).run_one()
    after = client.get(f"/shapes/{made['id']}").json()
    assert (after["state"], after["error"], after["num_measured"]) == ("succeeded", None, 32)
    assert after["num_timed"] == len({*timer.timed}) == len(timer.timed)
    assert after["num_kernels"] == len(after["kernels"]) == 2
    assert {kernel["sketch"] for kernel in after["kernels"]} == {"direct", "cached"}
    assert "if M <= " in after["dispatcher"]
    timed = [time["sizes"]["M"] for time in after["times"]]
    assert timed == sorted(timed)
    assert {2, 16} < {*timed} <= {*range(2, 17)}
    assert [time["loss"] is not None for time in after["times"]] == [m in (2, 16) for m in timed]
    assert after["loss"] == pytest.approx(0.0)

    built = client.post(f"/shapes/{made['id']}/artifact")
    assert Artifact.from_bytes(built.content).dispatcher == after["dispatcher"]
    etag = {"If-None-Match": built.headers["etag"]}
    assert client.post(f"/shapes/{made['id']}/artifact", headers=etag).status_code == 304
    [listed] = client.get("/shapes", params={"text": "row"}).json()["items"]
    assert listed == {name: after[name] for name in listed}
    repeated = client.post("/shapes", json={**BODY, "name": "rows"}, headers=headers)
    assert (repeated.headers["idempotent-replayed"], repeated.json()) == ("true", after)


def test_a_coordinator_that_dies_while_kernels_are_chosen_loses_nothing(
    client: TestClient, database: Database
) -> None:
    whole = submit(client)
    Coordinator(database, Timer()).run_one()
    made = submit(client)
    dying = Timer(20, lambda: first.stop(0.0))
    first = Coordinator(database, dying)
    first.run_one()
    amid = client.get(f"/shapes/{made['id']}").json()
    assert (amid["state"], amid["dispatcher"]) == ("queued", None)
    assert amid["num_timed"] == 20
    assert Coordinator(database, (timer := Timer())).run_one()
    assert not {*timer.timed} & {*dying.timed}, "nothing is measured twice"
    results = [client.get(f"/shapes/{each['id']}").json() for each in (whole, made)]
    for name in ("dispatcher", "module", "times", "kernels", "num_timed"):
        assert results[0][name] == results[1][name], name


def test_a_search_that_is_cancelled_meanwhile_has_no_kernels_until_it_is_extended(
    client: TestClient, database: Database, until_seen: Callable[[], None]
) -> None:
    made = submit(client)

    def cancel() -> None:
        client.post(f"/groups/{made['group_id']}/cancel")
        until_seen()

    Coordinator(database, Timer(5, cancel)).run_one()
    amid = client.get(f"/shapes/{made['id']}").json()
    assert (amid["state"], amid["num_kernels"], amid["num_timed"]) == ("cancelled", None, 5)
    client.patch(f"/groups/{made['group_id']}", json={"max_trials": 48})
    Coordinator(database, Timer()).run_one()
    assert client.get(f"/shapes/{made['id']}").json()["num_kernels"] == 2


def test_a_search_that_is_stopped_meanwhile_times_no_further_sizes(
    client: TestClient, database: Database, until_seen: Callable[[], None]
) -> None:
    made = submit(client)

    def stop() -> None:
        client.post(f"/groups/{made['group_id']}/stop")
        until_seen()

    Coordinator(database, Timer(1, stop)).run_one()
    after = client.get(f"/shapes/{made['id']}").json()
    assert after["state"] == "succeeded"
    assert [time["sizes"] for time in after["times"]] == [{"M": 2}, {"M": 16}]


def test_a_limit_on_time_is_one_of_the_searches_and_of_the_choice(
    client: TestClient, database: Database
) -> None:
    made = submit(client, max_secs=1e-6)
    Coordinator(database, Timer()).run_one()
    after = client.get(f"/shapes/{made['id']}").json()
    assert (after["state"], after["num_kernels"]) == ("succeeded", 1)
    assert [size["num_measured"] for size in after["tuned"]] == [1, 1]
    # What is done in any case: a kernel that is correct at the greatest size.
    assert [time["sizes"] for time in after["times"]] == [{"M": 16}]
    assert after["num_timed"] == 1
    assert client.post(f"/shapes/{made['id']}/artifact").status_code == 200


def test_a_dispatcher_that_is_wrong_is_no_result(client: TestClient, database: Database) -> None:
    made = submit(client)
    timer = Timer()
    timer.is_wrong = True
    Coordinator(database, timer).run_one()
    after = client.get(f"/shapes/{made['id']}").json()
    assert (after["state"], after["num_kernels"]) == ("failed", None)
    assert "the dispatcher of product failed at {'M': 16}: wrong_result" in after["error"]
    refused = problem(client.post(f"/shapes/{made['id']}/artifact"), 404)
    assert "has no kernels: the dispatcher of product failed" in refused["detail"]


@pytest.mark.parametrize(
    ("body", "pointer", "reason"),
    [
        ({"ranges": {"n": [1, 8]}}, "/ranges", "product has no symbolic extent n: it has M"),
        ({"ranges": {"M": [8, 1]}}, "/ranges", "M runs from 8 to 1"),
        ({"ranges": {"M": [1, 1 << 30]}}, "/workload/script", "bytes"),
        ({"ranges": {"M": [0, 8]}}, "/ranges/M/0", "greater than or equal to 1"),
        ({"ranges": {"M": [1, 1 << 40]}}, "/ranges/M/1", "less than or equal to"),
        ({"ranges": {}}, "/ranges", 'M has no range, such as "M": (1, 512)'),
        ({"workload": {"operator": "matmul:8,8,8"}}, "/workload/operator", "submit it as a job"),
        ({"workload": {"script": "def f("}}, "/workload/script", "never closed"),
        ({"max_trials": 15}, "/max_trials", "expected 16 or more"),
    ],
)
def test_a_wrong_request_is_refused_with_its_place(
    client: TestClient, body: dict[str, Any], pointer: str, reason: str
) -> None:
    refused = problem(client.post("/shapes", json={**BODY, **body}), 422)
    assert refused["errors"][0]["pointer"] == pointer, refused
    assert reason in refused["errors"][0]["detail"], refused


def test_an_id_of_no_search_is_not_found(client: TestClient) -> None:
    for answer in (
        client.get(f"/shapes/{UUID(int=1)}"),
        client.post(f"/shapes/{UUID(int=1)}/artifact"),
    ):
        assert "no search over ranges" in problem(answer, 404)["detail"]
