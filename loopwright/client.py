"""The client: submit workloads to a server, follow their jobs, take kernels home.

This module knows no web framework, no database and no cost model: what it needs is a network and,
to load kernels, the compiler's runtime.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar
from uuid import UUID, uuid4

from pydantic import BaseModel, ValidationError

from compiler.driver import compile_artifact
from compiler.target import Target
from loopwright.best import Best
from loopwright.cache import CachedKernel, KernelCache
from loopwright.connection import Connection, read
from loopwright.errors import (
    ArtifactRefusedError,
    FallbackWarning,
    InvalidRequestError,
    NotFoundError,
    ServerFailedError,
    ServerUnreachableError,
)
from loopwright.job import JobHandle
from loopwright.kernel import Kernel, KernelSchedule, KernelSource, load, schedule_of
from loopwright.models import (
    BestRead,
    Health,
    JobCreate,
    JobRead,
    JobState,
    Page,
    Problem,
    ScheduleQuery,
    WorkerRead,
)
from loopwright.workload import WorkloadLike, to_func, to_wire

DEFAULT_URL = "http://127.0.0.1:8080"
SCHEDULE_HEADER = "Loopwright-Schedule"

RequestT = TypeVar("RequestT", bound=BaseModel)


class Client:
    """A connection to a Loopwright server; close it, or use it in a `with` statement.

    Wherever a workload is asked for, it may be a program (`PrimFunc`), the text of a script, or an
    operator such as `"matmul:512,512,512:float32"`. A target is a `Target` or its text; plain
    `"cpu"` is the server's own CPU.

    Args:
        url: The server's address; by default `$LOOPWRIGHT_URL`, else port 8080 of this host.
        token: What the server knows you by; by default `$LOOPWRIGHT_TOKEN`.
        timeout_secs: How long one answer may take.
        attempts: How often to ask a server that does not answer or is busy.
        cache: Where to keep kernels; by default `$LOOPWRIGHT_CACHE`, else the user's cache.

    Raises:
        InvalidAddressError: If `url` is not an address.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout_secs: float = 60.0,
        attempts: int = 4,
        cache: Path | None = None,
    ) -> None:
        self._connection = Connection(
            url or os.environ.get("LOOPWRIGHT_URL") or DEFAULT_URL,
            token or os.environ.get("LOOPWRIGHT_TOKEN"),
            timeout_secs=timeout_secs,
            attempts=attempts,
        )
        self._cache = KernelCache(cache)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    @property
    def url(self) -> str:
        """The server's address."""
        return self._connection.url

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        self._connection.close()

    def tune(
        self,
        workload: WorkloadLike,
        *,
        target: Target | str = "cpu",
        trials: int = 200,
        seconds: float | None = None,
        plateau: int | None = None,
        seed: int = 0,
        strategy: str = "evolutionary",
        rules: Sequence[str] | None = None,
        warm_start: bool = True,
    ) -> JobHandle:
        """Submit a tuning job and return at once; it is submitted once, however often we retry.

        The job ends when one of its budgets is spent, and says which (`stop_reason`); `cancel` ends
        it at once and keeps the best so far.

        Args:
            trials: The budget of trials; trial 0 is the default schedule.
            seconds: The budget of time, while the job runs.
            plateau: End after so many trials in a row that brought less than 1% together.
            rules: The names of the schedule rules that make the design space; by default all.
            warm_start: Whether to begin with what the server knows of other shapes of the operator,
                and with its cost model. Without, the search depends on the seed alone.

        Raises:
            InvalidRequestError: If the server does not understand the workload, the target, a
                rule or a number; for a script the message shows the place.
            ServerUnreachableError: If no server answers.
        """
        request = _checked(
            JobCreate,
            workload=to_wire(workload),
            target=_text(target),
            trials=trials,
            seconds=seconds,
            plateau=plateau,
            seed=seed,
            strategy=strategy,
            rules=None if rules is None else tuple(rules),
            warm_start=warm_start,
        )
        response = self._connection.post("/jobs", request, headers={"Idempotency-Key": uuid4().hex})
        return JobHandle(self._connection, read(JobRead, response).id)

    def job(self, job_id: UUID | str) -> JobHandle:
        """Return a handle on a job by its id; nothing is asked of the server yet.

        Raises:
            ValueError: If the text is not an id.
        """
        return JobHandle(self._connection, UUID(str(job_id)))

    def jobs(self, *, state: JobState | None = None, limit: int = 100) -> Iterator[JobRead]:
        """Yield the jobs of the server, the newest first, `limit` at most."""
        params: dict[str, str | int] = {"limit": min(limit, 100)}
        if state is not None:
            params["state"] = state.value
        while True:
            page = read(Page[JobRead], self._connection.get("/jobs", params=params))
            yield from page.items[:limit]
            limit -= len(page.items)
            if page.next_cursor is None or limit <= 0:
                return
            params["cursor"] = page.next_cursor

    def best(
        self, workload: WorkloadLike, *, target: Target | str = "cpu", nearest: bool = False
    ) -> Best:
        """Return the fastest schedule that the server knows.

        Args:
            nearest: Whether, if this workload was not tuned, that of the nearest shape of its
                operator will do. It is adapted, replays on the workload, and was not measured
                there; `Best.nearest` says from which shape it is and what is expected of it.

        Raises:
            NotFoundError: If this workload was not tuned for this target, nor with `nearest`
                another shape whose schedule fits.
        """
        query = _query(workload, target, nearest=nearest)
        return Best(read(BestRead, self._connection.post("/schedules/best", query)))

    def kernel(
        self,
        workload: WorkloadLike,
        *,
        target: Target | str = "cpu",
        nearest: bool = False,
        fallback: bool = True,
    ) -> Kernel:
        """Return the fastest kernel that the server knows, compiled and loaded.

        A kernel is kept in a local cache, and asked for again only if the server has a better one;
        the cache also answers when the server does not. Without any tuned kernel, or with one that
        this host cannot run, the default schedule is built here, and a `FallbackWarning` says so.

        Args:
            nearest: Whether, if this workload was not tuned, the schedule of the nearest shape will
                do, adapted; see `best`. `Kernel.schedule` says which it was.
            fallback: Whether a kernel of the default schedule will do; if not, errors are raised.

        Raises:
            ServerUnreachableError: Without fallback, if no server answers.
            NotFoundError: Without fallback, if this workload was not tuned for this target.
            ArtifactRefusedError: Without fallback, if this host cannot run the kernel.
        """
        try:
            return self._tuned_kernel(_query(workload, target, nearest=nearest))
        except (
            ServerUnreachableError,
            ServerFailedError,
            NotFoundError,
            ArtifactRefusedError,
        ) as error:
            if not fallback:
                raise
            warnings.warn(
                f"no tuned kernel, using the default schedule: {error}",
                FallbackWarning,
                stacklevel=2,
            )
            # A tuned kernel that was refused was made for another CPU: build for this one.
            here = Target("cpu") if isinstance(error, ArtifactRefusedError) else _target(target)
            artifact = compile_artifact(to_func(workload), here)
            return Kernel(artifact, KernelSource.DEFAULT, KernelSchedule.DEFAULT)

    def workers(self) -> tuple[WorkerRead, ...]:
        """Return the workers that the server knows."""
        return read(Page[WorkerRead], self._connection.get("/workers")).items

    def health(self) -> Health:
        """Return whether the server can do its work."""
        return read(Health, self._connection.get("/health"))

    def _tuned_kernel(self, query: ScheduleQuery) -> Kernel:
        kept, etag = self._kept_kernel(query)
        headers = {"If-None-Match": etag} if etag else {}
        try:
            response = self._connection.post("/artifacts", query, headers=headers)
        except (ServerUnreachableError, ServerFailedError):
            if kept is None:
                raise
            return kept
        if response.status_code == 304 and kept is not None:
            return kept
        schedule = schedule_of(response.headers.get(SCHEDULE_HEADER))
        kernel = load(response.content, KernelSource.SERVER, schedule)
        if new_etag := response.headers.get("ETag"):
            self._cache.put(self.url, query, CachedKernel(new_etag, response.content, schedule))
        return kernel

    def _kept_kernel(self, query: ScheduleQuery) -> tuple[Kernel | None, str]:
        """Return the kernel in the cache with its tag; a damaged one is as good as none."""
        cached = self._cache.get(self.url, query)
        if cached is None:
            return None, ""
        try:
            schedule = schedule_of(cached.schedule)
            return load(cached.content, KernelSource.CACHE, schedule), cached.etag
        except ArtifactRefusedError:
            return None, ""


def _query(workload: WorkloadLike, target: Target | str, *, nearest: bool) -> ScheduleQuery:
    return _checked(
        ScheduleQuery, workload=to_wire(workload), target=_text(target), nearest=nearest
    )


def _checked(model: type[RequestT], **fields: Any) -> RequestT:
    """Make a request body, or the error that the server would have answered."""
    try:
        return model(**fields)
    except ValidationError as error:
        flaws = (f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise InvalidRequestError(
            Problem(status=422, title="invalid request", detail="; ".join(flaws))
        ) from None


def _text(target: Target | str) -> str:
    return target.name if isinstance(target, Target) else target


def _target(target: Target | str) -> Target:
    return target if isinstance(target, Target) else Target(target)
