"""Lists: every order, every filter and every cut into pages gives each row once, in order."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, get_args
from uuid import UUID, uuid4

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import insert

from compiler.runtime.measurement import ErrorKind
from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.reading import queries
from service.store import tokens
from service.store.cost_models import NewCostModel, add
from service.store.database.base import utc_now
from service.store.database.database import Database
from service.store.jobs import groups
from service.store.jobs.jobs import JobRow
from service.store.models import ModelRow, ModelTaskRow
from service.store.results.best_schedules import BestScheduleRow
from service.store.targets import TargetRow
from service.store.trials.trials import TrialRow
from service.store.workers import WorkerRow
from service.store.workloads import WorkloadRow
from service.wire.models import JobState
from service.wire.readings import TrialOutcome
from service.wire.server_models import Scope
from tests.service_fixtures import TARGET, WORKLOAD, add_job, problem

NOW = utc_now()
LISTS: dict[str, type[queries.ListQuery]] = {
    "jobs": queries.JobsQuery,
    "models": queries.ModelsQuery,
    "schedules": queries.SchedulesQuery,
    "workloads": queries.WorkloadsQuery,
    "targets": queries.TargetsQuery,
    "cost-models": queries.CostModelsQuery,
    "workers": queries.WorkersQuery,
    "tokens": queries.TokensQuery,
}
SORTS = [
    (name, s) for name, q in LISTS.items() for s in get_args(q.model_fields["sort"].annotation)
]
TRIAL_SORTS = get_args(queries.TrialsQuery.model_fields["sort"].annotation)
Read = Callable[[dict[str, Any]], Any]

few = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
times = st.sampled_from([None, 0.5, 1.0, 2.0, 1 / 3])


@pytest.fixture
def client(database: Database) -> Iterator[TestClient]:
    app = create_app(Dependencies(database), token="t")
    headers = {"Authorization": "Bearer t"}
    with TestClient(app, base_url="http://test/api/v1", headers=headers) as client:
        yield client


def paged(client: TestClient, path: str, limit: int, **params: Any) -> list[dict[str, Any]]:
    """Return all items of a list, read in pages."""
    found: list[dict[str, Any]] = []
    while True:
        answer = client.get(path, params={**params, "limit": limit})
        assert answer.status_code == 200, answer.text
        page = answer.json()
        assert len(page["items"]) <= limit
        found += page["items"]
        if page["next_cursor"] is None:
            return found
        assert len(page["items"]) == limit
        params["cursor"] = page["next_cursor"]


def in_order(items: Sequence[dict[str, Any]], key: Read, tie: Read, sort: str) -> list[Any]:
    """Sort items as the API says it does: nulls last, ties the same way as the rest."""
    is_descending = sort.startswith("-")
    known = sorted(
        (i for i in items if key(i) is not None),
        key=lambda item: (key(item), tie(item)),
        reverse=is_descending,
    )
    unknown = sorted((i for i in items if key(i) is None), key=tie, reverse=is_descending)
    return [tie(item) for item in known + unknown]


def add_trials(database: Database, job_id: UUID, rows: Sequence[dict[str, Any]]) -> None:
    """Add trials with these columns; the others are of no matter."""
    usual = {
        "job_id": job_id, "round": 0, "sketch": "s", "trace": {}, "predicted": None, "error": None,
        "message": "", "run_secs": [], "best_secs": None, "max_error": None, "build_secs": 0.0,
        "check_secs": 0.0, "time_secs": 0.0, "worker": "w", "toolchain": "t", "created_at": NOW,
        "decisions": [],
    }  # fmt: skip
    filled = [{**usual, "candidate_key": str(row["number"]), **row} for row in rows]
    with database.write() as session:
        session.execute(insert(TrialRow), filled)
        session.get_one(JobRow, job_id).num_measured += len(rows)


def filled(database: Database) -> UUID:
    """Add some rows to each table; return a job with trials."""
    ids = [add_job(database) for _ in range(5)]
    with database.write() as session:
        for n, job_id in enumerate(ids):
            job = session.get_one(JobRow, job_id)
            job.best_secs = [None, 0.5, 0.25, None, 0.5][n]
            job.priority = n % 2
            session.add(TargetRow(name=f"t{n}", label="cpu/l", created_at=NOW))
            shape = {"blocks": [[1, 512 + n], [512 + n, 384, 128]], "factors": []}
            values = {"name": "same", "script": "", "flops": 7 * (n % 3), "shape": shape}
            session.add(WorkloadRow(key=f"k{n}", created_at=NOW, **values))
            session.flush()
            job.target, job.workload_key = f"t{n}", f"k{n}"
            job.default_secs = [None, 1.0, 1.0, 2.0, None][n]
            add(session, NewCostModel(label="cpu/l", blob=b"", trained_on=n // 2))
            seen = {"host": "h", "label": "l", "last_seen_at": utc_now(), "facts": {}}
            session.add(WorkerRow(name=f"w{n}", state="idle", **seen))
            group_id = groups.create(session, 16).id
            job.group_id = group_id
            model = {"name": f"m{n // 2}", "group_id": group_id, "num_steps": 0, "steps": []}
            session.add(ModelRow(id=job_id, target=f"t{n}", created_at=NOW, **model))
            session.flush()
            part = {"operators": "relu", "weight": 1.0, "size_bytes": 8, "job_id": job_id}
            session.add(ModelTaskRow(model_id=job_id, number=0, workload_key=f"k{n}", **part))
            token, _ = tokens.create(session, f"t{n // 2}", [Scope.READ])
            token.created_at, token.revoked_at = NOW, NOW if n % 2 == 0 else None
    for n, job_id in enumerate(ids):
        rows = [
            {"number": i, "best_secs": None if i % 3 == 1 else 1 / (i % 4 + 1)} for i in range(7)
        ]
        add_trials(database, job_id, rows)
        with database.write() as session:
            best = {"run_secs": 0.5 + n // 2, "updated_at": NOW - timedelta(seconds=n % 2)}
            task = {"workload_key": f"k{n}", "target": f"t{n}"}
            session.add(BestScheduleRow(job_id=job_id, trial_number=0, **task, **best))
    return ids[0]


@pytest.mark.on_both_databases
def test_any_list_in_any_order_is_the_same_in_pages_of_any_size(
    client: TestClient, database: Database
) -> None:
    job_id = filled(database)
    lists = [*SORTS, *((f"jobs/{job_id}/trials", sort) for sort in TRIAL_SORTS)]
    for name, sort in lists:
        whole = paged(client, f"/{name}", 500, sort=sort)
        assert len(whole) >= 5, name
        for limit in (1, 2, 3):
            assert paged(client, f"/{name}", limit, sort=sort) == whole, (name, sort, limit)
        other = sort[1:] if sort.startswith("-") else f"-{sort}"
        assert (name, other) not in lists or paged(client, f"/{name}", 500, sort=other) != whole


@pytest.mark.on_both_databases
def test_a_zero_character_is_refused_in_addresses_and_cursors(client: TestClient) -> None:
    for query in ("text=%00", "owner=a%00", "target=%00"):
        refused = problem(client.get(f"/models?{query}"), 400)
        assert "zero character" in refused["detail"]
    problem(client.get("/workloads/a%00"), 400)
    written = queries.ModelsQuery(sort="name").asked("models", "name")
    cursor = json.dumps(["name", written.digest, "a\0b", str(uuid4())]).encode()
    text = base64.urlsafe_b64encode(cursor).decode()
    refused = problem(client.get("/models", params={"sort": "name", "cursor": text}), 422)
    assert "is not a cursor of this list" in refused["detail"]


@few
@given(
    rows=st.lists(st.tuples(times, st.integers(0, 2), st.sampled_from(JobState)), max_size=9),
    sort=st.sampled_from(get_args(queries.JobsQuery.model_fields["sort"].annotation)),
    wanted=st.sets(st.sampled_from(JobState), max_size=2),
    limit=st.integers(1, 4),
)
def test_jobs_in_pages_are_jobs_in_order(
    client: TestClient,
    database: Database,
    *,
    rows: list[tuple[float | None, int, JobState]],
    sort: str,
    wanted: set[JobState],
    limit: int,
) -> None:
    owner = str(uuid4())
    for best, number, state in rows:
        job_id = add_job(database)
        with database.write() as session:
            job = session.get_one(JobRow, job_id)
            job.best_secs, job.num_measured, job.priority, job.state = best, number, number, state
            job.created_at, job.owner = NOW + timedelta(microseconds=number), owner
    every = client.get("/jobs", params={"limit": 500, "owner": owner}).json()["items"]
    assert len(every) == len(rows)
    expected = [job for job in every if not wanted or job["state"] in wanted]
    found = paged(client, "/jobs", limit, sort=sort, owner=owner, state=sorted(wanted))
    ids = in_order(expected, lambda j: j[sort.removeprefix("-")], lambda j: j["id"], sort)
    assert [job["id"] for job in found] == ids


@few
@given(
    rows=st.lists(st.tuples(times, st.sampled_from(ErrorKind), st.sampled_from("ab")), max_size=12),
    sort=st.sampled_from(TRIAL_SORTS),
    wanted=st.sets(st.sampled_from(TrialOutcome), max_size=3),
    sketch=st.sampled_from([None, "a"]),
    limit=st.integers(1, 5),
)
def test_trials_in_pages_are_trials_in_order(
    client: TestClient,
    database: Database,
    *,
    rows: list[tuple[float | None, ErrorKind, str]],
    sort: str,
    wanted: set[TrialOutcome],
    sketch: str | None,
    limit: int,
) -> None:
    job_id = add_job(database)
    made = [
        {
            "number": 2 * n,
            "best_secs": secs,
            "error": kind if secs is None else None,
            "sketch": name,
            "run_secs": [] if secs is None else [secs],
        }
        for n, (secs, kind, name) in enumerate(rows)
    ]
    add_trials(database, job_id, made) if made else None
    params: dict[str, Any] = {"sort": sort, "outcome": sorted(wanted)}
    if sketch is not None:
        params["sketch"] = sketch
    found = paged(client, f"/jobs/{job_id}/trials", limit, **params)
    expected = [
        row
        for row in made
        if (not wanted or (row["error"] or "ok") in wanted) and sketch in (None, row["sketch"])
    ]
    key = sort.removeprefix("-")
    numbers = in_order(expected, lambda t: t[key], lambda t: t["number"], sort)
    assert [trial["number"] for trial in found] == numbers


def test_rows_that_come_meanwhile_repeat_and_hide_none(
    client: TestClient, database: Database
) -> None:
    ids = {str(add_job(database)) for _ in range(4)}
    first = client.get("/jobs", params={"limit": 2}).json()
    add_job(database)
    rest = client.get("/jobs", params={"limit": 500, "cursor": first["next_cursor"]}).json()
    seen = [job["id"] for job in first["items"] + rest["items"]]
    assert len(seen) == 4
    assert set(seen) == ids


@pytest.mark.on_both_databases
def test_filters_find_what_they_say(client: TestClient, database: Database) -> None:
    job_id = filled(database)

    def count(path: str, **params: Any) -> int:
        return len(paged(client, path, 500, **params))

    assert count("/jobs", text=str(job_id)[:18]) == 1
    assert count("/jobs", text="MATMUL") == count("/jobs", operator=WORKLOAD.name) == 5
    assert count("/jobs", text="%") == count("/jobs", operator="conv2d") == 0
    assert count("/jobs", target="T3") == 1
    assert count("/jobs", state=["queued", "failed"]) == 5
    assert count("/jobs", group=str(job_id)) == count("/jobs", owner="nobody") == 0
    assert count("/schedules", text="k3") == 1
    for path in ("/jobs", "/schedules", "/workloads"):
        assert count(path, text="514 x 384") == count(path, text="514\u00d7384,128") == 1
        assert count(path, text="384 x 128") == 5
        assert count(path, text="514 x 128") == count(path, text="514 or 384") == 0
    assert count("/workloads", operator="same") == 5
    assert count("/targets", text=TARGET) == 1
    assert count("/cost-models", of_store=True) == 5
    assert count("/workers", state="busy") == 0
    assert (count("/tokens", text="T1"), count("/tokens", revoked=True)) == (2, 3)
    assert count("/tokens", revoked=False, text="t0") == 1
    assert count(f"/jobs/{job_id}/trials", from_number=2, to_number=4) == 3


def cursor(*values: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")


@pytest.mark.parametrize("text", ["x", "W10", "WzEsMl0", "é", cursor("-created_at"), "e30"])
def test_a_cursor_that_is_not_ours_is_refused(client: TestClient, text: str) -> None:
    answer = client.get("/jobs", params={"cursor": text})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "query/cursor"


def next_cursor(client: TestClient, path: str, **params: Any) -> str:
    return str(client.get(path, params={"limit": 1, **params}).json()["next_cursor"])


def test_a_cursor_of_another_list_order_or_filter_is_refused(
    client: TestClient, database: Database
) -> None:
    job_id, other_id = filled(database), add_job(database)
    add_trials(database, other_id, [{"number": n} for n in range(3)])
    trials = f"/jobs/{job_id}/trials"
    for path, given_for, params, reason in [
        ("/jobs", next_cursor(client, "/jobs"), {"sort": "best_secs"}, "sorted by '-created_at'"),
        ("/jobs", next_cursor(client, "/jobs"), {"state": "queued"}, "other filters"),
        (f"/jobs/{other_id}/trials", next_cursor(client, trials), {}, "another list"),
        ("/workloads", next_cursor(client, "/jobs"), {}, "another list"),
    ]:
        answer = client.get(path, params={"cursor": given_for, **params})
        assert answer.status_code == 422
        assert reason in answer.json()["detail"]


@pytest.mark.parametrize(
    ("path", "sort", "keys"),
    [
        ("/workloads", "flops", [2**63, "k"]),
        ("/workloads", "flops", [-(2**63) - 1, "k"]),
        ("/workloads", "flops", [True, "k"]),
        ("/workloads", "flops", [None, "k"]),
        ("/workloads", "flops", [1, "k", "k"]),
        ("/workloads", "created_at", ["0001-01-01T00:00:00+14:00", "k"]),
        ("/workloads", "created_at", ["9999-12-31T23:59:59-14:00", "k"]),
        ("/workloads", "created_at", ["2026-01-01T00:00:00", "k"]),
        ("/schedules", "run_secs", [float("inf"), "k", "t"]),
        ("/schedules", "run_secs", [float("nan"), "k", "t"]),
    ],
)
def test_a_cursor_that_claims_what_no_column_holds_is_refused(
    client: TestClient, database: Database, path: str, sort: str, keys: list[Any]
) -> None:
    filled(database)
    real = next_cursor(client, path, sort=sort)
    head = json.loads(base64.urlsafe_b64decode(real + "=" * (-len(real) % 4)))[:2]
    answer = client.get(path, params={"sort": sort, "cursor": cursor(*head, *keys)})
    assert answer.status_code == 422, answer.text


@pytest.mark.parametrize("path", [f"/{name}" for name in LISTS])
def test_a_parameter_that_is_unknown_is_refused(client: TestClient, path: str) -> None:
    answer = client.get(path, params={"stat": "queued"})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "query/stat"


def test_outcomes_are_the_kinds_of_errors_and_ok() -> None:
    assert {o.value for o in TrialOutcome} == {"ok", *(k.value for k in ErrorKind)}
