"""The request to a worker: measure candidates of one workload for one target.

Requests are values made of text and numbers, so that they cross any process as JSON.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class MeasureLimits:
    """The limits of one candidate.

    `memory_bytes` is address space in addition to that of the child itself and of the arrays of the
    workload; on a GPU, private writable memory. The clock of a deadline starts with its phase in
    the child, not when the candidate was queued.
    """

    build_timeout_secs: float = 20.0
    run_timeout_secs: float = 30.0  # for the first run, which checks the result, and for timing
    oracle_timeout_secs: float = 300.0  # the expected result, once a workload
    memory_bytes: int = 4 << 30

    def __post_init__(self) -> None:
        """Check that all limits are positive."""
        for field in fields(self):
            value = getattr(self, field.name)
            if not 0 < value < math.inf:
                raise ValueError(f"{field.name} is {value}: expected a number above 0")


@dataclass(frozen=True, slots=True)
class SeatRequest:
    """A contestant in a separate child: a candidate, or a library.

    Args:
        workload: The script text of the program.
        target: The name of the target.
        trace: The trace of the candidate, as JSON text; empty for a library.
        library: The name of the library; empty for a candidate.
        operator: The operator of the program as text (`compiler.ops.spec`), for a library.
        incumbent_secs: The best known time; a contestant that takes far longer is given up.
        limits: The limits of the contestant.
    """

    workload: str
    target: str
    trace: str = ""
    library: str = ""
    operator: str = ""
    incumbent_secs: float | None = None
    limits: MeasureLimits | None = None

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able object that `from_json` reads."""
        return asdict(self)

    @classmethod
    def from_json(cls, obj: dict[str, Any]) -> SeatRequest:
        """Read what `to_json` wrote.

        Raises:
            TypeError: If a field is unknown or missing.
            ValueError: If a value is out of its domain.
        """
        limits = obj.get("limits")
        return cls(**{**obj, "limits": None if limits is None else MeasureLimits(**limits)})


@dataclass(frozen=True, slots=True)
class MeasureRequest:
    """Candidates to build, check and time.

    Args:
        workload: The script text of the program.
        target: The name of the target, such as `cpu -mcpu=znver3 -num-cores=1`.
        traces: One trace a candidate, as JSON text.
        incumbent_secs: The best known time; a candidate that is clearly slower is timed briefly.
        limits: The limits of each candidate; by default those of the worker.
        request_id: The id of the request that submitted the job, for the worker's log.
    """

    workload: str
    target: str
    traces: tuple[str, ...]
    incumbent_secs: float | None = None
    limits: MeasureLimits | None = None
    request_id: str | None = None

    def __post_init__(self) -> None:
        """Convert any sequence of traces to a tuple."""
        object.__setattr__(self, "traces", tuple(self.traces))

    def part(self, indices: Sequence[int]) -> MeasureRequest:
        """Return the request for some of the candidates only."""
        return replace(self, traces=tuple(self.traces[i] for i in indices))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able object that `from_json` reads."""
        # Not `asdict`: it copies each trace.
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {**fields, "limits": None if self.limits is None else asdict(self.limits)}

    @classmethod
    def from_json(cls, obj: dict[str, Any]) -> MeasureRequest:
        """Read what `to_json` wrote.

        Raises:
            TypeError: If a field is unknown or missing.
            ValueError: If a value is out of its domain.
        """
        limits = obj.get("limits")
        return cls(**{**obj, "limits": None if limits is None else MeasureLimits(**limits)})
