"""Build kernels in child processes that can be killed, a limited number at a time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from threading import BoundedSemaphore
from typing import Any

from service.common.errors import BuildFailedError, ServiceBusyError, UnprocessableError
from service.schedules import kernel_child


@dataclass(frozen=True)
class KernelRequest:
    """A program, the trace to apply to it, and the target."""

    script: str
    trace: Mapping[str, Any]
    target: str


@dataclass(frozen=True)
class ModuleRequest:
    """A module of a function and those that it calls, and the target."""

    module: str
    target: str


class KernelBuilder:
    """Builds kernels, each in its own process.

    Args:
        timeout_secs: Time limit of a build.
        memory_bytes: Limit of the address space of a build.
        at_once: How many builds may run concurrently.
        waiting: How many builds may wait. Each holds a thread, and requests that only read need
            threads too.
    """

    def __init__(
        self,
        *,
        timeout_secs: float = 60.0,
        memory_bytes: int = 4 << 30,
        at_once: int = 2,
        waiting: int = 14,
    ) -> None:
        self._timeout_secs = timeout_secs
        self._memory_bytes = memory_bytes
        self._turns = BoundedSemaphore(at_once)
        self._places = BoundedSemaphore(at_once + waiting)

    def build(self, request: KernelRequest) -> bytes:
        """Return the bytes of the artifact.

        Raises:
            UnprocessableError: If the compiler refuses the program.
            BuildFailedError: If the compiler crashes, or takes too long.
            ServiceBusyError: If too many builds wait.
        """
        return self._run(request, "artifact")

    def build_module(self, request: ModuleRequest) -> bytes:
        """Return the bytes of the artifact of a module.

        Raises:
            UnprocessableError: If the compiler refuses the module.
            BuildFailedError: If the compiler crashes, or takes too long.
            ServiceBusyError: If too many builds wait.
        """
        return self._run(request, "module")

    def show(self, request: KernelRequest) -> dict[str, str]:
        """Return the texts of the stages of a build: `trace`, `after`, `llvm`, `assembly`.

        Raises:
            UnprocessableError: If the compiler refuses the program.
            BuildFailedError: If the compiler crashes, or takes too long.
            ServiceBusyError: If too many builds wait.
        """
        texts: dict[str, str] = json.loads(self._run(request, "texts"))
        return texts

    def _run(self, request: KernelRequest | ModuleRequest, output: str) -> bytes:
        if not self._places.acquire(blocking=False):
            raise ServiceBusyError("too many kernels in the build queue; try again in a moment")
        try:
            return self._run_child(request, output)
        finally:
            self._places.release()

    def _run_child(self, request: KernelRequest | ModuleRequest, output: str) -> bytes:
        text = json.dumps(
            {
                "output": output,
                **asdict(request),
                "memory_bytes": self._memory_bytes,
                "parent": os.getpid(),
            }
        )
        with (
            self._turns,
            subprocess.Popen(
                [sys.executable, "-P", "-m", kernel_child.__name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                # The child has our module path, without the working directory.
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            ) as child,
        ):
            try:
                artifact, reason = child.communicate(text.encode(), self._timeout_secs)
            except subprocess.TimeoutExpired:
                raise BuildFailedError(
                    f"cannot build the kernel: it took longer than {self._timeout_secs:g} s"
                ) from None
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
        if child.returncode == 0:
            return artifact
        words = reason.decode(errors="replace").strip()
        if child.returncode == kernel_child.REFUSED:
            raise UnprocessableError(f"cannot build the kernel: {words}")
        raise BuildFailedError(
            f"cannot build the kernel: the compiler {_death(child.returncode)}: "
            f"{words.splitlines()[-1] if words else 'no message'}"
        )


def _death(code: int) -> str:
    return f"died of {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
