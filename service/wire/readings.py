"""What is read of jobs and stores for lists and plots: more pydantic models of the wire.

Plots get columns, one array a quantity, all of one length; a null stands for what is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from pydantic import ConfigDict, Field, JsonValue, computed_field

from service.wire.models import BaselineRead, Response
from service.wire.requests import Request, Workload
from service.wire.times import BestTimes


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
    """The best time so far: a point wherever it improved, and one for the last trial.

    `best_secs[i]` is the shortest sample of the trials up to `number[i]`, and `secs[i]` when the
    last of those was measured, in seconds since the job began. These times are provisional: the
    last one is the job's `provisional_secs`, and not the time that its finish confirmed.
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

    `sketch` and `outcome` are places in `sketches` and `outcomes`; an outcome is `ok` or the kind
    of an error. `predicted_percentile` is the share of its round that a trial was predicted to
    beat, `relative_speed` its share of the speed of the round's fastest; both are null without a
    score. Of more trials than were asked for, those are kept that improved on all before, the first
    of each outcome, the first and the last, and an even choice of the rest.
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
    """How often trials failed in one way, and what the first of them said."""

    kind: str  # an ErrorKind of the compiler's measurement
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
    """Where the time went, in seconds.

    `build`, `check` and `time` are summed over workers, which work at once. `propose` is how long
    the job was driven while none of its trials was measured and the finish did not run: what
    measuring waited for; null while that is not known. `finish` measured the best again. `wait` is
    how long the job was queued before it began.
    """

    propose: float | None
    build: float
    check: float
    time: float
    finish: float | None
    wait: float


class ModelValue(Response):
    """What the cost model was worth in this job, by the trials that it had scored beforehand.

    Scores are comparable within one round only, so both figures are means over rounds, weighted by
    their trials; failures count as slowest.
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


class Summary(Response):
    """A job in figures: failures by kind, sketches, time, and the cost model's worth."""

    num_trials: int
    failures: tuple[FailureCount, ...]  # the most frequent first
    sketches: tuple[SketchCount, ...]  # the fastest first
    time: TimeSpent
    model: ModelValue


class Decision(Response):
    """One decision of a sketch, and how much it matters.

    `importance` is the share of the variance of the logarithm of the time that the decision
    explains alone: epsilon squared of a one-way analysis of variance over its values, at least
    0. It knows no interactions: two decisions that matter only together may both have 0.
    """

    name: str
    values: tuple[float, ...]  # that occur, ascending
    importance: float | None  # null if too few trials are correct


class Decisions(Response):
    """Trials of one sketch by what they decided, for parallel coordinates.

    `rows[i][j]` is what trial `number[i]` decided on `decisions[j]`. Of more than 2,000 trials, the
    500 fastest and an even choice of the rest are there; importance is of an even choice alone.
    `best_secs` is provisional (`TrialRead`).
    """

    sketch: str | None  # null if no trial has decisions
    sketches: tuple[str, ...]  # that have decisions, those with most trials first
    decisions: tuple[Decision, ...]
    rows: tuple[tuple[float, ...], ...]
    number: tuple[int, ...]
    best_secs: tuple[float | None, ...]
    num_trials: int  # of the sketch
    is_sampled: bool


class BestSummary(BestTimes, Response):
    """The best schedule of a task, as lists show it; `GET /schedules/best` has the schedule."""

    workload_key: str
    workload_name: str
    shape: str | None = None  # in words, such as "512 x 512 x 512 float32"
    dtype: str | None = None  # of all parameters, if they have one
    target: str
    flops: int
    peak_flops: float | None = None
    job_id: UUID
    trial_number: int
    toolchain: str
    is_outdated: bool = False  # whether `toolchain` is another than the server's
    worker: str
    created_at: datetime  # when it became the best
    baseline: BaselineRead | None = None  # the fastest library that computes the same


class WorkloadRead(Response):
    """A workload that is stored; `shape` has the extents of its blocks.

    Workloads with one `operator_key` are shapes of one operator.
    """

    key: str
    name: str
    flops: int
    dtype: str | None = None  # of all parameters, if they have one
    operator_key: str | None
    shape: Mapping[str, JsonValue] | None
    created_at: datetime


class WorkloadText(WorkloadRead):
    """A workload with its program."""

    script: str


class TargetRead(Response):
    """A target that jobs were submitted for."""

    name: str
    label: str  # the kind of target, such as "cpu/znver3"
    peak_flops: float | None = None  # of float32, in FLOP/s; null if no worker measured it
    created_at: datetime


class CheckRequest(Request):
    """A workload and a target to look at; nothing is stored."""

    workload: Workload
    target: str = Field(default="cpu", min_length=1, max_length=1000)
    space: bool = True  # whether to say how large the design space is, which takes up to a second


class ParameterRead(Response):
    """A buffer that a kernel is called with; `role` is input, output or both."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    role: str
    bytes: int


class SpaceRead(Response):
    """What a search chooses from; `num_schedules` is an estimate unless `is_exact`."""

    sketches: tuple[str, ...]
    num_schedules: int
    is_exact: bool


class WorkloadCheck(Response):
    """What was read of a workload and a target, and what a search would have to choose from."""

    key: str
    name: str
    operator_key: str | None
    dtype: str | None  # of all parameters, if they have one
    target: str
    flops: int
    bytes: int  # of all parameters: what a run moves at least
    parameters: tuple[ParameterRead, ...]
    script: str
    space: SpaceRead | None  # null if not asked for, of more than 32 blocks, or for want of time
    is_tuned: bool  # whether a best schedule of it is stored
