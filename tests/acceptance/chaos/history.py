"""The history of leases and trials, written by triggers of PostgreSQL, and a model that checks it.

A trigger sees every transaction that commits, in its order, whatever is killed. The model knows
nothing of coordinators but when their processes ended, and who held session locks. Times are those
of the database, which no fault changes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import psycopg

TABLE = "chaos_history"
"""No table of the service: its triggers write it."""
_TRIGGERS = f"""
CREATE TABLE {TABLE} (
    id bigserial PRIMARY KEY,
    at double precision NOT NULL DEFAULT extract(epoch FROM clock_timestamp()),
    session text NOT NULL DEFAULT concat(pg_backend_pid(), '/', inet_client_port()),
    job text NOT NULL,
    number integer,
    state text,
    owner text,
    lease_until double precision,
    num_measured integer,
    lock_was_free boolean NOT NULL DEFAULT false
);
CREATE FUNCTION chaos_note_job() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    lock text := substring(OLD.lease_owner FROM '[+]([0-9]+)$');
    is_free boolean := lock IS NOT NULL AND NEW.lease_owner IS DISTINCT FROM OLD.lease_owner
        AND NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2
            AND objid = lock::bigint);
BEGIN
    INSERT INTO {TABLE} (job, state, owner, lease_until, num_measured, lock_was_free) VALUES (
        NEW.id, NEW.state, NEW.lease_owner, extract(epoch FROM NEW.lease_until), NEW.num_measured,
        is_free);
    RETURN NULL;
END $$;
CREATE FUNCTION chaos_note_trial() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO {TABLE} (job, number, owner) VALUES (
        NEW.job_id, NEW.number, (SELECT lease_owner FROM jobs WHERE jobs.id = NEW.job_id));
    RETURN NULL;
END $$;
CREATE TRIGGER chaos_note_job AFTER INSERT OR UPDATE ON jobs
    FOR EACH ROW EXECUTE FUNCTION chaos_note_job();
CREATE TRIGGER chaos_note_trial AFTER INSERT ON trials
    FOR EACH ROW EXECUTE FUNCTION chaos_note_trial();
"""
_DROPS = f"""
DROP TRIGGER chaos_note_job ON jobs;
DROP TRIGGER chaos_note_trial ON trials;
DROP FUNCTION chaos_note_job, chaos_note_trial;
DROP TABLE {TABLE};
"""
_FINAL = {"succeeded", "failed", "cancelled"}
_MOVES: dict[str | None, set[str]] = {
    None: {"queued"},
    "queued": {"queued", "running", "cancelled"},
    "running": {"queued", "running", *_FINAL},
    **{state: {state} for state in _FINAL},
}
"""The next states of a job; nothing in these histories resumes an ended job."""


class Entry(NamedTuple):
    """A change of a job, or a new trial: then `number` is not None.

    `lock_was_free` says that the change took a job whose last owner had lost its session lock.
    """

    at: float
    session: str
    job: str
    number: int | None
    state: str | None
    owner: str | None
    lease_until: float | None
    num_measured: int | None
    lock_was_free: bool = False


@dataclass
class Processes:
    """The last moment at which a process lived for certain, by its id, once it has ended."""

    ended_at: dict[int, float] = field(default_factory=dict)

    def had_ended(self, owner: str, at: float) -> bool:
        """Return whether the process of a lease owner had ended before some time."""
        return self.ended_at.get(_pid(owner), float("inf")) < at


def begin(connection: psycopg.Connection[Any]) -> None:
    """Begin a history: create the triggers."""
    connection.execute(_TRIGGERS.encode())


def end(connection: psycopg.Connection[Any]) -> None:
    """End a history: drop all of it."""
    connection.execute(_DROPS.encode())


def read(connection: psycopg.Connection[Any]) -> list[Entry]:
    """Return the history in the order of the transactions: one writes at a time."""
    columns = ", ".join(Entry._fields)
    rows = connection.execute(f"SELECT {columns} FROM {TABLE} ORDER BY id".encode())
    return [Entry(*row) for row in rows]


def violations(history: Sequence[Entry], processes: Processes) -> list[str]:
    """Return what no correct service does, in words; empty if the history is correct."""
    by_job = defaultdict(list)
    for entry in history:
        by_job[entry.job].append(entry)
    found = [line for job, entries in by_job.items() for line in _of_job(job, entries, processes)]
    return found + list(_of_sessions(history))


def _of_job(job: str, entries: Sequence[Entry], processes: Processes) -> Iterator[str]:
    last: Entry | None = None
    numbers: list[int] = []
    for entry in entries:
        if entry.number is not None:
            numbers.append(entry.number)
            if last is None or last.state != "running":
                yield f"job {job}: trial {entry.number} was stored while no coordinator ran it"
            continue
        yield from _of_move(job, last, entry, processes)
        if (entry.num_measured or 0) < (0 if last is None else last.num_measured or 0):
            yield f"job {job}: measured trials went down to {entry.num_measured}"
        last = entry
    if sorted(numbers) != list(range(len(numbers))):
        yield f"job {job}: the numbers of its trials are {sorted(numbers)}"
    if last is not None and last.num_measured != len(numbers):
        yield f"job {job}: it counts {last.num_measured} trials and has {len(numbers)}"


def _of_move(job: str, last: Entry | None, entry: Entry, processes: Processes) -> Iterator[str]:
    state = None if last is None else last.state
    if entry.state not in _MOVES[state]:
        yield f"job {job}: it went from {state} to {entry.state}"
    if (entry.state == "running") != (entry.owner is not None):
        yield f"job {job}: it is {entry.state}, and its owner is {entry.owner}"
    if last is None or last.owner in {None, entry.owner} or entry.owner is None:
        return
    assert last.owner is not None
    assert last.lease_until is not None
    has_run_out = last.lease_until <= entry.at
    if not (has_run_out or entry.lock_was_free or processes.had_ended(last.owner, entry.at)):
        left = last.lease_until - entry.at
        yield f"job {job}: {entry.owner} took it from {last.owner}, whose lease had {left:.1f} s"


def _of_sessions(history: Sequence[Entry]) -> Iterator[str]:
    """Yield sessions of the database that stored trials under the leases of several processes.

    A session belongs to one coordinator, which writes with its own leases only.
    """
    owners = defaultdict(set)
    for entry in history:
        if entry.number is not None:
            owners[entry.session].add(str(entry.owner).rpartition("/")[0])
    for session, names in owners.items():
        if len(names) > 1:
            yield f"session {session} stored trials under the leases of {sorted(names)}"


def _pid(owner: str) -> int:
    return int(owner.rsplit("/", 3)[1])
