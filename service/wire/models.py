"""The responses of the service, as pydantic models, with the states and events of a job.

They accept fields that they do not know: an older client reads a newer server.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Generic, TypeVar
from uuid import UUID

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    computed_field,
)

from service.wire.baselines import BaselineTimes
from service.wire.requests import SECS_ALIASES, TRIALS_ALIASES, Strategy
from service.wire.stop_reasons import stop_reason_in_words
from service.wire.times import BestTimes, JobTimes, TimeKind

ItemT = TypeVar("ItemT")


class Response(BaseModel):
    """A body that the service sends: an unknown field is left aside."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class JobState(StrEnum):
    """Where a tuning job stands."""

    QUEUED = "queued"  # waits for a coordinator
    RUNNING = "running"  # a coordinator holds its lease and measures trials
    SUCCEEDED = "succeeded"  # it has a best schedule; `stop_reason` says why it ended
    FAILED = "failed"  # not one candidate could be built and run; `error` says why
    CANCELLED = "cancelled"  # a user gave it up; what was measured is kept

    @property
    def is_final(self) -> bool:
        """Whether the job has ended: it continues only if a user resumes it."""
        return self in {JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED}


class EventKind(StrEnum):
    """The events of a job, each with what its payload holds."""

    STATE = "state"  # {"state": JobState, "error": str | None}
    # {"num_measured": int, "best_secs": float | None, "best_kind", "provisional_secs",
    #  "default_secs"}: as `JobRead` has them
    TRIALS = "trials"
    # {"number": int | None, "is_tied": bool, "best_secs", "best_interval"}: confirmed times
    FINISH = "finish"


class BaselineRead(BaselineTimes, Response):
    """A library that computes the same, timed beside the best kernel: in turns, on one worker."""


class JobRead(JobTimes, Response):
    """A tuning job as the service shows it.

    While the job searches, `best_secs` is provisional: the shortest sample of its fastest trial.
    The finish of a job measures its fastest trials again, side by side. From then on `best_secs` is
    confirmed: the median of the rounds of trial `best_number`, with a `best_interval` of 95%.
    """

    id: UUID
    state: JobState
    workload_key: str
    workload_name: str
    target: str
    max_trials: int = Field(validation_alias=TRIALS_ALIASES)
    max_secs: float | None = Field(default=None, validation_alias=SECS_ALIASES)
    plateau: int | None = None
    seed: int
    strategy: Strategy
    rules: tuple[str, ...] | None = None
    num_measured: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    owner: str | None = None  # the name of the token that submitted it
    shape: str | None = None  # the extents of the workload's largest block, in words
    dtype: str | None = None  # of all its parameters, if they have one
    flops: int | None = None  # of one run
    peak_flops: float | None = None  # FLOP/s that the target can reach, null if unknown
    trials_per_sec: float | None = None
    sparkline: tuple[float, ...] = ()  # the best time so far in seconds, at most 32 points
    stop_reason: str | None = None  # budget, time_budget, plateau, exhausted, stopped or cancelled
    error: str | None
    priority: int = 0
    group_id: UUID | None = None  # of the jobs that it shares a budget of trials with
    weight: float = 1.0  # how much its time matters among them
    baseline: BaselineRead | None = None  # the fastest library that computes the same

    @computed_field(json_schema_extra={"deprecated": True})  # type: ignore[prop-decorator]
    @property
    def trials(self) -> int:
        """The name of `max_trials` before 0.2."""
        return self.max_trials

    @computed_field(json_schema_extra={"deprecated": True})  # type: ignore[prop-decorator]
    @property
    def seconds(self) -> float | None:
        """The name of `max_secs` before 0.2."""
        return self.max_secs

    def __str__(self) -> str:
        """Say in a line where the job stands; the `repr` has all fields."""
        ended = f" ({stop_reason_in_words(self.stop_reason)})" if self.stop_reason else ""
        best = "" if self.best_secs is None else f", best {self.best_secs:.4g} s {self.best_kind}"
        default = "" if self.default_secs is None else f", default {self.default_secs:.4g} s"
        return (
            f"{self.workload_name} on {self.target}: {self.state.value}{ended},"
            f" {self.num_measured} of {self.max_trials} trials{best}{default}"
        )


class GroupRead(Response):
    """Jobs that share a budget of trials.

    The seconds are sums over the jobs, of weights times best times and default times; null as long
    as one of them has none. Both are of the kind `kind`: confirmed once the times of all jobs are.
    """

    id: UUID
    max_trials: int = Field(validation_alias=TRIALS_ALIASES)
    num_measured: int
    best_secs: float | None
    default_secs: float | None
    kind: TimeKind = TimeKind.PROVISIONAL
    created_at: datetime
    jobs: tuple[JobRead, ...]

    @computed_field(json_schema_extra={"deprecated": True})  # type: ignore[prop-decorator]
    @property
    def trials(self) -> int:
        """The name of `max_trials` before 0.2."""
        return self.max_trials

    @computed_field  # type: ignore[prop-decorator]
    @property
    def speedup(self) -> float | None:
        """How many times faster the best schedules are together than the default ones."""
        if not self.default_secs or not self.best_secs:
            return None
        return self.default_secs / self.best_secs


class FinalRead(Response):
    """What a job's finish found of a trial that it measured again, beside the other finalists."""

    outcome: str  # kept, tied (with the one that is kept), slower or failed
    run_secs: float | None  # confirmed: the median over rounds; null for a failure
    interval: tuple[float, float] | None = None  # of `run_secs`, 95%
    num_rounds: int


class TrialRead(Response):
    """One trial of a job: its candidate and what a worker found."""

    number: int
    sketch: str
    trace: Mapping[str, JsonValue]
    error: str | None  # an ErrorKind of the compiler's measurement, or none
    message: str
    run_secs: tuple[float, ...]
    max_error: float | None
    build_secs: float
    check_secs: float
    time_secs: float
    worker: str
    toolchain: str = ""  # what compiled it
    round: int | None = None  # of the search
    predicted: float | None
    created_at: datetime
    final: FinalRead | None = None  # null for a trial that no finish measured again

    @computed_field  # type: ignore[prop-decorator]
    @property
    def provisional_secs(self) -> float | None:
        """The shortest sample of the search, or null for a trial that failed."""
        return min(self.run_secs, default=None) if self.error is None else None

    @property
    def best_secs(self) -> float | None:
        """The earlier name of `provisional_secs`."""
        return self.provisional_secs


class TrialCode(Response):
    """What a trial's schedule made of its program, step by step."""

    before: str  # the script of the workload
    trace: str  # the schedule as Python
    after: str  # the script of the scheduled program
    llvm: str
    assembly: str


class Event(Response):
    """Something that happened to a job; `id` grows, and a stream resumes after the last seen."""

    id: int
    kind: str  # an EventKind; a newer server may send kinds that this client does not know
    at: datetime
    payload: Mapping[str, JsonValue]


class NearestRead(Response):
    """The tuned shape that a schedule was adapted from, and what that is expected to cost."""

    workload_key: str
    target: str
    distance: float = Field(examples=[1.0])  # in doublings of extents and of cores, all together
    run_secs: float  # of the schedule, on the shape that it was made for
    # The share of speed that tuning would add: 0.1 is nine tenths of a tuned schedule's speed. It
    # is null where the store has no basis for it; `basis` says what it rests on.
    expected_loss: float | None = Field(examples=[0.08])
    basis: str


class BestRead(BestTimes, Response):
    """The fastest schedule known of one workload on one target, and where it comes from.

    With `nearest` it is that of another shape, adapted: it replays on the workload and was not
    measured there, so that `run_secs` is null, and job, trial and provenance are the other shape's.
    """

    workload_key: str
    target: str
    trace: Mapping[str, JsonValue]
    job_id: UUID
    trial_number: int
    provenance: Mapping[str, JsonValue]
    nearest: NearestRead | None = None
    baseline: BaselineRead | None = None  # the fastest library that computes the same
    # Whether `run_secs` was measured with another code generator than the server's: a kernel that
    # is built today may take another time.
    is_outdated: bool = False


class CostModelRead(Response):
    """A version of the cost model of a kind of target, and how well it predicts.

    Without a job it is of the whole store, and jobs of that kind begin with the newest such.
    """

    label: str  # the kind of target, such as "cpu/znver3"
    version: int
    job_id: UUID | None
    feature_version: int
    trained_on: int  # how many measurements
    num_tasks: int = 1  # that they are of
    fingerprint: str | None = None  # of the measurements
    quality: Mapping[str, JsonValue]  # on tasks, or on candidates of the job, that it was not told
    created_at: datetime


class Page(Response, Generic[ItemT]):
    """One page of a list; `next_cursor` asks for the page after it."""

    items: tuple[ItemT, ...]
    next_cursor: str | None = None
