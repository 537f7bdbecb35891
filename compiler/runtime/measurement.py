"""What measuring a candidate found: run times, or a typed error; never an exception."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any


class ErrorKind(StrEnum):
    """Why a candidate has no run time."""

    BUILD_ERROR = "build_error"  # the trace does not apply, or the program does not compile
    WRONG_RESULT = "wrong_result"  # it ran, and its output is not the oracle's
    TIMEOUT = "timeout"  # a phase outlasted its deadline
    CRASH = "crash"  # the process that ran it died of a signal
    OUT_OF_MEMORY = "out_of_memory"  # it asked for more than the memory limit
    DEVICE_ERROR = "device_error"  # the device refused it
    WORKER_LOST = "worker_lost"  # the worker vanished with it, several times


@dataclass(frozen=True, slots=True)
class Setting:
    """One way to run a library, and the seconds a run; none if it failed so."""

    name: str
    kernel_set: str
    secs: float | None

    @classmethod
    def from_json(cls, obj: dict[str, Any]) -> Setting:
        """Read what `asdict` made.

        Raises:
            ValueError: If a value is of another type, or out of its domain.
            TypeError: If a field is unknown or missing.
        """
        if not isinstance(obj, dict):
            raise ValueError(f"expected an object with a setting, not {type(obj).__name__}")
        found = cls(**obj)
        _text(found.name)
        _text(found.kernel_set)
        if found.secs is not None:
            _secs(found.secs)
        return found


@dataclass(frozen=True, slots=True)
class LibraryFacts:
    """How a library ran.

    Attributes:
        kernel_set: The code that it chose for this CPU, such as "Haswell"; empty if unknown.
        setting: The fastest of those that were tried, in words.
        tried: All settings.
        is_below_cpu: Whether no setting uses all of the CPU's instruction set.
        peak_flops: What the cores reach with float32 at most, in FLOP/s; none if unknown.
    """

    kernel_set: str = ""
    setting: str = ""
    tried: tuple[Setting, ...] = ()
    is_below_cpu: bool = False
    peak_flops: float | None = None

    @classmethod
    def from_json(cls, obj: dict[str, Any]) -> LibraryFacts:
        """Read what `asdict` made, possibly in a process that is not trusted.

        Raises:
            ValueError: If a value is of another type, or out of its domain.
            TypeError: If a field is unknown.
        """
        if not isinstance(obj, dict):
            raise ValueError(f"expected an object with a library, not {type(obj).__name__}")
        peak = obj.get("peak_flops")
        found = cls(
            **{
                **obj,
                "tried": tuple(map(Setting.from_json, obj.get("tried", ()))),
                "peak_flops": None if peak is None else _secs(peak),
            }
        )
        _text(found.kernel_set)
        _text(found.setting)
        if not isinstance(found.is_below_cpu, bool):
            raise ValueError(f"expected true or false, not {found.is_below_cpu!r:.50}")
        return found


@dataclass(frozen=True, slots=True)
class Measurement:
    """The outcome of one candidate on one worker.

    `run_secs` holds the samples, in seconds a run; it is empty exactly when `error` is set.
    `max_error` is the largest difference from the oracle, relative to the output's magnitude.
    `library` says how a library ran that was timed beside a candidate.
    """

    run_secs: tuple[float, ...] = ()
    error: ErrorKind | None = None
    message: str = ""
    max_error: float | None = None
    build_secs: float = 0.0
    check_secs: float = 0.0
    time_secs: float = 0.0
    worker: str = ""
    toolchain: str = ""
    library: LibraryFacts | None = None

    def __post_init__(self) -> None:
        """Hold the invariant: run times or an error, not both, not neither."""
        if bool(self.run_secs) == (self.error is not None):
            raise ValueError(
                f"a measurement has run times or an error: {self.run_secs}, {self.error}"
            )

    @property
    def ok(self) -> bool:
        """Tell whether the candidate ran and was right."""
        return self.error is None

    @property
    def best_secs(self) -> float:
        """The shortest sample in seconds; infinity for a failure."""
        return min(self.run_secs, default=float("inf"))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able object that `from_json` reads."""
        return asdict(self)

    @classmethod
    def from_json(cls, obj: dict[str, Any]) -> Measurement:
        """Read what `to_json` wrote, possibly in a process that is not trusted.

        Raises:
            ValueError: If a value is of another type, or out of its domain.
            TypeError: If a field is unknown.
        """
        if not isinstance(obj, dict):
            raise ValueError(f"expected an object with a measurement, not {type(obj).__name__}")
        read: dict[str, Any] = {name: _secs(obj[name]) for name in _DURATIONS if name in obj}
        read |= {name: _text(obj[name]) for name in _TEXTS if name in obj}
        run_secs, error, off = (obj.get(name) for name in ("run_secs", "error", "max_error"))
        if run_secs is not None and not isinstance(run_secs, list | tuple):
            raise ValueError(f"expected a list of seconds, not {type(run_secs).__name__}")
        read["run_secs"] = tuple(map(_secs, run_secs or ()))
        read["error"] = None if error is None else ErrorKind(error)
        read["max_error"] = None if off is None else _number(off)
        library = obj.get("library")
        read["library"] = None if library is None else LibraryFacts.from_json(library)
        return cls(**{**obj, **read})


STORED_FIELDS = tuple(each.name for each in fields(Measurement) if each.name != "library")
"""What is stored of a candidate's measurement: each is a column of the table of trials, a field of
a trial over HTTP, and one of its record. A library's facts are stored with its baseline."""

_DURATIONS = ("build_secs", "check_secs", "time_secs")
_TEXTS = ("message", "worker", "toolchain")
_MAX_CHARS = 1 << 16


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"expected a finite number, not {value!r:.50}")
    return float(value)


def _secs(value: object) -> float:
    if (secs := _number(value)) < 0:
        raise ValueError(f"expected seconds, not {secs}")
    return secs


def _text(value: object) -> str:
    if not isinstance(value, str) or len(value) > _MAX_CHARS:
        raise ValueError(f"expected a text of up to {_MAX_CHARS} characters, not {value!r:.50}")
    return value
