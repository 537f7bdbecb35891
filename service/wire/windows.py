"""Time windows: the hours of a day in which a job may be measured."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, time, tzinfo
from typing import Annotated, TypeAlias
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field

_FORM = re.compile(r"(\d\d:\d\d)-(\d\d:\d\d)(?: ([A-Za-z0-9_+/-]+))?")


@dataclass(frozen=True)
class Window:
    """Hours of each day, by the clock of a time zone; they may contain midnight."""

    opens: time
    closes: time
    zone: str

    @classmethod
    def parse(cls, text: str) -> Window:
        """Return a window of its text, such as `22:00-06:00 Europe/Berlin`.

        Raises:
            ValueError: If it has another form, is empty, or names an unknown time zone.
        """
        match = _FORM.fullmatch(text)
        try:
            if match is None:
                raise ValueError(text)
            opens, closes = (time.fromisoformat(clock) for clock in match.group(1, 2))
        except ValueError:
            raise ValueError(
                f"{text!r} is not a window: expected 22:00-06:00, or 22:00-06:00 Europe/Berlin "
                "with a time zone"
            ) from None
        if opens == closes:
            raise ValueError(f"the window {text!r} is empty: it opens and closes at {opens:%H:%M}")
        window = cls(opens, closes, match[3] or "UTC")
        window._tzinfo()
        return window

    def __str__(self) -> str:
        return f"{self.opens:%H:%M}-{self.closes:%H:%M} {self.zone}"

    def is_open(self, now: datetime) -> bool:
        """Return whether a moment is in the window; its end is not."""
        clock = now.astimezone(self._tzinfo()).time()
        if self.opens < self.closes:
            return self.opens <= clock < self.closes
        return clock >= self.opens or clock < self.closes

    def _tzinfo(self) -> tzinfo:
        if self.zone == "UTC":  # also on a host without the database of time zones
            return UTC
        try:
            return ZoneInfo(self.zone)
        except (OSError, ValueError, KeyError):
            raise ValueError(
                f"unknown time zone {self.zone!r}: expected a name such as UTC or Europe/Berlin"
            ) from None


def is_open(text: str | None, now: datetime) -> bool:
    """Return whether a moment is in the window of a text; None is any time."""
    return text is None or Window.parse(text).is_open(now)


def _canonical(text: str) -> str:
    return str(Window.parse(text))


WindowText: TypeAlias = Annotated[
    str, Field(max_length=100, examples=["22:00-06:00 Europe/Berlin"]), AfterValidator(_canonical)
]
