"""Errors of schedules: a refused primitive, and a malformed trace.

ScheduleError   a precondition does not hold; the program is unchanged; search may catch it
TraceError      a trace from outside is malformed
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

from compiler.error_codes import ScheduleErrorCode
from compiler.ir.core.program import PrimFunc
from compiler.ir.text.printer import mark
from compiler.user_errors import NoResultError

Detail: TypeAlias = Literal["detail", "fast", "none"]
"""The detail of an error: the program with the node marked, the reason alone, or nothing."""


class ScheduleError(NoResultError):
    """A schedule primitive was refused; the program is unchanged.

    Search catches this to drop a candidate, so a bug in this project never raises it, but fails an
    assertion.

    Attributes:
        primitive: The primitive that was refused.
        reason: Why, in words.
        code: Why, as one of `compiler.error_codes.SCHEDULE_ERROR_CODES`.
        program: The program.
        at: The node of the program that the reason is about.
        detail: The amount of this that `str` shows.
    """

    def __init__(
        self,
        primitive: str,
        reason: str,
        program: PrimFunc,
        at: object,
        code: ScheduleErrorCode,
        *,
        detail: Detail = "detail",
    ) -> None:
        super().__init__(primitive, reason, program, at, code)
        self.primitive = primitive
        self.reason = reason
        self.program = program
        self.at = at
        self.code: ScheduleErrorCode = code
        self.detail = detail

    def __str__(self) -> str:
        """Render the reason and the program, with the node marked by `>`."""
        if self.detail == "none":
            return f"{self.primitive}: refused"
        if self.detail == "fast":
            return f"{self.primitive}: {self.reason}"
        return f"{self.primitive}: {self.reason}\n{mark(self.program, self.at)}"


class TraceError(ValueError):
    """A trace is malformed: `where` is a path into its JSON, such as `instructions[3].inputs`."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(where, reason)
        self.where = where
        self.reason = reason

    def __str__(self) -> str:
        return f"trace: {self.where}: {self.reason}"


class Refuse(Protocol):
    """Makes the error of one primitive on one program."""

    def __call__(self, reason: str, at: object, code: ScheduleErrorCode, /) -> ScheduleError:
        """Return the error for a reason, the part of the program it is about, and its code."""
        ...


def refusal(primitive: str, program: PrimFunc) -> Refuse:
    """Return the maker of the errors of `primitive` on `program`."""

    def refuse(reason: str, at: object, code: ScheduleErrorCode, /) -> ScheduleError:
        return ScheduleError(primitive, reason, program, at, code)

    return refuse
