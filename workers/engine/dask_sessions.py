"""Remote sessions on the workers of a Dask cluster.

A step is a task of the one worker that has the session. It runs in the thread of the worker's
batches, so no candidate is measured meanwhile, and no session disturbs a measurement.
"""

from __future__ import annotations

import base64
import json
import random
from itertools import count
from threading import Event
from time import monotonic
from typing import Any

from dask.typing import Key
from distributed import Client, Future

from compiler.target.target import Target
from workers.engine import dask_worker
from workers.engine.engine import NoSessionError, NoWorkerError, SessionOverError, WorkerFacts
from workers.engine.worker_list import WorkerList, calling_dask
from workers.wire import answers
from workers.wire.answers import AnswerError
from workers.wire.remote_step import RemoteStep, decoded, encoded, read_answer

_STEP_SECS = 150.0
"""Time limit of a step: a batch in progress, then the longest call. Chosen."""

_LOOK_SECS = 1.0
"""Time between two looks whether the worker of a step is still connected: Dask keeps a step for a
worker that is gone, and waits for it. Chosen.
"""


class DaskSessions:
    """Opens sessions on workers, and passes their steps; safe to use from several threads."""

    def __init__(self, client: Client, is_closed: Event) -> None:
        self._client = client
        self._workers = WorkerList(client, is_closed)
        self._is_closed = is_closed
        self._number = count()

    def open(self, target: str, owner: str) -> str:
        """Open a session on a worker of a target; return its name.

        Raises:
            NoWorkerError: If no worker serves the target.
            NoSessionError: If all that do refuse the session.
        """
        label = Target(target).label
        # An emulated device refuses to measure candidates, and serves sessions.
        offers = (w for w in self._workers.current() if w.facts.get(dask_worker.SESSIONS))
        workers = [worker for worker in offers if worker.label == label]
        if not workers:
            raise NoWorkerError(f"no worker serves {label}, which the target {target!r} needs")
        random.shuffle(workers)
        reason = ""
        for worker in workers:
            try:
                answer = self._found(worker, RemoteStep("open", owner))
                return f"{_text_of(worker.name)}.{read_answer(answer, 'session')}"
            except (AnswerError, SessionOverError) as error:
                reason = str(error)
        raise NoSessionError(f"no session on {label}: {reason}")

    def step(self, session: str, owner: str, frame: bytes) -> bytes:
        """Pass a request of a session, and return its answer.

        Raises:
            SessionOverError: If the session, or its worker, is gone.
        """
        worker, name = self._worker_of(session)
        try:
            answer = self._found(worker, RemoteStep("frame", owner, name, encoded(frame)))
            return decoded(read_answer(answer, "frame"))
        except AnswerError as error:
            raise SessionOverError(str(error)) from error

    def close(self, session: str, owner: str) -> None:
        """End a session.

        Raises:
            SessionOverError: If it is gone.
        """
        worker, name = self._worker_of(session)
        try:
            read_answer(self._found(worker, RemoteStep("close", owner, name)), "session")
        except AnswerError as error:
            raise SessionOverError(str(error)) from error

    def _worker_of(self, session: str) -> tuple[WorkerFacts, str]:
        text, _, name = session.partition(".")
        for workers in (self._workers.recent, self._workers.current):
            for worker in workers():
                if _text_of(worker.name) == text:
                    return worker, name
        raise SessionOverError("no such session: its worker is gone")

    def _found(self, worker: WorkerFacts, step: RemoteStep) -> Any:
        """Return what the worker found.

        Raises:
            AnswerError: If it answers with an error.
            SessionOverError: If it does not answer.
        """
        future: Future[str] | None = None
        try:
            with calling_dask(self._is_closed):
                future = self._client.submit(
                    dask_worker.remote_step,
                    json.dumps(step.to_json()),
                    key=self._key(),
                    pure=False,
                    retries=0,
                    workers=[worker.name.rpartition("/")[2]],
                )
                answer = self._answer(future, worker)
        except AnswerError:
            raise
        except Exception as error:
            if future is not None:
                future.cancel()
            raise SessionOverError(f"the worker did not answer: {error!r}") from error
        finally:
            if future is not None:
                future.release()
        return answers.read_found(answer)

    def _answer(self, future: Future[str], worker: WorkerFacts) -> str:
        """Wait for the answer to a step as long as its worker is connected."""
        end = monotonic() + _STEP_SECS
        while True:
            try:
                return future.result(timeout=_LOOK_SECS)
            except TimeoutError:
                if monotonic() > end:
                    raise
                connected = {(w.name, w.pid) for w in self._workers.recent()}
                if (worker.name, worker.pid) not in connected:
                    raise ConnectionError("it is gone") from None

    def _key(self) -> Key:
        return f"session-{random.getrandbits(64):x}-{next(self._number)}"


def _text_of(worker: str) -> str:
    """Return the name of a worker as a part of a session's name."""
    return base64.urlsafe_b64encode(worker.encode()).decode().rstrip("=")
