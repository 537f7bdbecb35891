"""Remote sessions on the workers of a cluster, for an API process without a coordinator."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from workers.engine.engine import ClusterAddress, SessionOverError

if TYPE_CHECKING:
    from workers.engine.dask_engine import DaskEngine

ResultT = TypeVar("ResultT")


class ClusterSessions:
    """Sessions on the workers of a cluster; it connects with the first one. A `SessionEngine`."""

    def __init__(self, cluster: ClusterAddress) -> None:
        self._cluster = cluster
        self._lock = Lock()
        self._engine: DaskEngine | None = None

    def open_session(self, target: str, owner: str) -> str:
        """Open a session on a worker of a target."""
        return self._with_engine(lambda engine: engine.open_session(target, owner))

    def session_step(self, session: str, owner: str, frame: bytes) -> bytes:
        """Pass a request of a session to its worker."""
        return self._with_engine(lambda engine: engine.session_step(session, owner, frame))

    def close_session(self, session: str, owner: str) -> None:
        """End a session."""
        self._with_engine(lambda engine: engine.close_session(session, owner))

    def _with_engine(self, act: Callable[[DaskEngine], ResultT]) -> ResultT:
        engine = self._connected()
        try:
            return act(engine)
        except SessionOverError:
            # The scheduler may have been replaced: the next request connects anew.
            if not engine.workers():
                self._drop(engine)
            raise

    def _connected(self) -> DaskEngine:
        with self._lock:
            if self._engine is None:
                # Imported on use: Dask takes a second, and most API processes have no sessions.
                engine = import_module("workers.engine.dask_engine").DaskEngine
                self._engine = engine.connected(self._cluster)
            return self._engine

    def _drop(self, engine: DaskEngine) -> None:
        with self._lock:
            if self._engine is engine:
                self._engine = None
        engine.close()
