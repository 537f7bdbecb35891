"""A hostile worker that sends pickles to its coordinator, through every channel.

Dask imports it in place of `workers.engine.dask_worker`. Unpickling a `Payload` creates a folder,
so that tests detect it.
"""

from __future__ import annotations

import os
import pickle
from itertools import count
from typing import Any

from distributed.protocol.serialize import ToPickle

from workers.engine import dask_worker

MARKER = "HOSTILE_MARKER"
_calls = count()


class Payload(Exception):  # noqa: N818 - it is whatever it is taken for
    """Creates a folder when it is unpickled."""

    def __init__(self, place: str) -> None:
        super().__init__()
        self.place = place

    def __reduce__(self) -> Any:
        return os.mkdir, (f"{os.environ[MARKER]}-{self.place}",)


def measure_batch(request: str) -> Any:
    """Answer with a payload, raise one, and answer with nonsense."""
    number = next(_calls)
    if number == 0:
        return ToPickle(Payload("result"))
    if number == 1:
        raise Payload("error")
    return ["[", '{"found": [{"run_secs": "x"}]}'][number % 2]


def dask_setup(worker: Any) -> None:
    """Send payloads beside the answers, too."""
    dask_worker.dask_setup(worker)
    # Its own process unpickles as before: what matters is where things arrive.
    dask_worker.ACTS["measure"] = measure_batch
    warning = pickle.dumps(Payload("warning"))
    worker.log_event("warn", {"message": warning, "category": warning})
    worker.log_event("print", {"args": (ToPickle(Payload("event")),)})
    worker.metrics["payload"] = lambda _: ToPickle(Payload("metric"))


dask_teardown = dask_worker.dask_teardown
