"""What a server tells of itself: its workers, its tokens, its health; and what it took in."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from pydantic import Field, JsonValue

from service.wire.models import Response
from service.wire.requests import MAX_PRIORITY, Request

TOKEN_NAME = r"^[A-Za-z0-9][A-Za-z0-9._@-]*$"
MAX_QUOTA = 2**31 - 1


class WorkerState(StrEnum):
    """Whether a worker takes candidates."""

    IDLE = "idle"
    BUSY = "busy"
    RESTING = "resting"  # it was shut down for lack of work; the next job starts it
    LOST = "lost"  # its heartbeat stopped; what it held was handed to another


class WorkerTask(Response):
    """What a worker does: candidates of a job that it measures, or compares."""

    workload: str = Field(examples=["matmul"])
    target: str
    candidates: int
    since: datetime
    job_id: UUID | None = None  # the running job of that workload and target, if there is but one


class Canary(Response):
    """A known kernel timed on a worker about once a minute: columns, the oldest first.

    What changes from sample to sample is the host: its clock, its heat, its neighbours.
    """

    at: tuple[datetime, ...] = ()
    secs: tuple[float, ...] = ()  # the median of a sample's runs
    noise: tuple[float, ...] = ()  # how far that is above the shortest run, as a share of it
    utilisation: tuple[float, ...] = ()  # the share of the time since the last sample with work


class WorkerRead(Response):
    """A worker as the service last heard of it, and its health over time.

    `jobs_lost` counts how often its process was lost during work, which another process repeated
    then; `restarts` counts all losses.
    """

    name: str
    host: str
    label: str  # the kind of target it serves, such as "cpu/znver3"
    state: WorkerState
    last_seen_at: datetime
    task: WorkerTask | None = None
    utilisation: float | None = None  # the share of the time since the newest sample with work
    jobs_lost: int = 0
    restarts: int = 0
    canary: Canary = Canary()
    facts: Mapping[str, JsonValue] = Field(default_factory=dict)


class Scope(StrEnum):
    """What a token may do; each includes those before it."""

    READ = "read"  # look at everything, tokens aside
    SUBMIT = "submit"  # submit, stop and resume jobs, and have kernels built
    ADMIN = "admin"  # make and revoke tokens, import records


class CallerRead(Response):
    """The caller and its quota; without tokens the name is null and everything is allowed."""

    name: str | None
    scope: Scope
    max_jobs: int | None = None
    max_trials: int | None = None
    max_priority: int | None = None


class TokenCreate(Request):
    """A request for a token; its name is shown as the owner of the jobs that it submits."""

    name: str = Field(min_length=1, max_length=64, pattern=TOKEN_NAME)
    scopes: tuple[Scope, ...] = Field(default=(Scope.READ,), min_length=1, max_length=3)
    # What its queued and running jobs may be, all together; none is no limit.
    max_jobs: int | None = Field(default=None, ge=0, le=MAX_QUOTA)
    max_trials: int | None = Field(default=None, ge=0, le=MAX_QUOTA)  # yet to measure
    max_priority: int | None = Field(default=None, ge=-MAX_PRIORITY, le=MAX_PRIORITY)


class TokenRead(Response):
    """A token's metadata; the token itself is stored only as a digest."""

    id: UUID
    name: str
    scopes: tuple[Scope, ...]
    created_at: datetime
    last_used_at: datetime | None  # to a quarter of an hour
    revoked_at: datetime | None
    max_jobs: int | None = None  # that wait or run
    max_trials: int | None = None  # that those have yet to measure
    max_priority: int | None = None


class TokenCreated(TokenRead):
    """A new token; it is shown this once."""

    token: str


class ImportRead(Response):
    """What an import added to a store; what was there already does not count."""

    workloads: int
    groups: int = 0
    jobs: int
    trials: int
    finals: int
    baselines: int = 0
    updated_jobs: int  # that the store knew, at an earlier point
    skipped_jobs: int  # that go on in the store itself: they know more than the file
    best_schedules: int  # that are new, or faster


class Health(Response):
    """Whether the service can do its work, part by part."""

    status: str  # "ok" or "degraded"
    version: str
    checks: Mapping[str, str]
    num_workers: int
    num_queued: int
    num_running: int
