"""Error messages and exit codes of commands."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from http.client import UNAUTHORIZED

from compiler.executor.error import ArgumentError, PackageError
from compiler.user_errors import NoResultError, UsageError
from loopwright.errors import AccessDeniedError, NotFoundError, ServerUnreachableError


class ExitCode(IntEnum):
    """How a command ended."""

    NO_RESULT = 1  # the job failed, no schedule is stored, or the server cannot do it
    USAGE = 2  # invalid arguments
    NO_SERVER = 3  # no server responds
    INTERRUPTED = 130  # Ctrl-C: 128 + SIGINT, as shells report it


class InputError(UsageError):
    """An invalid argument, detected by a command."""


@dataclass(frozen=True)
class Failure:
    """An error message and an exit code."""

    message: str
    exit_code: ExitCode


def explain(error: Exception) -> Failure | None:
    """Return the message and exit code of an error, or None if the error is a bug."""
    if isinstance(error, AccessDeniedError) and error.problem.status == UNAUTHORIZED:
        hint = "pass one with --token or in $LOOPWRIGHT_TOKEN; see: loopwright token --help"
        return Failure(f"{error}\n{hint}", ExitCode.USAGE)
    # Packages run without the compiler, so their errors have none of its roots.
    if isinstance(error, UsageError | ArgumentError | PackageError):
        return Failure(f"{error}{_option_for(error)}", ExitCode.USAGE)
    if isinstance(error, ServerUnreachableError):
        hint = "" if error.advice else "\nto start a server: loopwright serve"
        return Failure(f"{error}{hint}", ExitCode.NO_SERVER)
    if isinstance(error, NoResultError):
        hint = "\nhere: `loopwright tune`, or `--nearest` of `loopwright best` and `prefetch`"
        is_missing = isinstance(error, NotFoundError) and "(`nearest`)" in str(error)
        return Failure(f"{error}{hint if is_missing else ''}", ExitCode.NO_RESULT)
    return None


def _option_for(error: Exception) -> str:
    """Return the options of commands that stand for the arguments that an advice names."""
    advice = error.advice if isinstance(error, UsageError) else ""
    if "shapes=" in advice:
        return "\nhere: --shape NAME=1x3x224x224"
    if "fixed_inputs=" in advice:
        return "\nhere: --fix NAME=FILE.npy"
    return ""
