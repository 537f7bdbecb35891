"""The client: submit workloads to a server, follow their jobs, fetch kernels.

This module imports no web framework, no database and no cost model. It needs a network and, to load
kernels, the compiler's runtime. Each method is described once, in `ClientMethods`, for the blocking
client and the asynchronous one.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar
from uuid import UUID

from compiler.keywords import suggests_keywords
from compiler.runtime.signature import KeyFileError, PublicKey
from compiler.target.target import Target
from loopwright.cache_space import MAX_BYTES
from loopwright.client.async_connection import AsyncConnection
from loopwright.client.best import Best
from loopwright.client.cache import DiskCache
from loopwright.client.connection import Connection
from loopwright.client.decoding import read
from loopwright.client.frames import trials_frame
from loopwright.client.group import AsyncGroupHandle, GroupHandle
from loopwright.client.job import AsyncJobHandle, JobHandle
from loopwright.client.methods import Awaiting, Blocking, request, stream
from loopwright.client.pages import pages
from loopwright.client.requests import read_id, read_states, schedule_query
from loopwright.client.resolve_kernel import NO_TUNED_KERNEL, KernelResolver, default_kernel
from loopwright.client.shapes import AsyncShapesHandle, ShapesHandle
from loopwright.client.steps import Download, HttpCall, Plan, Stream, Upload, collect, send
from loopwright.client.submit import OneT, SeveralT, ShapesT, Submitting
from loopwright.errors import SignatureError
from loopwright.extras import load_extra
from loopwright.kernels.kernel import Kernel
from loopwright.workload import WorkloadLike
from service.wire.model_reads import ModelPackage
from service.wire.models import JobRead, JobState, Page, TrialRead
from service.wire.server_models import Health, ImportRead, WorkerRead

if TYPE_CHECKING:
    import pandas as pd

    from loopwright.models.executable import Executable

DEFAULT_URL = "http://127.0.0.1:8080"

HandleT = TypeVar("HandleT", JobHandle, AsyncJobHandle)


def _public_key(text_or_path: str | None) -> PublicKey | None:
    key_text = text_or_path or os.environ.get("LOOPWRIGHT_PUBLIC_KEY")
    try:
        return PublicKey.read(key_text) if key_text else None
    except KeyFileError as error:
        raise SignatureError(str(error)) from error


class ClientMethods(Submitting[OneT, SeveralT, ShapesT], Generic[HandleT, OneT, SeveralT, ShapesT]):
    """The methods of a client.

    A workload may be a program (`PrimFunc`), a module of a function and those that it calls
    (`IRModule`), a task of `lw.extract_tasks`, the text of a script, or an operator such as
    `"matmul:512,512,512:float32"`. A target is a `Target` or its text; `"cpu"` is the server's own
    CPU.
    """

    _transport: ClassVar[Callable[..., Any]]
    _handle: ClassVar[Callable[..., Any]]

    @suggests_keywords
    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout_secs: float = 60.0,
        attempts: int = 4,
        cache: Path | None = None,
        cache_bytes: int = MAX_BYTES,
        offline: bool = False,
        public_key: str | None = None,
    ) -> None:
        self._connection = self._transport(
            url or os.environ.get("LOOPWRIGHT_URL") or DEFAULT_URL,
            token or os.environ.get("LOOPWRIGHT_TOKEN"),
            timeout_secs=timeout_secs,
            attempts=attempts,
            is_offline=offline,
        )
        self._known = KernelResolver(
            self._connection.url, DiskCache(cache, cache_bytes), offline, _public_key(public_key)
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    @property
    def url(self) -> str:
        """Return the server's address."""
        return self._known.url

    def job(self, job_id: UUID | str) -> HandleT:
        """Return a handle on a job by its id, without a request to the server.

        Raises:
            ValueError: If the text is not an id.
        """
        handle: HandleT = self._handle(self._connection, read_id(job_id, "job"))
        return handle

    @stream
    def jobs(
        self,
        *,
        state: JobState | str | Sequence[JobState | str] | None = None,
        operator: str | None = None,
        target: str | None = None,
        owner: str | None = None,
        text: str | None = None,
        tag: str | Sequence[str] | None = None,
        sort: str | None = None,
        limit: int = 100,
    ) -> Stream[JobRead]:
        """Yield the jobs of the server, the newest first, `limit` at most.

        Args:
            state: Only jobs in this state, such as `"running"`, or in one of these.
            operator: Only jobs of this operator, such as `matmul`.
            target: Only jobs for targets with this in their text.
            owner: Only jobs submitted with the token of this name.
            text: Only jobs with this in their workload's name, their id, name, note or tags.
            tag: Only jobs with this tag, or with all of these.
            sort: The field to sort by, such as `-created_at` or `best_secs`.

        Raises:
            ValueError: If the state does not exist.
        """
        params = {
            "state": None if state is None else read_states(state),
            "operator": operator,
            "target": target,
            "owner": owner,
            "text": text,
            "tag": [tag] if isinstance(tag, str) else tag,
            "sort": sort,
        }
        yield from pages(JobRead, "/jobs", params, limit=limit)

    @request
    def trials(self, jobs: Iterable[UUID | str]) -> Plan[pd.DataFrame]:
        """Return the trials of jobs as one table, one row a trial; see `docs/client.md`.

        Raises:
            ModuleNotFoundError: If pandas is not installed: `pip install 'loopwright[pandas]'`.
        """
        rows: list[tuple[UUID, TrialRead]] = []
        for job_id in [read_id(job, "job") for job in jobs]:
            trials = yield from collect(pages(TrialRead, f"/jobs/{job_id}/trials"))
            rows += [(job_id, trial) for trial in trials]
        return trials_frame(rows)

    @request
    def best(
        self,
        workload: WorkloadLike,
        *,
        target: Target | str = "cpu",
        nearest: bool = False,
        enqueue: bool = False,
    ) -> Plan[Best]:
        """Return the fastest schedule on the server.

        If the server does not answer, its last answer is used, and a `StaleAnswerWarning` names its
        age.

        Args:
            nearest: Whether to fall back to the schedule of the nearest shape of the operator if
                this workload was not tuned. It is adapted, replays on the workload, and was not
                measured there; `Best.nearest` has its shape and the expected loss.
            enqueue: Whether the server queues a job of low priority if this workload was not tuned.
                Repeated calls queue one job only. A later call returns its result.

        Raises:
            NotFoundError: If this workload was not tuned for this target, nor with `nearest`
                another shape whose schedule fits; with `enqueue`, `problem.job_id` is the job.
            AccessDeniedError: If the token may not submit jobs, with `enqueue`.
            ServerUnreachableError: If no server answers, and the cache has no answer.
        """
        query = schedule_query(workload, target, nearest=nearest, enqueue=enqueue)
        return (yield from self._known.schedule(query))

    @request
    def kernel(
        self,
        workload: WorkloadLike,
        *,
        target: Target | str = "cpu",
        nearest: bool = False,
        enqueue: bool = False,
        fallback: bool = True,
        const_params: Mapping[str, Any] | None = None,
    ) -> Plan[Kernel]:
        """Return the fastest kernel on the server, compiled and loaded.

        Kernels are cached, and downloaded again only if the server has a better one. If the server
        does not answer, the cache is used, and a `StaleAnswerWarning` names the age. Without any
        tuned kernel, or with one that this host cannot run, the default schedule is built here,
        with a `FallbackWarning`.

        Args:
            nearest: Whether to fall back to the adapted schedule of the nearest shape if this
                workload was not tuned; see `best`. `Kernel.schedule` says which it was.
            enqueue: Whether the server queues a job if this workload was not tuned: see `best`.
            fallback: Whether to fall back to a kernel of the default schedule; if not, errors are
                raised.
            const_params: An array for each constant of the workload, by name. They stay here: they
                are packed once, now, and calls of the kernel omit them.

        Raises:
            ArgumentError: If a constant is missing, or does not fit its parameter.
            ServerUnreachableError: Without fallback, if no server answers.
            NotFoundError: Without fallback, if this workload was not tuned for this target.
            ArtifactRefusedError: Without fallback, if this host cannot run the kernel.
        """
        try:
            query = schedule_query(workload, target, nearest=nearest, enqueue=enqueue)
            return (yield from self._known.kernel(query, const_params))
        except NO_TUNED_KERNEL as error:
            if not fallback:
                raise
            return (yield from default_kernel(workload, target, error, const_params))

    @request
    def model_schedules(self, model_id: UUID | str) -> Plan[ModelPackage]:
        """Return the best schedules so far of the programs of a model.

        Raises:
            NotFoundError: If the server has no such model.
            ValueError: If the text is not an id.
        """
        path = f"/models/{read_id(model_id, 'model')}/package"
        return read(ModelPackage, (yield from send(HttpCall("GET", path))))

    @request
    def workers(self) -> Plan[tuple[WorkerRead, ...]]:
        """Return the workers of the server."""
        return read(Page[WorkerRead], (yield from send(HttpCall("GET", "/workers")))).items

    @request
    def health(self) -> Plan[Health]:
        """Return whether the server is healthy."""
        return read(Health, (yield from send(HttpCall("GET", "/health"))))

    @request
    def export_records(
        self,
        file: Path,
        *,
        jobs: Iterable[UUID | str] = (),
        workload_key: str | None = None,
        target: str | None = None,
    ) -> Plan[None]:
        """Write jobs with all their measurements to a file; see `docs/records.md`.

        Args:
            jobs: Only these.
            workload_key: Only jobs of this workload.
            target: Only jobs for this target.
        """
        params = {"job": [str(job) for job in jobs], "workload_key": workload_key, "target": target}
        yield Download("/export", Path(file), params)

    @request
    def import_records(self, file: Path) -> Plan[ImportRead]:
        """Import the records of a file into the server: all of them, or none if one is invalid.

        Existing records do not change, so importing twice is safe.

        Raises:
            InvalidRequestError: If a line of the file is invalid, with its number.
        """
        return read(ImportRead, (yield Upload("/import", Path(file))))


class Client(ClientMethods[JobHandle, JobHandle, GroupHandle, ShapesHandle], Blocking):
    """A connection to a Loopwright server; close it, or use it in a `with` statement.

    Args:
        url: The server's address; by default `$LOOPWRIGHT_URL`, else port 8080 of this host.
        token: The access token; by default `$LOOPWRIGHT_TOKEN`.
        timeout_secs: The time limit of one answer; that to an imported file, up to an hour.
        attempts: The number of attempts if a server does not answer or is busy.
        cache: The directory of cached schedules and kernels; by default `$LOOPWRIGHT_CACHE`, else
            the user's cache.
        cache_bytes: The size limit of the cache.
        offline: Whether to use the cache only, without requests to a server.

    Raises:
        InvalidAddressError: If `url` is not an address.
    """

    _transport = Connection
    _handle = JobHandle
    _group_handle = GroupHandle
    _shapes_handle = ShapesHandle

    def group(self, group_id: UUID | str) -> GroupHandle:
        """Return a handle on a group by its id, without a request to the server.

        Raises:
            ValueError: If the text is not an id.
        """
        return GroupHandle(self._connection, read_id(group_id, "group"))

    def shapes(self, shapes_id: UUID | str) -> ShapesHandle:
        """Return a handle on a search over ranges by its id, without a request to the server.

        Raises:
            ValueError: If the text is not an id.
        """
        shapes_uuid = read_id(shapes_id, "search over ranges")
        return ShapesHandle(self._connection, shapes_uuid, self._known.public_key)

    def compile(
        self, model: Any, example_inputs: Any = None, *, trials: int | None = 2000, **options: Any
    ) -> Executable:
        """Compile a whole model, whose programs the server tunes: `lw.compile` by this client.

        The model is built here; the server receives no weights. Requires the extra `server`, for
        the first proposals.

        Args:
            model: A model as `lw.compile` takes it.
            example_inputs: The arguments of a call, for a module of PyTorch.
            trials: The limit on trials; with 0, the schedules that the server has are used.
            options: `target`, `shapes`, `fixed_inputs`, `seed` and `progress` of `lw.compile`.
        """
        compiling = load_extra("loopwright.models.compiling", "client.compile")
        compiled: Executable = compiling.compile_by(
            self, model, example_inputs, trials=trials, **options
        )
        return compiled

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        self._connection.close()


class AsyncClient(
    ClientMethods[
        AsyncJobHandle,
        Awaitable[AsyncJobHandle],
        Awaitable[AsyncGroupHandle],
        Awaitable[AsyncShapesHandle],
    ],
    Awaiting,
):
    """The asynchronous client: `await client.best(...)`, `async for job in client.jobs()`.

    Takes the same arguments as `Client`, and is used in an `async with` statement.
    """

    _transport = AsyncConnection
    _handle = AsyncJobHandle
    _group_handle = AsyncGroupHandle
    _shapes_handle = AsyncShapesHandle

    def group(self, group_id: UUID | str) -> AsyncGroupHandle:
        """Return a handle on a group by its id, without a request to the server.

        Raises:
            ValueError: If the text is not an id.
        """
        return AsyncGroupHandle(self._connection, read_id(group_id, "group"))

    def shapes(self, shapes_id: UUID | str) -> AsyncShapesHandle:
        """Return a handle on a search over ranges by its id, without a request to the server.

        Raises:
            ValueError: If the text is not an id.
        """
        shapes_uuid = read_id(shapes_id, "search over ranges")
        return AsyncShapesHandle(self._connection, shapes_uuid, self._known.public_key)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection; a second call does nothing."""
        await self._connection.close()
