"""Parse programs in child processes: a large one takes seconds and must not delay others.

Python runs one thread at a time, so a thread that parses would block every other request of its
process. A child can also be killed, and has its own limits of time and memory.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from service.common.errors import Flaw, UnprocessableError
from service.intake.fair_turns import FairTurns

CALLER = "loopwright.caller"
"""The key of the token's name in an ASGI scope."""
CHILD = "service.intake.text_reader_child"
MODEL_CHILD = "service.intake.model_reader_child"
CPU_SECS = 10
"""Processor time of a child for one text: unlike elapsed time, it does not depend on the load.
Chosen.
"""
WALL_SECS = 60.0
"""Time limit for one text: several times `CPU_SECS`, because children share the cores. Chosen.
A text with more processor time has proportionally more.
"""
MODEL_CPU_SECS = 60
"""Processor time of a child for one model, which has up to thousands of programs. Chosen."""
MEMORY_BYTES = 4 << 30
"""Limit of a child's address space, of which Python and its libraries reserve a part. Chosen."""


class TextReader:
    """A pool of child processes that parse texts, started on demand.

    Safe to use from several threads.

    Args:
        at_once: The maximum number of children.
        waiting: How many requests may wait for a child; one caller may have three quarters of them.
        cpu_secs: Limit of the processor time of a text.
        module: What a child runs.
        is_disposable: Whether each text gets a child of its own, which ends with it.
    """

    def __init__(
        self,
        at_once: int = 2,
        waiting: int = 16,
        cpu_secs: int = CPU_SECS,
        *,
        module: str = CHILD,
        is_disposable: bool = False,
    ) -> None:
        self._turns = FairTurns(at_once, waiting=waiting, waiting_of_one=max(1, waiting * 3 // 4))
        self._cpu_secs = cpu_secs
        self._wall_secs = max(WALL_SECS, WALL_SECS / CPU_SECS * cpu_secs)
        self._module = module
        self._is_disposable = is_disposable
        self._lock = Lock()
        self._idle: list[_Child] = []

    def ask(self, caller: str, task: str, arguments: Mapping[str, Any]) -> Any:
        """Run a request in a child, and return its JSON answer.

        Raises:
            UnprocessableError: If the text is refused, or takes too much time or memory.
            ServiceBusyError: If too many requests wait.
        """
        question = json.dumps({"task": task, "arguments": arguments, "cpu_secs": self._cpu_secs})
        with self._turns.turn(caller):
            try:
                answer = json.loads(self._answer(question.encode()))
            except _ChildDiedError as error:
                detail, pointer = _refusal(task, error)
                raise UnprocessableError(detail, Flaw(detail, pointer)) from None
        if "refused" in answer:
            flaws = (Flaw(**flaw) for flaw in answer["flaws"])
            raise UnprocessableError(answer["refused"], *flaws)
        if "failed" in answer:
            raise RuntimeError(f"a child that reads texts failed:\n{answer['failed']}")
        return answer["done"]

    def _answer(self, question: bytes) -> bytes:
        with self._lock:
            child = self._idle.pop() if self._idle else None
        if child is not None:
            try:
                return self._ask(child, question)
            except _ChildDiedError as error:
                # The child may have died earlier, for another reason.
                if error.is_the_text_s_doing:
                    raise
        return self._ask(_Child(self._module, self._wall_secs), question)

    def _ask(self, child: _Child, question: bytes) -> bytes:
        answer = child.ask(question)
        if self._is_disposable:
            child.close()
            return answer
        with self._lock:
            self._idle.append(child)
        return answer

    def close(self) -> None:
        """End the children; a later request starts new ones."""
        with self._lock:
            children, self._idle = self._idle, []
        for child in children:
            child.close()


@cache
def shared_reader() -> TextReader:
    """Return the reader of this process, which all applications share."""
    reader = TextReader()
    atexit.register(reader.close)
    return reader


@cache
def shared_model_reader() -> TextReader:
    """Return the reader of models of this process: one at a time, each in a child of its own."""
    reader = TextReader(1, 4, MODEL_CPU_SECS, module=MODEL_CHILD, is_disposable=True)
    atexit.register(reader.close)
    return reader


@dataclass(frozen=True)
class ChildReader:
    """The reader of a request's texts, and its caller."""

    reader: TextReader
    caller: str

    def ask(self, task: str, **arguments: Any) -> Any:
        """Run a request in a child: see `TextReader.ask`."""
        return self.reader.ask(self.caller, task, arguments)


_child_reader: ContextVar[ChildReader | None] = ContextVar("child_reader", default=None)


def child_reader() -> ChildReader | None:
    """Return the reader of the current request; None to read texts in this process."""
    return _child_reader.get()


@contextmanager
def reading_in_children(reader: TextReader, caller: str) -> Iterator[None]:
    """Make the body, and all that it awaits, read texts in child processes."""
    token = _child_reader.set(ChildReader(reader, caller))
    try:
        yield
    finally:
        _child_reader.reset(token)


class ReadInChildren:
    """Makes requests read texts in child processes, with fair turns between tokens or addresses."""

    def __init__(self, app: ASGIApp, reader: TextReader) -> None:
        self._app = app
        self._reader = reader

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        client = scope.get("client")
        caller = scope.get(CALLER) or (client[0] if client else "")
        with reading_in_children(self._reader, caller):
            await self._app(scope, receive, send)


class _ChildDiedError(Exception):
    """A child ended during a text; holds the reason, and whether the text certainly caused it."""

    def __init__(self, reason: str, *, is_the_text_s_doing: bool) -> None:
        super().__init__(reason)
        self.is_the_text_s_doing = is_the_text_s_doing


class _Child:
    """A process that answers one request after the other, over a pair of sockets."""

    def __init__(self, module: str, wall_secs: float) -> None:
        self._wall_secs = wall_secs
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", module, str(MEMORY_BYTES)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                start_new_session=True,
                # The child has our module path, without the working directory.
                env={**_child_environment(), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        ours.settimeout(wall_secs)
        self._socket = ours
        self._answers = ours.makefile("rb")

    def ask(self, question: bytes) -> bytes:
        try:
            self._socket.sendall(question + b"\n")
            answer = self._answers.readline()
        except TimeoutError:
            self.close()
            reason = f"it takes longer than {self._wall_secs:g} s"
            raise _ChildDiedError(reason, is_the_text_s_doing=True) from None
        except OSError:
            answer = b""
        if answer.endswith(b"\n"):
            return answer
        self._process.wait()  # it has closed its socket, so it ends
        self.close()
        code = self._process.returncode
        raise _ChildDiedError(_death(code), is_the_text_s_doing=code == -signal.SIGXCPU)

    def close(self) -> None:
        # It is idle, or its work is no longer needed. An earlier cause of death is kept.
        self._answers.close()
        self._socket.close()
        self._process.kill()
        self._process.wait()


def _refusal(task: str, error: _ChildDiedError) -> tuple[str, str]:
    """Return the message about a text whose child died, and a JSON pointer to that text."""
    if task == "model":
        return f"the model cannot be read: {error}; split it into smaller models", "/model"
    return f"the program cannot be parsed: {error}; split it into smaller programs", "/workload"


def _death(code: int) -> str:
    if code == -signal.SIGXCPU:
        return "it takes too much processor time"
    return f"the process that reads it {'was killed' if code < 0 else f'ended with code {code}'}"


def _child_environment() -> dict[str, str]:
    """Return the environment without secrets."""
    return {name: text for name, text in os.environ.items() if "TOKEN" not in name}
