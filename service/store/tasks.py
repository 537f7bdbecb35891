"""Rebuild tasks and candidates from the store; no other module does."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from compiler.schedule.trace.trace_reader import TraceReader
from compiler.script.parser import parse
from compiler.target.target import Target
from service.store.workloads import WorkloadRow
from tuner.candidate import Candidate
from tuner.task import Task

_traces = TraceReader()
"""It keeps the forms of traces for all jobs of the process: parsing one in full takes up to 14 ms.
"""


def load_task(session: Session, workload_key: str, target: str, weight: float = 1.0) -> Task:
    """Return the task of a stored workload on a target.

    Raises:
        NoResultFound: If the store has no such workload.
        ScriptError: If this version cannot parse its text, which an older version stored.
        TargetError: If this version does not know the target.
    """
    return parse_task(session.get_one(WorkloadRow, workload_key).script, target, weight)


def parse_task(script: str, target: str, weight: float = 1.0) -> Task:
    """Return the task of a workload's text on a target.

    Raises:
        ScriptError: If the text is not a program.
        TargetError: If the target is unknown.
    """
    return Task(parse(script), Target(target), weight)


def parse_candidate(sketch: str, trace: dict[str, Any]) -> Candidate:
    """Return the candidate of a stored trial.

    Raises:
        TraceError: If this version lacks a primitive of the trace.
    """
    return Candidate(sketch, _traces.read(trace))


def parse_candidate_text(sketch: str, trace: str) -> Candidate:
    """Return the candidate of a stored trial, from the text of its trace: faster than from JSON.

    Raises:
        TraceError: If this version lacks a primitive of the trace.
    """
    return Candidate(sketch, _traces.read_text(trace))
