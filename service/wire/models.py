"""The responses of the service, as pydantic models, with the states and events of a job.

They accept unknown fields, so that an older client can read a newer server.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Generic, Literal, TypeVar
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
from service.wire.speed_ups import BestTimes, JobTimes
from service.wire.stop_reasons import stop_reason_in_words
from service.wire.times import TimeKind

ItemT = TypeVar("ItemT")


class Response(BaseModel):
    """A body that the service sends: an unknown field is ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class JobState(StrEnum):
    """The state of a tuning job."""

    QUEUED = "queued"  # waits for a coordinator
    RUNNING = "running"  # a coordinator holds its lease and measures trials
    SUCCEEDED = "succeeded"  # the job has a best schedule; `stop_reason` says why it ended
    FAILED = "failed"  # no candidate could be built and run; `error` says why
    CANCELLED = "cancelled"  # by a user; its measurements are kept

    @property
    def is_final(self) -> bool:
        """Return whether the job has ended; then only a user can resume it."""
        return self in {JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED}


class EventKind(StrEnum):
    """The kinds of events of a job, each with its payload."""

    STATE = "state"  # {"state": JobState, "error": str | None}
    # {"num_measured": int, "best_secs": float | None, "best_kind", "provisional_secs",
    #  "default_secs"}: as `JobRead` has them
    TRIALS = "trials"
    # {"number": int | None, "is_tied": bool, "best_secs", "best_interval"}: confirmed times
    FINISH = "finish"


class BaselineRead(BaselineTimes, Response):
    """A library that computes the same, timed alternately with the best kernel on one worker."""


class SpaceClaimRead(Response):
    """What is claimed of the best schedule of a job among all schedules of its design space.

    If all were measured (`is_whole`), `bound` is proved by the final comparison. Else it is
    estimated from the errors of the cost model, as `expected` is.
    """

    num_schedules: int  # of the space, without the default schedule; estimated for a large space
    is_whole: bool
    bound: float  # the share of time that another schedule saves at most, with 95%
    expected: float | None = None  # the share that the best of the space is expected to save
    text: str  # the claim in words


class WebhookState(StrEnum):
    """The state of a webhook: of the delivery of its last event, if it has one."""

    WAITING = "waiting"  # the job, or one of the group, has not ended
    PENDING = "pending"  # the event is delivered soon, or again after a failed attempt
    DELIVERED = "delivered"  # the receiver answered with a status of success
    FAILED = "failed"  # after the last attempt


class WebhookRead(Response):
    """The webhook of a job, or of its group; its path and its secret are not shown."""

    host: str
    state: WebhookState
    event_id: UUID | None = None  # of the last event, the same in each attempt
    num_attempts: int = 0
    error: str | None = None  # of the last attempt
    next_attempt_at: datetime | None = None
    delivered_at: datetime | None = None


class JobRead(JobTimes, Response):
    """A tuning job.

    While the job searches, `best_secs` is provisional: the shortest sample of its fastest trial.
    The final comparison of a job measures its fastest trials again, side by side. From then on
    `best_secs` is confirmed: the median of the rounds of trial `best_number`, with a
    `best_interval` of 95%.
    """

    id: UUID
    state: JobState
    workload_key: str
    workload_name: str
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
    shape: str | None = None  # the extents of the workload's largest block, as text
    dtype: str | None = None  # of all parameters, or else of the numbers that it multiplies
    flops: int | None = None  # operations of one run
    peak_flops: float | None = None  # operations/s that the target can reach, null if unknown
    trials_per_sec: float | None = None
    sparkline: tuple[float, ...] = ()  # the best time so far in seconds, at most 32 points
    stop_reason: str | None = None  # budget, time_budget, plateau, exhausted, stopped or cancelled
    error: str | None
    priority: int = 0
    name: str | None = None  # chosen by the user, as are the note and the tags
    note: str | None = None
    tags: tuple[str, ...] = ()
    group_id: UUID | None = None  # of the group of jobs that share one trial limit
    weight: float = 1.0  # of its time in the group's sum
    shapes_id: UUID | None = None  # of the search over ranges that it tunes a size of
    baseline: BaselineRead | None = None  # the fastest library that computes the same
    space: SpaceClaimRead | None = None  # null before its end, and if nothing can be claimed
    webhook: WebhookRead | None = None  # of the job or of its group
    # The hours in which it is measured; a queued job waits for them, and a running one goes back.
    window: str | None = None

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
        """Return the state of the job in a line; the `repr` has all fields."""
        ended = f" ({stop_reason_in_words(self.stop_reason)})" if self.stop_reason else ""
        best = "" if self.best_secs is None else f", best {self.best_secs:.4g} s {self.best_kind}"
        default = "" if self.default_secs is None else f", default {self.default_secs:.4g} s"
        return (
            f"{self.workload_name} on {self.target}: {self.state.value}{ended},"
            f" {self.num_measured} of {self.max_trials} trials{best}{default}"
        )


class GroupRead(Response):
    """Jobs that share one trial limit.

    The seconds are weighted sums of the best times and of the default times over the jobs. They are
    null until every job has a time. Both are of the kind `kind`: confirmed if the times of all jobs
    are.
    """

    id: UUID
    max_trials: int = Field(validation_alias=TRIALS_ALIASES)
    num_measured: int
    best_secs: float | None
    default_secs: float | None
    kind: TimeKind = TimeKind.PROVISIONAL
    created_at: datetime
    jobs: tuple[JobRead, ...]
    webhook: WebhookRead | None = None

    @computed_field(json_schema_extra={"deprecated": True})  # type: ignore[prop-decorator]
    @property
    def trials(self) -> int:
        """The name of `max_trials` before 0.2."""
        return self.max_trials

    @computed_field  # type: ignore[prop-decorator]
    @property
    def speedup(self) -> float | None:
        """How many times faster all best schedules together are than the default ones."""
        if not self.default_secs or not self.best_secs:
            return None
        return self.default_secs / self.best_secs


class FinalRead(Response):
    """The result of a finalist in the final comparison of a job."""

    outcome: str  # kept, tied (with the kept trial), slower or failed
    run_secs: float | None  # confirmed: the median over rounds; null for a failure
    interval: tuple[float, float] | None = None  # of `run_secs`, 95%
    num_rounds: int


class ResourcesRead(Response):
    """What a kernel uses of its device."""

    registers: int  # of a thread
    stack_bytes: int  # local memory of a thread
    spill_bytes: int  # of registers that do not fit
    shared_bytes: int  # shared memory of a block
    occupancy: float | None  # the share of a multiprocessor's warps that run at once
    # Accesses to banks of shared memory over the least number, 1 without conflicts; emulated only.
    bank_conflicts: float | None = None


class ConditionsRead(Response):
    """The conditions under which a kernel was timed on a GPU."""

    l2: Literal["cold", "warm"]  # whether the L2 cache held the inputs
    sm_mhz: int | None  # the clock of the multiprocessors
    watts: float | None
    celsius: int | None
    slowed_by: tuple[str, ...]  # why the clock was lower than it could be


class TrialRead(Response):
    """One trial of a job: its candidate and its measurement."""

    number: int
    sketch: str
    trace: Mapping[str, JsonValue]
    error: str | None  # an ErrorKind of the measurement, or null
    message: str
    run_secs: tuple[float, ...]
    max_error: float | None
    is_spot_checked: bool = False  # some rows and sums of the result were compared, not all of it
    build_secs: float
    check_secs: float
    time_secs: float
    worker: str
    toolchain: str = ""  # that compiled it
    resources: ResourcesRead | None = None  # null for a CPU, and if the build failed
    conditions: ConditionsRead | None = None  # null for a CPU, an emulated GPU, and a failure
    round: int | None = None  # of the search
    predicted: float | None
    created_at: datetime
    final: FinalRead | None = None  # null for a trial that was no finalist

    @computed_field  # type: ignore[prop-decorator]
    @property
    def provisional_secs(self) -> float | None:
        """The shortest sample of the search; null for a failed trial."""
        return min(self.run_secs, default=None) if self.error is None else None

    @property
    def best_secs(self) -> float | None:
        """The earlier name of `provisional_secs`."""
        return self.provisional_secs


class TrialCode(Response):
    """The program of a trial in each stage, from its script to its assembly."""

    before: str  # the script of the workload
    trace: str  # the schedule as Python
    after: str  # the script of the scheduled program
    source: str  # as it was generated
    source_language: str = Field(examples=["LLVM IR"])
    assembly: str
    assembly_language: str = Field(examples=["Assembly"])

    @computed_field(json_schema_extra={"deprecated": True})  # type: ignore[prop-decorator]
    @property
    def llvm(self) -> str:
        """The name of `source` before 0.2."""
        return self.source


class Event(Response):
    """An event of a job; `id` grows, and a stream resumes after the last received id."""

    id: int
    kind: str  # an EventKind; a newer server may send unknown kinds
    at: datetime
    payload: Mapping[str, JsonValue]


class NearestRead(Response):
    """The tuned shape that a schedule was adapted from, and the expected loss of speed."""

    workload_key: str
    target: str
    distance: float = Field(examples=[1.0])  # the sum of the doublings of extents and of cores
    run_secs: float  # of the schedule, on its original shape
    # The share of speed that tuning would add: 0.1 is nine tenths of a tuned schedule's speed. It
    # is null without enough data in the store; `basis` describes the data.
    expected_loss: float | None = Field(examples=[0.08])
    basis: str


class BestRead(BestTimes, Response):
    """The fastest known schedule of one workload on one target, and its origin.

    With `nearest` it may be the adapted schedule of another shape. That one replays on the workload
    but was not measured on it: `run_secs` is null, and job, trial and provenance are those of the
    other shape.
    """

    workload_key: str
    trace: Mapping[str, JsonValue]
    job_id: UUID
    trial_number: int
    provenance: Mapping[str, JsonValue]
    nearest: NearestRead | None = None
    baseline: BaselineRead | None = None  # the fastest library that computes the same
    # Whether `run_secs` was measured with another code generator than the server's: a newly built
    # kernel may take another time.
    is_outdated: bool = False


class CostModelRead(Response):
    """A version of the cost model of a kind of target, and how well it predicts.

    A model without a job is trained on the whole store; new jobs of its kind start with the newest.
    """

    label: str  # the kind of target, such as "cpu/znver3"
    version: int
    job_id: UUID | None
    feature_version: int
    trained_on: int  # number of measurements
    num_tasks: int = 1  # of those measurements
    fingerprint: str | None = None  # of the measurements
    quality: Mapping[str, JsonValue]  # on held-out tasks, or on held-out candidates of the job
    created_at: datetime


class Page(Response, Generic[ItemT]):
    """One page of a list; `next_cursor` requests the next page."""

    items: tuple[ItemT, ...]
    next_cursor: str | None = None
