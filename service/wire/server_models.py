"""Models of a server's workers, tokens, health and imports."""

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
    """Whether a worker can measure candidates."""

    IDLE = "idle"
    BUSY = "busy"
    RESTING = "resting"  # it was shut down for lack of work; the next job starts it
    LOST = "lost"  # its heartbeat stopped; another worker got its candidates


class WorkerTask(Response):
    """The current work of a worker: candidates of a job that it measures or compares."""

    workload: str = Field(examples=["matmul"])
    target: str
    candidates: int
    since: datetime
    job_id: UUID | None = None  # the one running job of that workload and target


class Canary(Response):
    """A known kernel timed on a worker about once a minute: columns, the oldest first.

    Differences between samples come from the host: its clock, its temperature, its load.
    """

    at: tuple[datetime, ...] = ()
    secs: tuple[float, ...] = ()  # the median of a sample's runs
    noise: tuple[float, ...] = ()  # the excess of that over the shortest run, as a share of it
    utilisation: tuple[float, ...] = ()  # the share of the time since the last sample with work


class DeviceRead(Response):
    """The device that a worker measures on, and its state by the last report.

    A device without sensors, such as an emulated one, has no state: its values are null.
    """

    name: str = Field(examples=["h200-0"])  # unique on its host
    product: str = ""  # such as "NVIDIA H200"; empty if it is emulated
    uuid: str = ""  # of the driver; empty if it is emulated
    is_emulated: bool = False
    sm_mhz: int | None = None  # the clock of its multiprocessors
    watts: float | None = None
    celsius: int | None = None
    slowed_by: tuple[str, ...] = ()  # why its clock is lowered, such as "hardware slowdown"


class WorkerRead(Response):
    """A worker by its last report, and its health over time.

    `jobs_lost` counts the losses of its process during work, which another process then repeated.
    `restarts` counts all losses.
    """

    name: str
    host: str
    label: str  # the kind of target it serves, such as "cpu/znver3" or "cuda/h200-emulated"
    device: DeviceRead | None = None  # null for a worker on the cores of a CPU
    state: WorkerState
    last_seen_at: datetime
    task: WorkerTask | None = None
    utilisation: float | None = None  # the share of the time since the newest sample with work
    jobs_lost: int = 0
    restarts: int = 0
    canary: Canary = Canary()
    facts: Mapping[str, JsonValue] = Field(default_factory=dict)


class Scope(StrEnum):
    """The permission of a token; each includes those before it."""

    READ = "read"  # read everything except tokens
    SUBMIT = "submit"  # submit, stop and resume jobs, and build kernels
    ADMIN = "admin"  # create and revoke tokens, import records


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
    # Limits of its queued and running jobs together; null is no limit.
    max_jobs: int | None = Field(default=None, ge=0, le=MAX_QUOTA)
    max_trials: int | None = Field(default=None, ge=0, le=MAX_QUOTA)  # that are not measured yet
    max_priority: int | None = Field(default=None, ge=-MAX_PRIORITY, le=MAX_PRIORITY)


class TokenRead(Response):
    """A token's metadata; the token itself is stored only as a digest."""

    id: UUID
    name: str
    scopes: tuple[Scope, ...]
    created_at: datetime
    last_used_at: datetime | None  # with a resolution of a quarter of an hour
    revoked_at: datetime | None
    max_jobs: int | None = None  # queued and running
    max_trials: int | None = None  # of those jobs that are not measured yet
    max_priority: int | None = None


class TokenCreated(TokenRead):
    """A new token; it is shown only once."""

    token: str


class ImportRead(Response):
    """The records that an import added to a store, without existing ones."""

    workloads: int
    groups: int = 0
    jobs: int
    trials: int
    finals: int
    baselines: int = 0
    updated_jobs: int  # of which the store had an earlier version
    skipped_jobs: int  # that are open in the store, which is newer than the file
    best_schedules: int  # new or faster ones


class Health(Response):
    """Whether the service can do its work, part by part."""

    status: str  # "ok" or "degraded"
    version: str
    checks: Mapping[str, str]
    num_workers: int
    num_queued: int
    num_running: int
