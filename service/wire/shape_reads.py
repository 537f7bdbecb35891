"""What the service answers about searches over ranges: kernels, the dispatcher, its times."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from pydantic import JsonValue

from service.wire.models import JobState, Response, WebhookRead
from service.wire.subject_reads import SubjectSummary


class TunedSizeRead(Response):
    """A size that is tuned alone, by a job."""

    sizes: Mapping[str, int]  # the value of each symbolic extent
    job_id: UUID
    state: JobState  # of its job
    num_measured: int
    best_secs: float | None


class ShapeKernelRead(Response):
    """One of the kernels: a schedule of the symbolic program."""

    sketch: str
    trace: Mapping[str, JsonValue]


class ShapeTimeRead(Response):
    """The times at one size, in seconds a run: the shortest sample of each."""

    sizes: Mapping[str, int]
    kernel: int  # the number of the kernel that the dispatcher calls
    run_secs: float  # of this kernel
    best_secs: float  # of the fastest of all kernels that were tried, chosen or not
    tuned_secs: float | None  # of the best schedule of this size alone; null if it was not tuned
    loss: float | None  # how much longer the kernel takes than that: 0.1 is a tenth


class ShapesSummary(SubjectSummary):
    """A search over ranges of sizes.

    Its sizes are tuned as the jobs of a group. When the last one ends, kernels are timed at more
    sizes, at most eight of them are chosen, and the dispatcher is made. It has failed if no kernel
    is correct at all sizes.
    """

    ranges: Mapping[str, tuple[int, int]]  # the least and the greatest size of each extent
    error: str | None  # why there are no kernels
    num_sizes: int  # tuned by a job each
    num_timed: int  # measurements of kernels of the symbolic program, at sizes
    num_kernels: int | None  # null until they are chosen
    loss: float | None  # the geometric mean at the tuned sizes


class ShapesRead(ShapesSummary):
    """A search over ranges with its program and its result, which is empty until it has ended."""

    script: str  # of the symbolic program, with its ranges
    tuned: tuple[TunedSizeRead, ...]
    kernels: tuple[ShapeKernelRead, ...]  # by their numbers
    times: tuple[ShapeTimeRead, ...]  # at all sizes that were timed, in ascending order
    dispatcher: str | None  # the text of the function that calls the kernels by size
    module: str | None  # the text of the dispatcher and its kernels
    webhook: WebhookRead | None = None
