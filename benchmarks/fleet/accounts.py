"""The accounts of a run, read from the database: what was stored, lost, repeated, and for whom."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import func, select, text

from service.store.database.database import Database
from service.store.jobs.jobs import JobRow
from service.store.trials.trials import TrialRow
from tuner.loop.search_loop import ROUND_SIZE


@dataclass(frozen=True)
class JobAccount:
    """The stored trials of a job.

    Attributes:
        numbers: The numbers of its trials.
        keys: The keys of their candidates.
        num_measured: The counter of its row.
        num_seen: The highest counter that a client saw.
    """

    numbers: tuple[int, ...]
    keys: tuple[str, ...]
    num_measured: int
    num_seen: int = 0

    @property
    def num_lost(self) -> int:
        """The trials that are missing: gaps before the last round, and what a client saw too much.

        Trials of one round arrive in any order, so only the last round may have gaps.
        """
        last_round = max(self.numbers, default=0) // ROUND_SIZE
        missing = set(range(last_round * ROUND_SIZE)).difference(self.numbers)
        counted = max(self.num_measured, self.num_seen)
        return max(len(missing), counted - len(self.numbers))

    @property
    def num_repeated(self) -> int:
        """The trials beyond one for each number, and beyond one for each candidate."""
        return len(self.numbers) - min(len(set(self.numbers)), len(set(self.keys)))


def read_accounts(database: Database, seen: Mapping[UUID, int]) -> dict[UUID, JobAccount]:
    """Return the account of each job; `seen` has the highest counters that clients saw."""
    numbers: defaultdict[UUID, list[int]] = defaultdict(list)
    keys: defaultdict[UUID, list[str]] = defaultdict(list)
    with database.read() as session:
        rows = session.execute(select(JobRow.id, JobRow.num_measured))
        counters = {row.id: row.num_measured for row in rows}
        query = select(TrialRow.job_id, TrialRow.number, TrialRow.candidate_key)
        for job_id, number, key in session.execute(query):
            numbers[job_id].append(number)
            keys[job_id].append(key)
    return {
        job_id: JobAccount(
            tuple(numbers[job_id]), tuple(keys[job_id]), counter, seen.get(job_id, 0)
        )
        for job_id, counter in counters.items()
    }


def num_stored(database: Database, begin: datetime, end: datetime) -> int:
    """Return how many trials were stored between two moments."""
    query = select(func.count()).where(TrialRow.created_at >= begin, TrialRow.created_at < end)
    with database.read() as session:
        return session.scalar(query) or 0


def shares(database: Database, begin: datetime, end: datetime) -> dict[str, float]:
    """Return the share of each owner in the trials stored between two moments."""
    query = (
        select(JobRow.owner, func.count())
        .join(TrialRow, TrialRow.job_id == JobRow.id)
        .where(TrialRow.created_at >= begin, TrialRow.created_at < end)
        .group_by(JobRow.owner)
    )
    with database.read() as session:
        counts = Counter({str(owner): num for owner, num in session.execute(query)})
    return {owner: num / counts.total() for owner, num in counts.items()}


def first_trial_at(database: Database, job_id: UUID) -> datetime | None:
    """Return when the first trial of a job was stored; None without any."""
    query = select(func.min(TrialRow.created_at)).where(TrialRow.job_id == job_id)
    with database.read() as session:
        return session.scalar(query)


def delays(database: Database, arrivals: Mapping[int, float]) -> list[float]:
    """Return the seconds from the commit of each event to its arrival.

    The server notes when a transaction begins to commit (`track_commit_timestamp`).
    """
    if not arrivals:
        return []
    at = "extract(epoch FROM pg_xact_commit_timestamp(xmin))"
    query = text(f"SELECT id, {at} FROM events WHERE id >= :first")
    with database.read() as session:
        rows = session.execute(query, {"first": min(arrivals)})
        return [arrivals[number] - float(at) for number, at in rows if number in arrivals]


def num_begun(database: Database) -> int:
    """Return how many jobs have a trial."""
    query = select(func.count()).where(JobRow.num_measured > 0)
    with database.read() as session:
        return session.scalar(query) or 0


def num_owned_by(database: Database, machines: Collection[str]) -> int:
    """Return how many running jobs have owners on these machines; see `Owner.machine`."""
    query = select(JobRow.lease_owner).where(JobRow.lease_owner.is_not(None))
    with database.read() as session:
        owners = [str(owner).rsplit("/", 3)[0] for owner in session.scalars(query)]
    return sum(any(owner.endswith(machine) for machine in machines) for owner in owners)
