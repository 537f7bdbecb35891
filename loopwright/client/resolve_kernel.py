"""Find the best schedule or kernel of a workload: from the server, or else from the cache.

If the server does not answer, its last answer is used, with a warning that names its age. Without
one, the default schedule is built here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import httpx2

from compiler.ir.analysis.structural import structural_hash
from compiler.ops.spec import from_spec
from compiler.runtime.signature import PublicKey, SignatureMismatchError
from compiler.script.parser import parse
from compiler.target.target import Target
from loopwright.client.best import Best
from loopwright.client.cache import CachedAnswer, DiskCache
from loopwright.client.decoding import read
from loopwright.client.steps import HttpCall, Plan, send, work
from loopwright.errors import (
    ArtifactRefusedError,
    FallbackWarning,
    LoopwrightError,
    NotFoundError,
    ServerFailedError,
    ServerUnreachableError,
    SignatureError,
    StaleAnswerWarning,
)
from loopwright.kernels.cached_build import build_kernel
from loopwright.kernels.kernel import Kernel, KernelSchedule, KernelSource, load, schedule_of
from loopwright.user_warnings import format_age, warn_user
from loopwright.workload import WorkloadLike, to_func
from service.wire.models import BestRead
from service.wire.requests import ScheduleQuery

SCHEDULE_HEADER = "Loopwright-Schedule"
SIGNATURE_HEADER = "Loopwright-Signature"

_SCHEDULES, _KERNELS = "schedules", "kernels"
_AWAY = (ServerUnreachableError, ServerFailedError)


@dataclass(frozen=True)
class KernelResolver:
    """Requests schedules and kernels from a server, or from the cache if the server is away.

    Args:
        is_offline: Whether the user chose to work offline: then an old answer needs no warning.
        public_key: The server's public key; with it, only kernels that it signed are loaded.
    """

    url: str
    cache: DiskCache
    is_offline: bool
    public_key: PublicKey | None = None

    def schedule(self, query: ScheduleQuery) -> Plan[Best]:
        """Return the best schedule; see `Client.best`."""
        call = HttpCall("POST", "/schedules/best", query, is_query=True)
        try:
            response = yield from send(call)
        except _AWAY as error:
            cached = yield from work(partial(self.cache.get, _SCHEDULES, self.url, query))
            if cached is None:
                raise
            self._say(cached, "schedule", error)
            return Best(BestRead.model_validate_json(cached.content), cached.fetched_at)
        best = Best(read(BestRead, response))
        cached = _cached_answer(response)
        yield from work(partial(self.cache.put, _SCHEDULES, self.url, query, cached))
        return best

    def kernel(
        self, query: ScheduleQuery, const_params: Mapping[str, Any] | None = None
    ) -> Plan[Kernel]:
        """Return the tuned kernel; see `Client.kernel`."""
        cached, kernel = yield from work(partial(self._cached_kernel, query, const_params))
        headers = {} if cached is None else {"If-None-Match": cached.etag}
        try:
            response = yield from send(
                HttpCall("POST", "/artifacts", query, headers=headers, is_query=True)
            )
        except _AWAY as error:
            if cached is None or kernel is None:
                raise
            self._say(cached, "kernel", error)
            return kernel
        if response.status_code == 304 and kernel is not None:
            return kernel
        word = response.headers.get(SCHEDULE_HEADER, "")
        signature = response.headers.get(SIGNATURE_HEADER, "")
        yield from work(partial(self._verify, query, signature, word, response.content))
        schedule = schedule_of(word)
        fetched = yield from work(
            partial(
                load,
                response.content,
                KernelSource.SERVER,
                schedule,
                const_params=const_params,
            )
        )
        if "ETag" in response.headers:
            cached = _cached_answer(response, schedule, signature)
            yield from work(partial(self.cache.put, _KERNELS, self.url, query, cached))
        return fetched

    def _cached_kernel(
        self, query: ScheduleQuery, const_params: Mapping[str, Any] | None
    ) -> tuple[CachedAnswer | None, Kernel | None]:
        """Return the kernel in the cache; None if it cannot be loaded."""
        cached = self.cache.get(_KERNELS, self.url, query)
        if cached is None:
            return None, None
        try:
            self._verify(query, cached.signature, cached.schedule, cached.content)
            schedule = schedule_of(cached.schedule)
            kernel = load(
                cached.content, KernelSource.CACHE, schedule, cached.fetched_at, const_params
            )
            return cached, kernel
        except (ArtifactRefusedError, SignatureError):
            return None, None

    def _verify(self, query: ScheduleQuery, signature: str, schedule: str, content: bytes) -> None:
        """Check that the server signed a kernel, if its key is known.

        Raises:
            SignatureError: If it did not.
        """
        if self.public_key is None:
            return
        workload = query.workload
        func = from_spec(workload.operator) if workload.operator else parse(workload.script or "")
        try:
            self.public_key.verify(signature, structural_hash(func), schedule, content)
        except SignatureMismatchError as error:
            raise SignatureError(str(error)) from error

    def _say(self, cached: CachedAnswer, kind: str, error: LoopwrightError) -> None:
        if not self.is_offline:
            age = format_age(cached.age_secs)
            warn_user(f"using the {kind} of {age} ago: {error}", StaleAnswerWarning)


def default_kernel(
    workload: WorkloadLike,
    target: Target | str,
    why: LoopwrightError,
    const_params: Mapping[str, Any] | None = None,
) -> Plan[Kernel]:
    """Build the default schedule, with a warning."""
    warn_user(f"no tuned kernel, using the default schedule: {why}", FallbackWarning)
    return (yield from work(partial(built_default, workload, target, why, const_params)))


def built_default(
    workload: WorkloadLike,
    target: Target | str,
    why: LoopwrightError,
    const_params: Mapping[str, Any] | None = None,
) -> Kernel:
    """Build the default schedule, because there is no tuned kernel that this host can run.

    Raises:
        BuildError: If it can't be built.
    """
    # A tuned kernel that was refused was made for another CPU: build for this one.
    requested = Target("cpu") if isinstance(why, ArtifactRefusedError) else target
    build_target = requested if isinstance(requested, Target) else Target(requested)
    artifact = build_kernel(to_func(workload), build_target)
    return Kernel(artifact, KernelSource.DEFAULT, KernelSchedule.DEFAULT, const_params=const_params)


NO_TUNED_KERNEL = (*_AWAY, NotFoundError, ArtifactRefusedError)
"""Why there may be no tuned kernel, although what was asked made sense."""


def _cached_answer(
    response: httpx2.Response, schedule: str = "", signature: str = ""
) -> CachedAnswer:
    etag = response.headers.get("ETag", "")
    return CachedAnswer(etag, response.content, datetime.now(UTC), schedule, signature)
