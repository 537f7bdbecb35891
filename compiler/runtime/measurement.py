"""What measuring a candidate found: run times, or a typed error; never an exception."""

from __future__ import annotations

from dataclasses import asdict, dataclass
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
class Measurement:
    """The outcome of one candidate on one worker.

    `run_secs` holds the samples, in seconds a run; it is empty exactly when `error` is set.
    `max_error` is the largest difference from the oracle, relative to the output's magnitude.
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
        """Read what `to_json` wrote.

        Raises:
            ValueError: If a value is out of its domain.
            TypeError: If a field is unknown.
        """
        error = obj.get("error")
        return cls(
            **{
                **obj,
                "run_secs": tuple(float(s) for s in obj.get("run_secs", ())),
                "error": None if error is None else ErrorKind(error),
            }
        )
