"""The outcome of measuring a candidate: run times, or a typed error; never an exception."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any

from compiler.runtime.conditions import TimingConditions
from compiler.runtime.resources import KernelResources


class ErrorKind(StrEnum):
    """The reason why a candidate has no run time."""

    BUILD_ERROR = "build_error"  # the trace does not apply, or the program does not compile
    WRONG_RESULT = "wrong_result"  # it ran, but its output differs from the oracle's
    TIMEOUT = "timeout"  # a phase exceeded its deadline
    CRASH = "crash"  # the process that ran it died of a signal
    OUT_OF_MEMORY = "out_of_memory"  # it exceeded the memory limit
    DEVICE_ERROR = "device_error"  # the device rejected it, or it faulted there
    WORKER_LOST = "worker_lost"  # its worker was lost several times


@dataclass(frozen=True, slots=True)
class Setting:
    """One configuration of a library, and its seconds a run; None if the run failed."""

    name: str
    kernel_set: str
    secs: float | None

    @classmethod
    def from_json(cls, obj: dict[str, Any]) -> Setting:
        """Parse the object that `asdict` made.

        Raises:
            ValueError: If a value is of another type, or out of its domain.
            TypeError: If a field is unknown or missing.
        """
        if not isinstance(obj, dict):
            raise ValueError(f"expected an object with a setting, not {type(obj).__name__}")
        setting = cls(**obj)
        _text(setting.name)
        _text(setting.kernel_set)
        if setting.secs is not None:
            _secs(setting.secs)
        return setting


@dataclass(frozen=True, slots=True)
class LibraryFacts:
    """The configuration in which a library ran.

    Attributes:
        kernel_set: The instruction set of its kernels, such as "Haswell"; empty if unknown.
        setting: The fastest setting, in words.
        tried: All settings that were measured.
        is_below_cpu: Whether no setting uses all of the CPU's instruction set.
        peak_flops: The measured float32 peak of the cores, in FLOP/s; None if unknown.
    """

    kernel_set: str = ""
    setting: str = ""
    tried: tuple[Setting, ...] = ()
    is_below_cpu: bool = False
    peak_flops: float | None = None

    @classmethod
    def from_json(cls, obj: dict[str, Any]) -> LibraryFacts:
        """Parse the object that `asdict` made, possibly from a process that is not trusted.

        Raises:
            ValueError: If a value is of another type, or out of its domain.
            TypeError: If a field is unknown.
        """
        if not isinstance(obj, dict):
            raise ValueError(f"expected an object with a library, not {type(obj).__name__}")
        peak = obj.get("peak_flops")
        facts = cls(
            **{
                **obj,
                "tried": tuple(map(Setting.from_json, obj.get("tried", ()))),
                "peak_flops": None if peak is None else _secs(peak),
            }
        )
        _text(facts.kernel_set)
        _text(facts.setting)
        _flag(facts.is_below_cpu)
        return facts


@dataclass(frozen=True, slots=True)
class Measurement:
    """The outcome of one candidate on one worker.

    Attributes:
        run_secs: The samples, in seconds a run; empty exactly if `error` is set.
        error: Why there are no samples.
        message: The error in words.
        max_error: The largest difference from the oracle, relative to the output's magnitude.
        is_spot_checked: Whether some rows and sums of a large result were compared, not all of it.
        build_secs, check_secs, time_secs: The duration of each phase.
        worker: The worker that measured.
        toolchain: The versions of the code generator and of its compiler.
        resources: What the kernel uses of its device; None for a CPU, and if the build failed.
        conditions: How it was timed on a device; None for a CPU, an emulated GPU, and a failure.
        library: How a library ran, if this is the measurement of a baseline.
    """

    run_secs: tuple[float, ...] = ()
    error: ErrorKind | None = None
    message: str = ""
    max_error: float | None = None
    is_spot_checked: bool = False
    build_secs: float = 0.0
    check_secs: float = 0.0
    time_secs: float = 0.0
    worker: str = ""
    toolchain: str = ""
    resources: KernelResources | None = None
    conditions: TimingConditions | None = None
    library: LibraryFacts | None = None

    def __post_init__(self) -> None:
        """Check that there are either run times or an error."""
        if bool(self.run_secs) == (self.error is not None):
            raise ValueError(
                f"a measurement has run times or an error: {self.run_secs}, {self.error}"
            )

    @property
    def ok(self) -> bool:
        """Return whether the candidate ran and its result was correct."""
        return self.error is None

    @property
    def best_secs(self) -> float:
        """Return the shortest sample in seconds; infinity for a failure."""
        return min(self.run_secs, default=float("inf"))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able object that `from_json` reads."""
        return asdict(self)

    @classmethod
    def from_json(cls, obj: dict[str, Any]) -> Measurement:
        """Parse the object of `to_json`, possibly from a process that is not trusted.

        Raises:
            ValueError: If a value is of another type, or out of its domain.
            TypeError: If a field is unknown.
        """
        if not isinstance(obj, dict):
            raise ValueError(f"expected an object with a measurement, not {type(obj).__name__}")
        fields: dict[str, Any] = {name: _secs(obj[name]) for name in _DURATIONS if name in obj}
        fields |= {name: _text(obj[name]) for name in _TEXTS if name in obj}
        run_secs, error, max_error = (obj.get(name) for name in ("run_secs", "error", "max_error"))
        if run_secs is not None and not isinstance(run_secs, list | tuple):
            raise ValueError(f"expected a list of seconds, not {type(run_secs).__name__}")
        fields["run_secs"] = tuple(map(_secs, run_secs or ()))
        fields["error"] = None if error is None else ErrorKind(error)
        fields["max_error"] = None if max_error is None else _number(max_error)
        fields["is_spot_checked"] = _flag(obj.get("is_spot_checked", False))
        resources, conditions, library = map(obj.get, ("resources", "conditions", "library"))
        fields["resources"] = None if resources is None else KernelResources.from_json(resources)
        fields["conditions"] = (
            None if conditions is None else TimingConditions.from_json(conditions)
        )
        fields["library"] = None if library is None else LibraryFacts.from_json(library)
        return cls(**{**obj, **fields})


STORED_FIELDS = tuple(each.name for each in fields(Measurement) if each.name != "library")
"""The stored fields of a candidate's measurement. Each is a column of the table of trials, a field
of a trial over HTTP, and a field of its record. A library's facts are stored with its baseline.
"""

_DURATIONS = ("build_secs", "check_secs", "time_secs")
_TEXTS = ("message", "worker", "toolchain")
# A chosen bound: an error text of a worker may hold the output of a compiler.
_MAX_CHARS = 1 << 16


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"expected a finite number, not {value!r:.50}")
    return float(value)


def _secs(value: object) -> float:
    if (secs := _number(value)) < 0:
        raise ValueError(f"expected seconds, not {secs}")
    return secs


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, not {value!r:.50}")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str) or len(value) > _MAX_CHARS:
        raise ValueError(f"expected a text of up to {_MAX_CHARS} characters, not {value!r:.50}")
    return value
