"""The error of a step of a schedule of tensor expressions that means nothing."""

from __future__ import annotations

from compiler.error_codes import ScheduleErrorCode
from compiler.user_errors import UsageError


class StageError(UsageError, ValueError):
    """A step does not fit the stages; the schedule is unchanged.

    What fits, but is not legal for the program, raises a `ScheduleError` once the schedule is
    lowered.

    Attributes:
        step: The step, such as "s[C].split".
        reason: Why it is refused.
        code: Why, as one of `compiler.error_codes.SCHEDULE_ERROR_CODES`.
    """

    def __init__(
        self, step: str, reason: str, code: ScheduleErrorCode = "invalid_argument"
    ) -> None:
        super().__init__(step, reason, code)
        self.step = step
        self.reason = reason
        self.code: ScheduleErrorCode = code

    def __str__(self) -> str:
        return f"{self.step}: {self.reason}"
