"""Dependencies of the routes; the application factory provides them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from compiler.runtime.signature import SigningKey
from service.intake.text_reader import TextReader, shared_reader
from service.reading.plots import Plots
from service.schedules.kernel_builder import KernelBuilder
from service.store.database.database import Database
from workers.engine.engine import SessionEngine


def _do_nothing() -> None:
    pass


def _never() -> bool:
    return False


@dataclass(frozen=True)
class Dependencies:
    """The parts of a service that the HTTP side uses.

    `signer` signs artifacts, if the service has a key. `wake` makes the coordinator poll the queue.
    `sessions` has the remote sessions, if the server's owner offers them.
    `is_stopping` ends streams at shutdown. `is_coordinating` returns whether a coordinator runs
    jobs.
    """

    database: Database
    builder: KernelBuilder = field(default_factory=KernelBuilder)
    plots: Plots = field(default_factory=Plots)
    reader: TextReader = field(default_factory=shared_reader)
    signer: SigningKey | None = None
    sessions: SessionEngine | None = None
    wake: Callable[[], None] = _do_nothing
    is_stopping: Callable[[], bool] = _never
    is_coordinating: Callable[[], bool] = _never


async def _parts(request: Request) -> Dependencies:
    parts = request.app.state.parts
    assert isinstance(parts, Dependencies)
    return parts


PartsOf = Annotated[Dependencies, Depends(_parts)]
