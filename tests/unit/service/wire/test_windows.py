"""Time windows: their texts and their hours."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from service.wire.windows import Window, is_open


def at(hour: int, minute: int = 0, *, month: int = 1, day: int = 15) -> datetime:
    return datetime(2026, month, day, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "open_hours"),
    [
        ("09:00-17:00", range(9, 17)),
        ("22:00-06:00 UTC", [*range(6), 22, 23]),
        ("00:00-12:00", range(12)),
        ("23:00-00:00", [23]),
        ("09:00-17:00 Asia/Kolkata", range(4, 12)),  # UTC+5:30: from 3:30 to 11:30
        ("22:00-02:00 America/New_York", range(3, 7)),  # UTC-5
    ],
)
def test_a_window_has_its_hours(text: str, open_hours: list[int]) -> None:
    assert [hour for hour in range(24) if Window.parse(text).is_open(at(hour))] == list(open_hours)


def test_the_beginning_belongs_to_a_window_and_the_end_does_not() -> None:
    window = Window.parse("22:30-06:15")
    assert [window.is_open(at(*t)) for t in ((22, 29), (22, 30), (6, 14), (6, 15))] == [
        *(False, True, True, False)
    ]


def test_a_window_follows_the_summer_time_of_its_zone() -> None:
    window = Window.parse("22:00-06:00 Europe/Berlin")
    assert [window.is_open(at(hour, 30)) for hour in (4, 5, 20, 21)] == [True, False, False, True]
    assert [window.is_open(at(hour, 30, month=7)) for hour in (3, 4, 19, 20)] == [
        *(True, False, False, True)
    ]
    # On 29 March 2026 clocks go from 2:00 to 3:00, at 1:00 UTC.
    night = Window.parse("02:00-03:00 Europe/Berlin")
    assert not any(night.is_open(at(hour, 30, month=3, day=29)) for hour in range(24))


def test_a_text_without_a_window_is_always_open() -> None:
    assert is_open(None, at(3))


@pytest.mark.parametrize("text", ["22:00-06:00", "22:00-06:00 Europe/Berlin"])
def test_a_window_is_read_from_its_own_text(text: str) -> None:
    window = Window.parse(text)
    assert Window.parse(str(window)) == window


@pytest.mark.parametrize(
    "text",
    [
        *("", "22-06", "22:00", "24:00-06:00", "22:60-06:00", "22:00-22:00", "22:00 - 06:00"),
        *("22:00-06:00 Nowhere/City", "22:00-06:00 ../../etc/passwd", "22:00-06:00 /etc/localtime"),
        *("22:00-06:00 Europe", "22:00-06:00  UTC", "22:00-06:00 UTC\n"),
    ],
)
def test_what_is_no_window_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"window|time zone"):
        Window.parse(text)
