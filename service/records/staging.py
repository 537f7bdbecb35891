"""A records file during its import: in temporary tables of one connection.

The slow steps happen here, while others still write to the store: reading, checking, and comparing
trials with those of the store, which never change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    JSON,
    Column,
    ColumnElement,
    Connection,
    Integer,
    MetaData,
    Table,
    Text,
    and_,
    cast,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
)

from compiler.schedule.trace.trace_json import decided_numbers
from service.records.check import checked, refusal
from service.records.lines import (
    TRIAL_COLUMNS,
    AnyLine,
    End,
    Header,
    JobLine,
    TrialLine,
    parse_line,
    written,
)
from service.store.database.base import UtcDateTime
from service.store.jobs.jobs import JobRow
from service.store.trials.trials import TrialRow
from service.wire.models import JobState

ENDED = tuple(state for state in JobState if state.is_final)
_ROWS = 50
"""Rows at a time: with thousands of live objects, the garbage collector takes as long as the rest.
"""

_STAGED = MetaData()
_LINES = Table(
    "import_lines",  # all but trials
    _STAGED,
    Column("line", Integer, primary_key=True, autoincrement=False),
    Column("text", Text, nullable=False),
    Column("num_trials", Integer, nullable=False),  # of a job
    Column("last_at", UtcDateTime),  # when the last of them was measured
    prefixes=["TEMPORARY"],
)
_STORED = TrialRow.__table__.columns
_TRIALS = Table(
    "import_trials",
    _STAGED,
    *(Column(c.name, c.type, primary_key=c.primary_key, autoincrement=False) for c in _STORED),
    Column("line", Integer, nullable=False),
    prefixes=["TEMPORARY"],
)
_NAMES = [column.name for column in _STORED]
_VALUES = [_TRIALS.columns[name] for name in _NAMES]
_IS_SAME = and_(
    *(_TRIALS.columns[column.name] == column for column in _STORED if column.primary_key)
)


@dataclass(frozen=True)
class StagedLine:
    """A line that is no trial; that of a job has the number of its trials and the time of the last.

    Other lines have neither.
    """

    number: int
    line: AnyLine
    num_trials: int
    last_at: datetime | None


class Staging:
    """The temporary tables, which last until `connection` is closed."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        _STAGED.create_all(connection, checkfirst=False)

    def fill(self, lines: Iterable[bytes]) -> None:
        """Fill the tables from the lines of a file.

        Raises:
            UnprocessableError: If a line is invalid.
        """
        others = _Rows(self._connection, _LINES)
        trials = _Rows(self._connection, _TRIALS)
        job: dict[str, Any] = {}
        for number, text, line in checked(lines):
            match line:
                case TrialLine():
                    trials.add(_row(number, line))
                    job["num_trials"] += 1
                    job["last_at"] = max(job["last_at"] or line.created_at, line.created_at)
                case Header():
                    pass
                case JobLine() | End():
                    if job:
                        others.add(job)
                    job = _other(number, text)
                case _:
                    others.add(_other(number, text))
        trials.flush()
        others.flush()

    def lines(self) -> Iterator[StagedLine]:
        """Yield the lines that are no trials, in the order of the file."""
        last = 0
        query = select(_LINES).order_by(_LINES.c.line).limit(_ROWS)
        while rows := self._connection.execute(query.where(_LINES.c.line > last)).all():
            for number, text, num_trials, last_at in rows:
                yield StagedLine(number, parse_line(text), num_trials, last_at)
            last = rows[-1].line

    def drop_known(self, job_id: UUID | None = None) -> None:
        """Remove the trials that the store has, of one job or of all that have ended in the store.

        Raises:
            UnprocessableError: If the store has another trial of the same number.
        """
        conditions = [JobRow.id == TrialRow.job_id, JobRow.state.in_(ENDED)]
        if job_id is not None:
            conditions += [TrialRow.job_id == job_id, _TRIALS.c.job_id == job_id]
        is_stored = and_(_IS_SAME, *conditions)
        query = select(_TRIALS.c.line, _TRIALS.c.job_id, _TRIALS.c.number)
        others = query.where(is_stored, or_(*map(_differs, _NAMES))).order_by(_TRIALS.c.line)
        for number, job, trial in self._connection.execute(others).all():
            self._refuse_another(number, job, trial)
        self._connection.execute(delete(_TRIALS).where(exists().where(is_stored)))

    def refuse_other_numbers(self, job_id: UUID) -> None:
        """Refuse a candidate that has another number in the same job of the store.

        Raises:
            UnprocessableError: If there is such a candidate; a key of the table would refuse it
                too.
        """
        duplicate = self._connection.execute(
            select(_TRIALS.c.line, TrialRow.number)
            .where(
                _TRIALS.c.job_id == job_id,
                TrialRow.job_id == job_id,
                TrialRow.candidate_key == _TRIALS.c.candidate_key,
            )
            .order_by(_TRIALS.c.line)
        ).first()
        if duplicate is not None:
            detail = f"the store has its candidate as trial {duplicate[1]} of job {job_id}"
            raise refusal([(duplicate[0], detail)])

    def move_trials(self, job_id: UUID) -> int:
        """Add the trials of a job to the store, and return their number."""
        is_of_job = _TRIALS.c.job_id == job_id
        query = select(*_VALUES).where(is_of_job).order_by(_TRIALS.c.number)
        self._connection.execute(insert(TrialRow).from_select(_NAMES, query))
        count = select(func.count()).select_from(_TRIALS).where(is_of_job)
        return self._connection.execute(count).scalar_one()

    def _refuse_another(self, number: int, job_id: UUID, trial: int) -> None:
        """Compare a trial with the store's by content: different texts may have equal content."""
        of_both = [
            select(*(table[name] for name in TRIAL_COLUMNS)).where(
                table.job_id == job_id, table.number == trial
            )
            for table in (_STORED, _TRIALS.columns)
        ]
        stored, imported = (
            written(TrialLine.model_validate(self._connection.execute(query).mappings().one()))
            for query in of_both
        )
        if stored != imported:
            detail = f"the store has another trial {trial} of job {job_id}"
            raise refusal([(number, detail)])


class _Rows:
    """Rows of a table, added many at a time."""

    def __init__(self, connection: Connection, table: Table) -> None:
        self._connection = connection
        self._insert = insert(table)
        self._rows: list[dict[str, Any]] = []

    def add(self, row: dict[str, Any]) -> None:
        self._rows.append(row)
        if len(self._rows) == _ROWS:
            self.flush()

    def flush(self) -> None:
        if self._rows:
            self._connection.execute(self._insert, self._rows)
            self._rows = []


def _other(number: int, text: bytes) -> dict[str, Any]:
    return {"line": number, "text": text.decode(), "num_trials": 0, "last_at": None}


def _row(number: int, line: TrialLine) -> dict[str, Any]:
    row = {
        **vars(line),
        "line": number,
        "resources": None if line.resources is None else line.resources.model_dump(),
        "conditions": None if line.conditions is None else line.conditions.model_dump(mode="json"),
        "best_secs": line.best_secs,
        "decisions": decided_numbers(line.trace),
    }
    del row["kind"]
    return row


def _differs(name: str) -> ColumnElement[bool]:
    imported: ColumnElement[Any] = _TRIALS.columns[name]
    stored: ColumnElement[Any] = _STORED[name]
    if isinstance(stored.type, JSON):  # texts can be compared on any database
        imported, stored = cast(imported, Text), cast(stored, Text)
    return imported.is_distinct_from(stored)
