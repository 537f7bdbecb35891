"""What goes over the wire: the pydantic models that client and service share.

This module imports pydantic and nothing else of weight, so that the client stays light and the
service has one place to describe its API. Requests refuse fields they do not know (a typing error
must not be ignored); responses accept them (an older client reads a newer server).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Generic, TypeAlias, TypeVar
from uuid import UUID

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    computed_field,
    model_serializer,
    model_validator,
)

from service.wire.baselines import BaselineTimes
from service.wire.stop_reasons import stop_reason_in_words
from service.wire.times import BestTimes, JobTimes, TimeKind

# Limits of requests: chosen, not measured.
MAX_SCRIPT_CHARS = 262_144  # far above any single operator; bounds the time of the parser
MAX_TRIALS = 100_000  # about an hour at tens of trials a second
MAX_SECONDS = 7 * 24 * 3600.0
MAX_RULES = 64  # more than there are
MAX_SEED = 2**31 - 1  # of a 32-bit column
MAX_PRIORITY = 1000
MAX_TASKS = 64  # of a group: all their searches are in memory
MAX_WEIGHT = 1e9  # only the ratios of weights matter

# The second name of each was its name in version 0.1; it is accepted until 0.2.
_MAX_TRIALS = AliasChoices("max_trials", "trials")
_MAX_SECS = AliasChoices("max_secs", "seconds")

RuleName: TypeAlias = Annotated[str, Field(max_length=255)]
ItemT = TypeVar("ItemT")


class Request(BaseModel):
    """A body that a client sends: an unknown field is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


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


class Strategy(StrEnum):
    """Which search strategy proposes the candidates."""

    EVOLUTIONARY = "evolutionary"
    ANNEALING = "annealing"
    LOCAL = "local"
    EXHAUSTIVE = "exhaustive"
    RANDOM = "random"


class EventKind(StrEnum):
    """The events of a job, each with what its payload holds."""

    STATE = "state"  # {"state": JobState, "error": str | None}
    # {"num_measured": int, "best_secs": float | None, "best_kind", "provisional_secs",
    #  "default_secs"}: as `JobRead` has them
    TRIALS = "trials"
    # {"number": int | None, "is_tied": bool, "best_secs", "best_interval"}: confirmed times
    FINISH = "finish"


class Workload(Request):
    """What to compute: the text of a script, or an operator by its name and shape."""

    script: str | None = Field(default=None, min_length=1, max_length=MAX_SCRIPT_CHARS)
    operator: str | None = Field(
        default=None, min_length=1, max_length=1000, examples=["matmul:512,512,512:float32"]
    )

    @model_validator(mode="after")
    def _has_one_form(self) -> Workload:
        if (self.script is None) == (self.operator is None):
            raise ValueError("a workload has either `script` or `operator`")
        return self


class SearchOptions(Request):
    """How to search, and how long."""

    target: str = Field(default="cpu", min_length=1, max_length=1000)
    max_trials: int = Field(ge=1, le=MAX_TRIALS, validation_alias=_MAX_TRIALS)
    max_secs: float | None = Field(default=None, gt=0, le=MAX_SECONDS, validation_alias=_MAX_SECS)
    plateau: int | None = Field(default=None, ge=1, le=MAX_TRIALS)  # trials without progress
    seed: int = Field(default=0, ge=0, le=MAX_SEED)
    strategy: Strategy = Strategy.EVOLUTIONARY
    # The names of the schedule rules that make the design space; all of them if there are none.
    rules: tuple[RuleName, ...] | None = Field(default=None, min_length=1, max_length=MAX_RULES)
    warm_start: bool = True  # begin with the cost model, and with schedules of other shapes
    # Of the jobs that wait, one of a higher priority comes first.
    priority: int = Field(default=0, ge=-MAX_PRIORITY, le=MAX_PRIORITY)


class JobCreate(SearchOptions):
    """A request to tune one workload for one target."""

    workload: Workload


class GroupTask(Request):
    """A workload among several, and how much its time matters: how often a model runs it."""

    workload: Workload
    weight: float = Field(default=1.0, gt=0, le=MAX_WEIGHT)


class GroupCreate(SearchOptions):
    """A request to tune several workloads for one target, with one budget of trials for all."""

    tasks: tuple[GroupTask, ...] = Field(min_length=1, max_length=MAX_TASKS)


class GroupChange(Request):
    """A new budget of trials for the jobs of a group, all together."""

    max_trials: int = Field(ge=1, le=MAX_TRIALS, validation_alias=_MAX_TRIALS)


def _without_default(schema: dict[str, Any]) -> None:
    schema.pop("default")


class JobChange(Request):
    """New budgets and a new priority for a job; what is not named stays as it is.

    On a running job smaller ones count from its next trial on, others from its next round. A job
    that has ended goes on if its new budgets leave it something to do.
    """

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    max_trials: int = Field(
        default=0,
        ge=1,
        le=MAX_TRIALS,
        validation_alias=_MAX_TRIALS,
        json_schema_extra=_without_default,
    )
    max_secs: float | None = Field(
        default=None,
        gt=0,
        le=MAX_SECONDS,
        validation_alias=_MAX_SECS,
        json_schema_extra=_without_default,
    )
    plateau: int | None = Field(
        default=None, ge=1, le=MAX_TRIALS, json_schema_extra=_without_default
    )
    priority: int = Field(
        default=0, ge=-MAX_PRIORITY, le=MAX_PRIORITY, json_schema_extra=_without_default
    )

    @model_validator(mode="after")
    def _changes_something(self) -> JobChange:
        if not self.model_fields_set:
            raise ValueError(
                "nothing to change: expected max_trials, max_secs, plateau or priority"
            )
        return self

    @model_serializer(mode="wrap")
    def _named_alone(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {k: v for k, v in serialize(self).items() if k in self.model_fields_set}


class ScheduleQuery(Request):
    """A request for what is best known of one workload on one target."""

    workload: Workload
    target: str = Field(default="cpu", min_length=1, max_length=1000)
    nearest: bool = False  # whether that of the nearest shape, adapted, will do
    enqueue: bool = False  # whether to queue a job if this very schedule is not known


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
    max_trials: int = Field(validation_alias=_MAX_TRIALS)
    max_secs: float | None = Field(default=None, validation_alias=_MAX_SECS)
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
    max_trials: int = Field(validation_alias=_MAX_TRIALS)
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
