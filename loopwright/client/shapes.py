"""A handle on a search of a server over ranges of sizes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any
from uuid import UUID

from compiler.executor.artifact import Artifact
from compiler.ir.analysis.structural import structural_hash
from compiler.runtime.signature import PublicKey, SignatureMismatchError
from compiler.script import parse
from loopwright.client.async_connection import AsyncConnection
from loopwright.client.connection import Connection
from loopwright.client.decoding import read
from loopwright.client.job import POLL_SECS, read_patiently
from loopwright.client.methods import Awaiting, Blocking, request
from loopwright.client.progress import TrialProgress
from loopwright.client.requests import checked
from loopwright.client.resolve_kernel import SIGNATURE_HEADER
from loopwright.client.steps import HttpCall, Pause, Plan, send, work
from loopwright.errors import JobFailedError, SignatureError, WaitTimeoutError
from loopwright.kernels.kernel import Kernel, KernelSource
from loopwright.kernels.kernel import load as load_kernel
from service.wire.models import GroupRead, JobState
from service.wire.requests import GroupChange
from service.wire.shape_reads import ShapesRead


class ShapesMethods:
    """The methods of a handle; handles hold no state, so make as many as you like."""

    id: UUID
    _connection: Any
    _public_key: PublicKey | None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} of {self._connection.url}>"

    @request
    def read(self) -> Plan[ShapesRead]:
        """Return the current state: tuned sizes, and at the end kernels and their times."""
        return (yield from self._read())

    @request
    def cancel(self) -> Plan[ShapesRead]:
        """Cancel the jobs of sizes that have not ended, and keep their trials."""
        return (yield from self._act("cancel"))

    @request
    def stop(self) -> Plan[ShapesRead]:
        """Stop the searches now, and choose kernels by what was measured."""
        return (yield from self._act("stop"))

    @request
    def extend(self, *, max_trials: int) -> Plan[ShapesRead]:
        """Set another total limit on trials; at its end, the kernels are chosen again.

        Raises:
            InvalidRequestError: If the limit is not possible.
            ConflictError: If all jobs have ended and none can continue.
        """
        change = checked(GroupChange, max_trials=max_trials)
        shapes = yield from self._read()
        path = f"/groups/{shapes.group_id}"
        read(GroupRead, (yield from send(HttpCall("PATCH", path, change, is_query=True))))
        return (yield from self._read())

    @request
    def wait(
        self, *, timeout_secs: float | None = None, progress: bool | None = None
    ) -> Plan[ShapesRead]:
        """Wait until the kernels are chosen, or the search has ended without any.

        Args:
            timeout_secs: The maximum time to wait.
            progress: Whether to draw a progress bar; by default only on a terminal or notebook.

        Raises:
            JobFailedError: If no kernel is correct at all sizes.
            WaitTimeoutError: If it did not end in time.
            ServerUnreachableError: If the server does not answer for a minute.
        """
        deadline = None if timeout_secs is None else time.monotonic() + timeout_secs
        shapes = yield from self._read()
        with TrialProgress(shapes.name, shapes.max_trials, show=progress) as bar:
            while True:
                bar.draw(shapes.num_measured, _note(shapes))
                if shapes.state.is_final:
                    break
                if deadline is not None and time.monotonic() >= deadline:
                    raise WaitTimeoutError(
                        f"search over ranges {self.id} goes on after {timeout_secs:g} s, with"
                        f" {shapes.num_measured} of {shapes.max_trials} trials measured"
                    )
                yield Pause(POLL_SECS)
                shapes = yield from read_patiently(self._read)
        if shapes.state is JobState.FAILED:
            raise JobFailedError(f"search over ranges {self.id} failed: {shapes.error}")
        return shapes

    @request
    def artifact(self) -> Plan[Artifact]:
        """Return the kernels with their dispatcher as one artifact; `save` writes it to a file.

        Raises:
            NotFoundError: If the kernels are not chosen yet.
            SignatureError: If the client knows the server's key, and it did not sign them.
        """
        content = yield from self._content()
        return Artifact.from_bytes(content)

    @request
    def kernel(self, *, const_params: Mapping[str, Any] | None = None) -> Plan[Kernel]:
        """Return the kernels with their dispatcher as one kernel that runs all sizes, loaded.

        Args:
            const_params: An array for each constant of the workload, by name; see `Client.kernel`.

        Raises:
            NotFoundError: If the kernels are not chosen yet.
            ArtifactRefusedError: If this host cannot run them.
            SignatureError: If the client knows the server's key, and it did not sign them.
        """
        content = yield from self._content()
        load = partial(load_kernel, content, KernelSource.SERVER, const_params=const_params)
        return (yield from work(load))

    def _content(self) -> Plan[bytes]:
        call = HttpCall("POST", f"/shapes/{self.id}/artifact", is_query=True)
        response = yield from send(call)
        if self._public_key is not None:
            shapes = yield from self._read()
            signature = response.headers.get(SIGNATURE_HEADER, "")
            yield from work(
                partial(_verify, self._public_key, shapes.script, signature, response.content)
            )
        return response.content

    def _act(self, name: str) -> Plan[ShapesRead]:
        shapes = yield from self._read()
        path = f"/groups/{shapes.group_id}/{name}"
        read(GroupRead, (yield from send(HttpCall("POST", path, is_query=True))))
        return (yield from self._read())

    def _read(self) -> Plan[ShapesRead]:
        return read(ShapesRead, (yield from send(HttpCall("GET", f"/shapes/{self.id}"))))


def _note(shapes: ShapesRead) -> str:
    """Return what the search does now."""
    if shapes.num_kernels is not None:
        return f"{shapes.num_kernels} kernels"
    return f"choosing kernels: {shapes.num_timed} timed" if shapes.num_timed else "measuring"


def _verify(key: PublicKey, script: str, signature: str, content: bytes) -> None:
    try:
        key.verify(signature, structural_hash(parse(script)), "shapes", content)
    except SignatureMismatchError as error:
        raise SignatureError(str(error)) from error


class ShapesHandle(ShapesMethods, Blocking):
    """A search of a server over ranges, by its `id`."""

    def __init__(
        self, connection: Connection, shapes_id: UUID, public_key: PublicKey | None = None
    ) -> None:
        self.id = shapes_id
        self._connection = connection
        self._public_key = public_key


class AsyncShapesHandle(ShapesMethods, Awaiting):
    """A search of a server over ranges, by its `id`; its methods are awaited."""

    def __init__(
        self, connection: AsyncConnection, shapes_id: UUID, public_key: PublicKey | None = None
    ) -> None:
        self.id = shapes_id
        self._connection = connection
        self._public_key = public_key
