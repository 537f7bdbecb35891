"""The pydantic models of lists and plots, which client and service share.

Plots get columns: one array for each quantity, all of the same length; null means unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from pydantic import ConfigDict, Field, JsonValue, computed_field

from service.wire.models import BaselineRead, Response
from service.wire.requests import Request, Workload
from service.wire.speed_ups import BestTimes


class TrialOutcome(StrEnum):
    """The outcome of a trial: correct, or a kind of error."""

    OK = "ok"
    BUILD_ERROR = "build_error"
    WRONG_RESULT = "wrong_result"
    TIMEOUT = "timeout"
    CRASH = "crash"
    OUT_OF_MEMORY = "out_of_memory"
    DEVICE_ERROR = "device_error"
    WORKER_LOST = "worker_lost"


class Curve(Response):
    """The best time so far: a point for each improvement, and one for the last trial.

    `best_secs[i]` is the shortest sample of the trials up to `number[i]`. `secs[i]` is when the
    last of them was measured, in seconds since the job began. These times are provisional: the last
    one is the job's `provisional_secs`, not its confirmed time.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"number": [0, 3, 40], "secs": [0.8, 1.1, 3.0], "best_secs": [4e-3, 9e-4, 9e-4]}
            ]
        }
    )

    number: tuple[int, ...]
    secs: tuple[float, ...]
    best_secs: tuple[float, ...]


class Columns(Response):
    """The trials of a job as columns, by number; `best_secs` is provisional (`TrialRead`).

    `sketch` and `outcome` are indices into `sketches` and `outcomes`; an outcome is `ok` or the
    kind of an error. `predicted_percentile` is the share of its round that a trial was predicted to
    beat. `relative_speed` is its speed as a share of the fastest of its round. Both are null
    without a score. If there are more trials than requested, the columns keep the improvements, the
    first trial of each outcome, the first and the last trial, and evenly spaced others.
    """

    number: tuple[int, ...]
    secs: tuple[float, ...]  # since the job began
    best_secs: tuple[float | None, ...]
    predicted: tuple[float | None, ...]  # comparable within one round
    predicted_percentile: tuple[float | None, ...]
    relative_speed: tuple[float | None, ...]
    round: tuple[int, ...]
    sketch: tuple[int, ...]
    outcome: tuple[int, ...]
    sketches: tuple[str, ...]
    outcomes: tuple[str, ...]
    num_trials: int  # before thinning
    is_thinned: bool

    @computed_field(json_schema_extra={"deprecated": True})  # type: ignore[prop-decorator]
    @property
    def place(self) -> tuple[float | None, ...]:
        """The name of `predicted_percentile` before 0.2."""
        return self.predicted_percentile

    @computed_field(json_schema_extra={"deprecated": True})  # type: ignore[prop-decorator]
    @property
    def speed(self) -> tuple[float | None, ...]:
        """The name of `relative_speed` before 0.2."""
        return self.relative_speed


class FailureCount(Response):
    """The number of failures of one kind, and the message of the first."""

    kind: str  # an ErrorKind of the measurement
    count: int
    first_number: int
    first_message: str


class SketchCount(Response):
    """The outcome of one sketch.

    `best_secs` is provisional: the shortest sample of its trials, null if none was correct.
    """

    name: str
    count: int
    num_right: int
    best_secs: float | None


class TimeSpent(Response):
    """The time of a job by activity, in seconds.

    `build`, `check` and `time` are summed over workers, which work in parallel. `propose` is the
    time in which the job ran, but neither measured trials nor compared finalists; null if it is
    unknown. `finish` is the time of the final comparison. `wait` is the time in the queue before
    the start.
    """

    propose: float | None
    build: float
    check: float
    time: float
    finish: float | None
    wait: float


class ModelValue(Response):
    """The quality of the cost model in this job, from the trials that it scored before measurement.

    Scores are comparable only within one round, so both figures are means over rounds, weighted by
    their trials. Failures count as slowest.
    """

    rank_correlation: float | None = Field(
        description="Spearman's rank correlation of score and speed: 1 is a perfect order, 0 is "
        "random"
    )
    top_quarter: float | None = Field(
        description="The share of the fastest quarter of a round that is also in the quarter of "
        "the best scores; random order gives 0.25"
    )
    num_trials: int
    num_rounds: int


class ModelOrigin(StrEnum):
    """What ordered the candidates of a job before its own measurements did."""

    MEASUREMENTS = "measurements"  # a model of earlier jobs for this kind of target
    RECORDED = "recorded"  # the base model of the recorded sets
    ESTIMATE = "estimate"  # an analytic estimate: no model of this kind of target exists
    NOTHING = "nothing"  # the strategy uses no model


class Summary(Response):
    """The statistics of a job: failures by kind, sketches, time, quality of the cost model."""

    num_trials: int
    failures: tuple[FailureCount, ...]  # the most frequent first
    sketches: tuple[SketchCount, ...]  # the fastest first
    time: TimeSpent
    model: ModelValue
    model_origin: ModelOrigin


class Decision(Response):
    """One decision of a sketch, and its importance.

    `importance` is the share of the variance of the logarithm of the time that the decision
    explains alone: epsilon squared of a one-way analysis of variance over its values, at least
    0. It ignores interactions: two decisions that matter only together may both have 0.
    """

    name: str
    values: tuple[float, ...]  # all values that occur, ascending
    importance: float | None  # null if too few trials are correct


class Decisions(Response):
    """Trials of one sketch with their decisions, for parallel coordinates.

    `rows[i][j]` is the value of `decisions[j]` in trial `number[i]`. Of more than 2,000 trials, the
    rows have the 500 fastest and evenly spaced others. The importance is computed from the evenly
    spaced ones alone. `best_secs` is provisional (`TrialRead`).
    """

    sketch: str | None  # null if no trial has decisions
    sketches: tuple[str, ...]  # those with decisions, by falling number of trials
    decisions: tuple[Decision, ...]
    rows: tuple[tuple[float, ...], ...]
    number: tuple[int, ...]
    best_secs: tuple[float | None, ...]
    num_trials: int  # of the sketch
    is_sampled: bool


class BestSummary(BestTimes, Response):
    """The best schedule of a task, in a list; `GET /schedules/best` has the schedule itself."""

    workload_key: str
    workload_name: str
    shape: str | None = None  # as text, such as "512 x 512 x 512 float32"
    dtype: str | None = None  # of all parameters, or else of the numbers that it multiplies
    flops: int
    peak_flops: float | None = None
    job_id: UUID
    trial_number: int
    toolchain: str
    is_outdated: bool = False  # whether `toolchain` differs from the server's
    worker: str
    created_at: datetime  # when it became the best
    baseline: BaselineRead | None = None  # the fastest library that computes the same


class WorkloadRead(Response):
    """A stored workload; `shape` has the extents of its blocks.

    Workloads with one `operator_key` are shapes of one operator.
    """

    key: str
    name: str
    flops: int
    dtype: str | None = None  # of all parameters, or else of the numbers that it multiplies
    operator_key: str | None
    shape: Mapping[str, JsonValue] | None
    created_at: datetime


class WorkloadText(WorkloadRead):
    """A workload with its program."""

    script: str


class TargetRead(Response):
    """A target of submitted jobs."""

    name: str
    label: str  # the kind of target, such as "cpu/znver3"
    peak_flops: float | None = None  # of float32, in FLOP/s; null if no worker measured it
    created_at: datetime


class CheckRequest(Request):
    """A workload and a target to check; nothing is stored."""

    workload: Workload
    target: str = Field(default="cpu", min_length=1, max_length=1000)
    space: bool = True  # whether to count the design space, which takes up to a second


class ParameterRead(Response):
    """A buffer parameter of a kernel; `role` is input, output or both."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    role: str
    bytes: int


class SpaceRead(Response):
    """The design space of a search; `num_schedules` is an estimate unless `is_exact`."""

    sketches: tuple[str, ...]
    num_schedules: int
    is_exact: bool


class WorkloadCheck(Response):
    """The parsed workload and target, and the design space of a search."""

    key: str
    name: str
    operator_key: str | None
    dtype: str | None  # of all parameters, or else of the numbers that it multiplies
    target: str
    flops: int
    bytes: int  # of all parameters: the minimum memory traffic of a run
    parameters: tuple[ParameterRead, ...]
    script: str
    space: SpaceRead | None  # null if not requested, for more than 32 blocks, or at the time limit
    is_tuned: bool  # whether the store has a best schedule of it
