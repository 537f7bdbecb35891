"""Errors of schedules: a primitive that is refused, and a trace that does not make sense.

ScheduleError   a precondition does not hold; the program is unchanged; search may catch it
TraceError      a trace read from outside is malformed
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from compiler.ir.core.program import PrimFunc
from compiler.ir.text.printer import mark

Detail: TypeAlias = Literal["detail", "fast", "none"]
"""How much an error says: the program with the place marked, the reason alone, or nothing."""


class ScheduleError(Exception):
    """A schedule primitive was refused; the program is unchanged.

    Search catches this to drop a candidate, so it is never raised for a bug of our own: those
    are assertions.
    """

    def __init__(
        self,
        primitive: str,
        reason: str,
        program: PrimFunc,
        at: object,
        detail: Detail = "detail",
    ) -> None:
        super().__init__(primitive, reason, program, at)
        self.primitive = primitive
        self.reason = reason
        self.program = program
        self.at = at
        self.detail = detail

    def __str__(self) -> str:
        """Render the reason over the program, its place marked with `>`."""
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


Refuse: TypeAlias = Callable[[str, object], ScheduleError]
"""Makes the error of one primitive on one program from a reason and a place."""


def refusal(primitive: str, program: PrimFunc) -> Refuse:
    """Return the maker of the errors of `primitive` on `program`."""

    def refuse(reason: str, at: object) -> ScheduleError:
        return ScheduleError(primitive, reason, program, at)

    return refuse
