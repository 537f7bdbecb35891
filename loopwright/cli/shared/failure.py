"""Error messages and exit codes of commands."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from http.client import UNAUTHORIZED

from compiler.backends.error import BuildError
from compiler.executor.error import ArgumentError, PackageError
from compiler.graph.error import ModelError
from compiler.ir.verify.verify import VerifyError
from compiler.ops import OperatorError
from compiler.schedule.error import ScheduleError
from compiler.script import ScriptError
from compiler.target.error import TargetError
from loopwright.errors import (
    AccessDeniedError,
    InvalidAddressError,
    InvalidRequestError,
    LockError,
    LoopwrightError,
    ServerUnreachableError,
)
from loopwright.extras import MissingExtraError
from service.common.errors import ServiceError, UnprocessableError
from workers.child.supervisor import ChildStartError
from workers.engine.engine import EngineStartError
from workers.health.self_test import SelfTestError
from workers.libraries.library import LibraryError


class ExitCode(IntEnum):
    """How a command ended."""

    NO_RESULT = 1  # the job failed, no schedule is stored, or the server cannot do it
    USAGE = 2  # invalid arguments
    NO_SERVER = 3  # no server responds
    INTERRUPTED = 130  # Ctrl-C: 128 + SIGINT, as shells report it


class InputError(Exception):
    """An invalid argument, detected by a command."""


@dataclass(frozen=True)
class Failure:
    """An error message and an exit code."""

    message: str
    exit_code: ExitCode


_USAGE = (
    InputError,
    ScriptError,
    VerifyError,
    OperatorError,
    TargetError,
    InvalidRequestError,
    InvalidAddressError,
    AccessDeniedError,
    UnprocessableError,
    LibraryError,
    ModelError,
    PackageError,
    ArgumentError,
    LockError,
)
_NO_RESULT = (
    LoopwrightError,
    MissingExtraError,
    ServiceError,
    BuildError,
    ScheduleError,
    ChildStartError,
    SelfTestError,
    EngineStartError,
)


def explain(error: Exception) -> Failure | None:
    """Return the message and exit code of an error, or None if the error is a bug."""
    if isinstance(error, AccessDeniedError) and error.problem.status == UNAUTHORIZED:
        hint = "pass one with --token or in $LOOPWRIGHT_TOKEN; see: loopwright token --help"
        return Failure(f"{error}\n{hint}", ExitCode.USAGE)
    if isinstance(error, ModelError) and "shapes=" in error.advice:
        return Failure(f"{error}\nhere: --shape NAME=1x3x224x224", ExitCode.USAGE)
    if isinstance(error, ModelError) and "fixed_inputs=" in error.advice:
        return Failure(f"{error}\nhere: --fix NAME=FILE.npy", ExitCode.USAGE)
    if isinstance(error, _USAGE):
        return Failure(str(error), ExitCode.USAGE)
    if isinstance(error, ServerUnreachableError):
        hint = "" if error.advice else "\nto start a server: loopwright serve"
        return Failure(f"{error}{hint}", ExitCode.NO_SERVER)
    if isinstance(error, _NO_RESULT):
        return Failure(str(error), ExitCode.NO_RESULT)
    return None
