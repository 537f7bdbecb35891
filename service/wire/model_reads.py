"""What the service answers about whole models: their tasks, their latency, their graph."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from pydantic import JsonValue

from service.wire.models import JobState, Response, WebhookRead
from service.wire.subject_reads import SubjectSummary
from service.wire.times import TimeKind


class ModelStep(Response):
    """A call of a kernel in a run of a model."""

    name: str  # of the node whose result it makes
    task: int  # the number of its task
    after: tuple[int, ...]  # the positions of the calls whose results it reads


class ModelTaskRead(Response):
    """A program of a model, and its best schedule in the store.

    Tasks without a job are too small a part of the model to be tuned with it. They have a time only
    if another job measured them.
    """

    number: int
    workload_key: str
    workload_name: str
    operators: str  # of the nodes that it computes, joined by `+`
    weight: float  # the number of its runs in one run of the model
    shape: str | None  # the extents of its largest block, as text
    dtype: str | None
    flops: int  # of one of its runs
    size_bytes: int  # of the parameters of one of its runs
    job_id: UUID | None
    state: JobState | None  # of its job
    num_measured: int
    best_secs: float | None  # of one of its runs
    kind: TimeKind | None  # of `best_secs`
    default_secs: float | None  # of the default schedule, as its job measured it
    share: float | None  # of the projected latency
    peak_share: float | None  # its operations a second, as a share of the peak of the target
    next_gain: float | None  # seconds of a run of the model that its next trial is expected to save


class LatencyPoint(Response):
    """The projected latency from a moment on."""

    at: datetime
    latency_secs: float


class ModelSummary(SubjectSummary):
    """A model, with the sums of its tasks.

    `latency_secs` is the projected latency: the sum of weight and best time over the tasks that
    have a job or a time. It is null until each of them has a time.
    """

    num_tasks: int
    num_steps: int  # calls of kernels in a run
    latency_secs: float | None
    default_secs: float | None  # the same sum of default schedules, over the tasks with jobs


class ModelRead(ModelSummary):
    """A model with its tasks, the history of its latency, and the calls of its kernels."""

    tasks: tuple[ModelTaskRead, ...]
    history: tuple[LatencyPoint, ...]  # of the tasks with jobs, by their shortest samples
    steps: tuple[ModelStep, ...]
    webhook: WebhookRead | None = None


class ModelSchedule(Response):
    """The best schedule of a task of a model."""

    workload_key: str
    sketch: str
    trace: Mapping[str, JsonValue]
    run_secs: float
    kind: TimeKind | None


class ModelPackage(Response):
    """What a package of a model needs from the service: the best schedule of each task.

    The client, which has the weights, builds the package. Tasks that nothing was measured for are
    left out.
    """

    id: UUID
    target: str
    schedules: tuple[ModelSchedule, ...]
