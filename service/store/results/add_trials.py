"""Add trials of many jobs in one transaction, by a few statements for all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import select, tuple_
from sqlalchemy.orm import Session

from compiler.bounded_cache import BoundedCache
from compiler.runtime.measurement import STORED_FIELDS
from service.common.errors import LeaseLostError, ServiceNotFoundError
from service.common.owner import Owner
from service.store.database.base import JsonText, utc_now
from service.store.database.bulk import insert_rows
from service.store.jobs import blame, events, leases
from service.store.jobs.jobs import JobRow
from service.store.results import job_counters, toolchains
from service.store.results.job_counters import JobCounters, Read
from service.store.results.settle import settle
from service.store.trials import sketches, trial_chunks
from service.store.trials.sketches import SketchKey
from service.store.trials.trials import TrialRow
from service.wire.models import EventKind
from tuner.store.store import DuplicateTrialError
from tuner.task import Task
from tuner.trial import MeasuredTrial


@dataclass(frozen=True)
class NewTrials:
    """New trials of a job.

    Attributes:
        owner: Who must hold the lease of the job; None if anyone may add.
        task: The task of the job.
    """

    job_id: UUID
    owner: Owner | None
    task: Task
    trials: Sequence[MeasuredTrial]

    @property
    def sketch_keys(self) -> set[SketchKey]:
        """The sketches of the job that have labels once these trials are stored."""
        return {(self.job_id, trial.candidate.sketch) for trial in self.trials}


def add_all(
    session: Session,
    together: Sequence[NewTrials],
    labelled: BoundedCache[SketchKey, bool],
    *,
    looks_for_duplicates: bool = True,
) -> list[Exception | None]:
    """Store each set of trials, whole or not at all, with all that follows from them.

    The counters of the jobs, the best schedules of their tasks and an event of each job change in
    the same transaction.

    Args:
        labelled: Sketches whose labels are stored.
        looks_for_duplicates: Whether to look for trials that are stored already; if not, one of
            them makes the transaction fail (`IntegrityError`).

    Returns:
        For each set, why it was not stored, or None: the job does not exist, its lease is lost
        (`LeaseLostError`), or a trial is a duplicate (`DuplicateTrialError`).
    """
    now = job_counters.read(session, {trials.job_id for trials in together})
    stored: defaultdict[UUID, _StoredKeys] = defaultdict(_StoredKeys)
    if looks_for_duplicates:
        stored |= _stored_keys(session, together)
    refusals: list[Exception | None] = []
    added: defaultdict[UUID, list[NewTrials]] = defaultdict(list)
    for trials in together:
        try:
            _require_owner(now.counters.get(trials.job_id), trials)
            stored[trials.job_id].add(trials)
        except (DuplicateTrialError, LeaseLostError, ServiceNotFoundError) as error:
            refusals.append(error)
        else:
            refusals.append(None)
            added[trials.job_id].append(trials)
    if added:
        _add(session, now, added, labelled)
    return refusals


class _StoredKeys:
    """The numbers and the candidates of the stored trials of a job."""

    def __init__(self) -> None:
        self.numbers: set[int] = set()
        self.keys: set[str] = set()

    def add(self, new: NewTrials) -> None:
        """Add new trials, all or none.

        Raises:
            DuplicateTrialError: If a trial or its candidate is stored, or twice among them.
        """
        numbers, keys = set(self.numbers), set(self.keys)
        for trial in new.trials:
            key = trial.candidate.key
            if trial.number in numbers:
                raise DuplicateTrialError(f"job {new.job_id} has a trial {trial.number} already")
            if key in keys:
                raise DuplicateTrialError(
                    f"job {new.job_id} has measured candidate {key[:12]} already"
                )
            numbers.add(trial.number)
            keys.add(key)
        self.numbers, self.keys = numbers, keys


def _require_owner(job: JobCounters | None, trials: NewTrials) -> None:
    if job is None:
        raise ServiceNotFoundError(f"no job {trials.job_id}")
    if trials.owner is not None:
        leases.require_owner(job.id, job.state, job.lease_owner, str(trials.owner))
    assert job.task == (trials.task.workload_key, trials.task.target.name)


def _stored_keys(session: Session, together: Sequence[NewTrials]) -> defaultdict[UUID, _StoredKeys]:
    """Return those of the new trials' numbers and candidates that are stored already."""
    stored: defaultdict[UUID, _StoredKeys] = defaultdict(_StoredKeys)
    new = [(trials.job_id, trial) for trials in together for trial in trials.trials]
    numbers = [(job_id, trial.number) for job_id, trial in new]
    keys = [(job_id, trial.candidate.key) for job_id, trial in new]
    columns = (TrialRow.job_id, TrialRow.number, TrialRow.candidate_key)
    query = select(*columns).where(
        tuple_(TrialRow.job_id, TrialRow.number).in_(numbers)
        | tuple_(TrialRow.job_id, TrialRow.candidate_key).in_(keys)
    )
    for job_id, number, key in session.execute(query):
        stored[job_id].numbers.add(number)
        stored[job_id].keys.add(key)
    return stored


def _add(
    session: Session,
    now: Read,
    added: Mapping[UUID, Sequence[NewTrials]],
    labelled: BoundedCache[SketchKey, bool],
) -> None:
    new = {
        job_id: sorted((t for trials in sets for t in trials.trials), key=lambda t: t.number)
        for job_id, sets in added.items()
    }
    rows = now.counters
    insert_rows(
        session,
        TrialRow.__table__,  # type: ignore[arg-type]
        [_values(job_id, trial) for job_id in new for trial in new[job_id]],
    )
    due = _count_all(session, now, new)
    _offer(session, now, new)
    for job_id, trials in new.items():
        names = {trial.candidate.sketch for trial in trials}
        if not all(labelled.get((job_id, name)) for name in names):
            sketches.ensure(session, job_id, rows[job_id].workload_key, names)
    for job in due:
        trial_chunks.pack(session, job.id, job.num_measured)
    events.append_all(session, EventKind.TRIALS, {job_id: rows[job_id].payload() for job_id in new})


def _count_all(
    session: Session, now: Read, new: Mapping[UUID, Sequence[MeasuredTrial]]
) -> list[JobCounters]:
    """Count trials in the rows of their jobs; return the jobs whose trials may be packed."""
    _note_progress(session, [now.counters[job_id] for job_id in new])
    due = []
    for job_id, trials in new.items():
        job = now.counters[job_id]
        num_before = job.num_measured
        job.count_time(now.at)
        for trial in trials:
            job.count(trial)
        if trial_chunks.is_due(num_before, job.num_measured):
            due.append(job)
    job_counters.write(session, [now.counters[job_id] for job_id in new])
    return due


def _note_progress(session: Session, measured: Sequence[JobCounters]) -> None:
    """Note the first trials of jobs since they were claimed; see `blame`."""
    if not (claimed := [job.id for job in measured if job.fruitless_claims]):
        return
    query = select(JobRow).where(JobRow.id.in_(claimed)).options(*leases.WITHOUT_RELATED)
    for row in session.scalars(query).all():
        blame.note_progress(session, row)
    session.flush()


def _offer(session: Session, now: Read, new: Mapping[UUID, Sequence[MeasuredTrial]]) -> None:
    """Offer trials as the best schedules of their tasks, and refute such as are wrong now."""
    incumbents = now.incumbents
    for job_id, trials in new.items():
        task = now.counters[job_id].task
        for trial in trials:
            incumbents.offer(task, job_id, trial)
            if _is_wrong_now(trial) and incumbents.key_of(task) == trial.candidate.key:
                incumbents.store(session)
                settle(session, *task)
                incumbents = job_counters.read(session, new).incumbents
    incumbents.store(session)


def _is_wrong_now(trial: MeasuredTrial) -> bool:
    measured = trial.measurement
    return measured.error in toolchains.WRONG and not toolchains.is_outdated(measured.toolchain)


def _values(job_id: UUID, trial: MeasuredTrial) -> dict[str, Any]:
    """Return the columns of a trial's row."""
    measurement = trial.measurement
    stored = {name: getattr(measurement, name) for name in STORED_FIELDS}
    # JSON has lists, and PostgreSQL stores no zero character in a text.
    stored["run_secs"] = list(measurement.run_secs)
    stored["resources"] = None if measurement.resources is None else asdict(measurement.resources)
    conditions = measurement.conditions
    stored["conditions"] = None if conditions is None else asdict(conditions)
    stored["message"] = measurement.message.replace("\0", "\\0")
    trace = trial.candidate.trace
    return {
        "job_id": job_id,
        "number": trial.number,
        "candidate_key": trial.candidate.key,
        "round": trial.round,
        "sketch": trial.candidate.sketch,
        "trace": JsonText(trace.to_text()),
        "decisions": trace.decided_numbers(),
        "predicted": trial.predicted,
        "best_secs": measurement.best_secs if measurement.ok else None,
        "created_at": utc_now(),
        **stored,
    }
