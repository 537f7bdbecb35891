"""Records go from store to store: nothing is lost, nothing twice, nothing half."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import permutations
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import select, text
from sqlalchemy.orm import class_mapper

from service.common.errors import UnprocessableError
from service.common.owner import Owner
from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.http.routes.records import MEDIA_TYPE
from service.records.lines import VERSION
from service.records.write import Selection
from service.store.database.database import Database, open_database
from service.store.jobs import claims
from service.store.jobs.jobs import JobRow
from service.store.results.best_schedules import BestScheduleRow
from service.store.schema import ROWS
from service.wire.models import JobState
from service.wire.server_models import ImportRead
from tests.integration.service.recorded import (
    NUM_TRIALS,
    SPECS,
    TARGETS,
    History,
    candidates,
    content_of,
    file_of,
    get,
    of_version_1,
    put,
)

NOTHING = ImportRead(**dict.fromkeys(ImportRead.model_fields, 0))
GROUP = UUID(int=7)
HISTORIES = [
    *(History(UUID(int=100 + n), SPECS[n % 2], TARGETS[n // 2 % 2], seed=n) for n in range(4)),
    *(History(UUID(int=104 + n), SPECS[n], TARGETS[0], 4 + n, GROUP, n + 0.5) for n in range(2)),
]
WHOLE = file_of([(history, NUM_TRIALS, True) for history in HISTORIES])

versions = st.tuples(st.sampled_from(HISTORIES), st.integers(0, NUM_TRIALS), st.booleans())
files = st.builds(
    file_of,
    st.lists(versions, max_size=4, unique_by=lambda version: version[0].job_id),
    st.sampled_from([2 * NUM_TRIALS, 3 * NUM_TRIALS]),
    st.sampled_from([None, 1e11, 2e11]),
)


@pytest.fixture
def store(empty_database_file: Path, tmp_path: Path) -> Iterator[Callable[[], Database]]:
    """Return what opens empty stores."""
    with ExitStack() as opened:

        def new() -> Database:
            path = tmp_path / f"{len(list(tmp_path.iterdir()))}.db"
            shutil.copy(empty_database_file, path)
            database = open_database(f"sqlite:///{path}")
            opened.callback(database.close)
            return database

        yield new


def rows_of(database: Database) -> dict[str, list[dict[str, Any]]]:
    """Return all rows but those that tell of this store's own life."""
    left_out = {"events"}
    found: dict[str, list[dict[str, Any]]] = {}
    with database.read() as session:
        for table in ROWS:
            if table.__tablename__ in left_out:
                continue
            columns = [column.key for column in class_mapper(table).columns]
            rows = [
                {c: repr(getattr(row, c)) for c in columns}
                for row in session.scalars(select(table))
            ]
            for row in rows:
                if table.__tablename__ == "targets":
                    row.pop("created_at")
            found[table.__tablename__] = sorted(rows, key=repr)
    return found


@settings(
    max_examples=6,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(some=st.lists(files, min_size=2, max_size=3))
def test_merging_depends_on_neither_order_nor_repetition(
    store: Callable[[], Database], some: list[bytes]
) -> None:
    seen: list[dict[str, list[dict[str, Any]]]] = []
    for order in list(permutations(some))[:3]:
        database = store()
        for file in order:
            put(database, file)
        seen.append(rows_of(database))
        for file in some:
            assert put(database, file) == NOTHING
        assert rows_of(database) == seen[-1]
    assert all(rows == seen[0] for rows in seen)


@settings(
    max_examples=6,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(some=st.lists(files, min_size=2, max_size=2))
def test_stores_that_are_merged_into_each_other_have_the_same_content(
    store: Callable[[], Database], some: list[bytes]
) -> None:
    a, b, c = store(), store(), store()
    for database, file in zip((a, b), some, strict=True):
        put(database, file)
    from_a, from_b = get(a), get(b)
    for database, file in ((a, from_b), (b, from_a), (c, from_b), (c, from_a)):
        put(database, file)
    assert content_of(get(a)) == content_of(get(b)) == content_of(get(c))
    for database in (a, b, c):
        assert put(database, get(a)) == NOTHING


def test_a_store_goes_into_another_and_back_and_nothing_changes(
    store: Callable[[], Database],
) -> None:
    a, b = store(), store()
    added = put(a, WHOLE)
    assert (added.jobs, added.trials) == (len(HISTORIES), len(HISTORIES) * NUM_TRIALS)
    assert content_of(get(a)) == content_of(WHOLE)
    before = rows_of(a)
    assert put(b, get(a)) == added
    assert put(a, get(b)) == NOTHING
    assert rows_of(a) == rows_of(b) == before


def described(file: bytes, **texts: Any) -> bytes:
    """Return a file whose jobs have texts."""
    lines = [line | texts if line["kind"] == "job" else line for line in objects(file)]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def test_names_notes_and_tags_of_jobs_are_found_where_they_are_imported(
    store: Callable[[], Database],
) -> None:
    plain = file_of([(HISTORIES[0], NUM_TRIALS, True)])
    named = described(plain, name="first layer", note="quiet host", tags=["nightly"])
    other = described(plain, name="a layer")
    for order in permutations([plain, named, other]):
        database = store()
        for file in order:
            put(database, file)
        with TestClient(create_app(Dependencies(database)), base_url="http://a/api/v1") as client:
            (job,) = client.get("/jobs?tag=nightly&text=quiet").json()["items"]
            assert job["name"] == "first layer"
        assert put(database, plain) == NOTHING
        (line,) = [line for line in objects(get(database)) if line["kind"] == "job"]
        assert (line["note"], line["tags"]) == ("quiet host", ["nightly"])


def test_a_job_that_grew_elsewhere_is_brought_up_to_date(store: Callable[[], Database]) -> None:
    database = store()
    history = HISTORIES[0]
    put(database, file_of([(history, 2, False)]))
    with database.read() as session:
        row = session.get_one(JobRow, history.job_id)
        assert (row.state, row.num_measured) == (JobState.CANCELLED, 2)
        assert "running when these records were exported" in str(row.error)
    added = put(database, file_of([(history, NUM_TRIALS, True)]))
    assert (added.jobs, added.updated_jobs, added.trials) == (0, 1, NUM_TRIALS - 2)
    assert content_of(get(database)) == content_of(file_of([(history, NUM_TRIALS, True)]))
    assert put(database, file_of([(history, 2, False)])) == NOTHING


def test_a_job_that_runs_here_is_left_alone(store: Callable[[], Database]) -> None:
    database = store()
    history = HISTORIES[0]
    put(database, file_of([(history, 2, False)]))
    with database.write() as session:
        session.get_one(JobRow, history.job_id).state = JobState.QUEUED
        assert claims.claim(session, Owner.here()) is not None
    before = rows_of(database)
    assert put(database, WHOLE).skipped_jobs == 1
    assert [j for j in rows_of(database)["jobs"] if str(history.job_id) in j["id"]] == [
        j for j in before["jobs"] if str(history.job_id) in j["id"]
    ]


def test_the_best_schedule_is_the_fastest_of_what_came_together(
    store: Callable[[], Database],
) -> None:
    """Says of each task what a plain reading of the lines says."""
    database = store()
    put(database, WHOLE)
    lines = objects(WHOLE)
    jobs = {line["id"]: line for line in lines if line["kind"] == "job"}
    finals = objects(WHOLE, "final")
    kept = {line["job_id"] for line in finals if line["outcome"] == "kept"}
    failed = {(line["job_id"], line["number"]) for line in finals if line["error"]}
    wanted: dict[tuple[str, str], float] = {}
    for line in lines:
        if line["kind"] == "final" and line["outcome"] == "kept":
            secs = line["run_secs"]
        elif line["kind"] == "trial" and line["job_id"] not in kept and line["error"] is None:
            if (line["job_id"], line["number"]) in failed:
                continue
            secs = min(line["run_secs"])
        else:
            continue
        job = jobs[line["job_id"]]
        task = (job["workload_key"], job["target"])
        wanted[task] = min(secs, wanted.get(task, secs))
    with database.read() as session:
        rows = session.scalars(select(BestScheduleRow)).all()
    assert {(row.workload_key, row.target): row.run_secs for row in rows} == wanted
    assert len(wanted) == len(SPECS) * len(TARGETS)


def objects(file: bytes, kind: str | None = None) -> list[dict[str, Any]]:
    """Return the lines of a file, those of one kind if it is given."""
    found = map(json.loads, file.splitlines())
    return [line for line in found if kind in {None, line["kind"]}]


def changed(number: int, /, **changes: Any) -> bytes:
    """Return the file with one line changed, `number` from 1."""
    lines = WHOLE.splitlines()
    lines[number - 1] = json.dumps({**json.loads(lines[number - 1]), **changes}).encode()
    return b"\n".join(lines) + b"\n"


LINE_OF_JOB_1 = 1 + next(
    place
    for place, line in enumerate(WHOLE.splitlines())
    if f'"job","id":"{HISTORIES[1].job_id}'.encode() in line
)
HALF = WHOLE[: len(WHOLE) // 2]
# Lines 1 to 8: header, two workloads, two targets, a group, a job, its trial 0.
WRONG: dict[str, tuple[bytes, int, str]] = {
    "nothing": (b"", 1, "the file is empty"),
    "a compressed file": (gzip.compress(WHOLE), 1, "compressed: unpack it"),
    "a mark before the text": (b"\xef\xbb\xbf" + WHOLE, 1, "UTF-8, without a byte order mark"),
    "a line of 17 MB": (
        WHOLE.replace(b"host/0", b"x" * (17 << 20), 1),
        8,
        "^nothing was imported: line 8: it is longer than 16777216 bytes$",
    ),
    "another file": (b'{"a": 1}\n', 1, "kind"),
    "no JSON": (b"hello\n", 1, "JSON"),
    "a newer format": (changed(1, version=VERSION + 1), 1, "upgrade"),
    "no header": (b"\n".join(WHOLE.splitlines()[1:]), 1, "header"),
    "cut off": (b"\n".join(WHOLE.splitlines()[:-1]), len(WHOLE.splitlines()), "truncated"),
    "cut amid a line": (
        WHOLE[: len(WHOLE) // 2],
        WHOLE[: len(WHOLE) // 2].count(b"\n") + 1,
        "the file ends within it",
    ),
    "a line is missing": (
        b"\n".join([*WHOLE.splitlines()[:5], *WHOLE.splitlines()[6:]]),
        len(WHOLE.splitlines()) - 1,
        "lines between header and end, got",
    ),
    "a wrong script": (changed(2, script="@T.prim_func\ndef f(:"), 2, "script"),
    "a script of another key": (changed(2, key="0" * 64), 2, "key"),
    "an unknown workload": (changed(7, workload_key="0" * 64), 7, "no line above"),
    "an unknown group": (changed(7, group_id=str(UUID(int=1))), 7, "no line above has group"),
    "a group without trials": (changed(6, max_trials=0), 6, "max_trials"),
    "a target twice": (changed(5, name=TARGETS[1]), 5, "is a duplicate"),
    "another target": (changed(4, name="cpu -mcpu=nothing"), 4, "name"),
    "an unknown target": (changed(7, target="cpu -mcpu=nothing"), 7, "target"),
    "an unknown state": (changed(7, state="asleep"), 7, "state"),
    "an unknown field": (changed(7, colour="red"), 7, "colour"),
    "no time zone": (changed(7, created_at="2026-01-01T00:00:00"), 7, "created_at"),
    "a job twice": (changed(7, id=str(HISTORIES[1].job_id)), LINE_OF_JOB_1, "is a duplicate"),
    "a trial of another job": (changed(8, job_id=str(UUID(int=1))), 8, "the job above"),
    "a wrong trace": (changed(8, trace={"format": 1}), 8, "trace"),
    "a key that is none": (changed(8, candidate_key="0"), 8, "candidate_key"),
    "times and an error": (changed(8, run_secs=[1.0], error="crash"), 8, "either"),
    "a time that is none": (changed(8, run_secs=[0.0], error=None), 8, "run_secs"),
    "a zero character": (changed(8, worker="a\0b"), 8, "zero"),
    "a trial twice": (changed(9, number=0), 9, "is a duplicate"),
    "bytes that are no text": (WHOLE.replace(b"host/0", b"host/\xff", 1), 8, "invalid unicode"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_line_is_named_and_nothing_is_imported(
    store: Callable[[], Database], what: str
) -> None:
    content, line, words = WRONG[what]
    database = store()
    with pytest.raises(UnprocessableError, match=words) as caught:
        put(database, content)
    assert line in [flaw.line for flaw in caught.value.flaws]
    assert not any(rows_of(database).values())


def test_what_contradicts_the_store_is_refused_and_nothing_is_imported(
    store: Callable[[], Database],
) -> None:
    database = store()
    put(database, file_of([(HISTORIES[0], NUM_TRIALS, True)]))
    before = rows_of(database)
    other = changed(8, worker="another host")
    with pytest.raises(UnprocessableError, match="line 8: the store has another trial 0"):
        put(database, other)
    swapped = candidates(SPECS[0])[1]
    lines = file_of([(HISTORIES[0], 1, False)]).replace(
        candidates(SPECS[0])[0].key.encode(), swapped.key.encode()
    )
    record = json.loads(lines.splitlines()[4])
    record |= {"trace": swapped.trace.to_json(), "number": NUM_TRIALS}
    lines = b"\n".join(
        [*lines.splitlines()[:4], json.dumps(record).encode(), *lines.splitlines()[5:]]
    )
    with pytest.raises(UnprocessableError, match="line 5: the store has its candidate as trial 1"):
        put(database, lines)
    assert rows_of(database) == before


@pytest.mark.on_both_databases
def test_a_store_of_either_kind_takes_a_file_once_and_in_parts(database: Database) -> None:
    parts = [(history, 2, False) for history in HISTORIES]
    put(database, file_of(parts))
    added = put(database, WHOLE)
    assert (added.jobs, added.updated_jobs) == (0, len(HISTORIES))
    assert put(database, WHOLE) == put(database, file_of(parts)) == NOTHING
    with pytest.raises(UnprocessableError, match="line 8: the store has another trial 0"):
        put(database, changed(8, trace=candidates(SPECS[0])[1].trace.to_json()))
    assert content_of(get(database)) == content_of(WHOLE)


def test_a_job_is_of_one_group(store: Callable[[], Database]) -> None:
    database = store()
    put(database, WHOLE)
    for other in (
        WHOLE.replace(str(GROUP).encode(), str(UUID(int=8)).encode()),
        WHOLE.replace(b'"weight":1.5', b'"weight":2.5'),
    ):
        with pytest.raises(UnprocessableError, match="exists with another group or weight"):
            put(database, other)


def test_a_file_of_version_1_is_read_and_its_jobs_join_their_group_later(
    store: Callable[[], Database],
) -> None:
    old, new = store(), store()
    put(new, WHOLE)
    added = put(old, of_version_1(WHOLE))
    assert (added.groups, added.jobs) == (0, len(HISTORIES))
    with old.read() as session:
        assert session.get_one(JobRow, HISTORIES[-1].job_id).group_id is None
    assert put(new, of_version_1(WHOLE)) == NOTHING
    added = put(old, WHOLE)
    assert (added.groups, added.jobs, added.trials) == (1, 0, 0)
    assert added.baselines == len(objects(WHOLE, "baseline")) > 0
    assert content_of(get(old)) == content_of(get(new)) == content_of(WHOLE)


def test_others_write_until_a_file_was_found_right(store: Callable[[], Database]) -> None:
    """What is wrong is refused while another transaction writes; SQLite has one at a time."""
    database = store()
    put(database, WHOLE)
    with database.write() as session:
        session.execute(text("DELETE FROM tokens"))
        for wrong in (changed(8, trace={"format": 1}), changed(8, worker="another host")):
            with pytest.raises(UnprocessableError):
                put(database, wrong)


def test_the_routes_write_and_read_files(store: Callable[[], Database]) -> None:
    source, sink = store(), store()
    put(source, WHOLE)
    with TestClient(create_app(Dependencies(source))) as client:
        file = client.get("/api/v1/export").content
        job = str(HISTORIES[2].job_id)
        one = client.get("/api/v1/export", params={"job": job}).content
        for_target = client.get("/api/v1/export", params={"target": TARGETS[1]}).content
        assert client.get("/api/v1/export", params={"job": str(UUID(int=1))}).status_code == 404
    assert content_of(file) == content_of(WHOLE)
    assert [line["id"] for line in objects(one, "job")] == [job]
    assert {line["target"] for line in objects(for_target, "job")} == {TARGETS[1]}
    with TestClient(create_app(Dependencies(sink)), headers={"Content-Type": MEDIA_TYPE}) as client:
        added = client.post("/api/v1/import", content=file)
        assert (added.status_code, added.json()["jobs"]) == (200, len(HISTORIES))
        assert client.post("/api/v1/import", content=file).json() == NOTHING.model_dump()
        refused = client.post("/api/v1/import", content=file[:-20])
        assert refused.status_code == 422
        assert refused.json()["errors"][0]["line"] == len(WHOLE.splitlines())
        nearest = client.get(f"/api/v1/jobs/{job}/trials").json()["items"]
        assert [trial["number"] for trial in nearest] == list(range(NUM_TRIALS))
        events = client.get(f"/api/v1/jobs/{job}/events").text
        assert '"imported":true' in events.replace(" ", "")
    assert content_of(get(sink, Selection((UUID(job),)))) == content_of(one)
