"""The conditions under which a kernel was timed on a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

CacheState = Literal["cold", "warm"]


@dataclass(frozen=True, slots=True)
class TimingConditions:
    """The state of a GPU while a kernel was timed.

    Attributes:
        l2: Whether the L2 cache held the inputs of a run ("warm"), or not ("cold").
        sm_mhz: The clock of the multiprocessors after the last run; None if it is unknown.
        watts: The power that the GPU drew.
        celsius: Its temperature.
        slowed_by: Why its clock was lower than it could be, in words. A large product is slowed by
            the power cap as a rule; samples under another reason were repeated, and still had it.
    """

    l2: CacheState
    sm_mhz: int | None = None
    watts: float | None = None
    celsius: int | None = None
    slowed_by: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, obj: dict[str, Any]) -> TimingConditions:
        """Parse the object that `asdict` made, possibly from a process that is not trusted.

        Raises:
            ValueError: If a value is of another type, or out of its domain.
            TypeError: If a field is unknown or missing.
        """
        if not isinstance(obj, dict):
            raise ValueError(f"expected an object with conditions, not {type(obj).__name__}")
        conditions = cls(**{**obj, "slowed_by": tuple(obj.get("slowed_by", ()))})
        if conditions.l2 not in get_args(CacheState):
            raise ValueError(f"l2 is {conditions.l2!r:.50}: expected cold or warm")
        for name in _NUMBERS:
            _check_number(name, getattr(conditions, name))
        if len(conditions.slowed_by) > _MAX_REASONS:
            raise ValueError(f"slowed_by has more than {_MAX_REASONS} reasons")
        for reason in obj.get("slowed_by", ()):
            if not isinstance(reason, str) or len(reason) > _MAX_CHARS:
                raise ValueError(f"slowed_by has {reason!r:.50}: expected a short text")
        return conditions


_NUMBERS = ("sm_mhz", "watts", "celsius")
# Chosen bounds: NVML has about ten reasons, of a few words each.
_MAX_REASONS = 16
_MAX_CHARS = 64


def _check_number(name: str, value: object) -> None:
    if value is None:
        return
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        # The bound is that of 32-bit integers; it excludes infinities and NaN, too.
        or not -(1 << 31) < value < 1 << 31
    ):
        raise ValueError(f"{name} is {value!r:.50}: expected a number")
