"""The lines of a records file, one model for each kind; `docs/records.md` describes them.

The first line is a header, the last an end. Workloads, targets and groups precede the jobs that
refer to them, and each job precedes its trials, finals and baselines. So a file is written and read
without holding it in memory. Files of version 1 have no targets, groups or baselines. Files of
versions 1 and 2 use the earlier names of `max_trials`, `max_secs` and `trial_number`.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self, TypeAlias
from uuid import UUID

from pydantic import (
    AfterValidator,
    AliasChoices,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    model_validator,
)

from compiler.runtime.measurement import ErrorKind
from service.wire.models import JobState
from service.wire.requests import (
    MAX_SCRIPT_CHARS,
    MAX_SECONDS,
    MAX_WEIGHT,
    JobName,
    JobNote,
    StoredText,
    Strategy,
    Tags,
)
from service.wire.trial_limit import MAX_TRIALS
from tuner.finish.contest import Outcome
from tuner.loop.budget import StopReason

VERSION = 3


def _in_utc(at: datetime) -> datetime:
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise ValueError("the timestamp is out of range") from None


def _known(value: float | None) -> float | None:
    """Return None for NaN: not every database can store it, and it has the same meaning."""
    return None if value is None or math.isnan(value) else value


Name = Annotated[StoredText, Field(max_length=255)]
ShortName = Annotated[StoredText, Field(max_length=64)]
Moment = Annotated[AwareDatetime, AfterValidator(_in_utc)]
TargetName = Annotated[StoredText, Field(min_length=1, max_length=1000)]
Key = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Known = Annotated[float | None, AfterValidator(_known)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Secs = Amount
RunSecs = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Ratio = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]


class Line(BaseModel):
    """A line: an unknown field is refused, so that no data is lost silently."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, from_attributes=True, ser_json_inf_nan="strings"
    )


class Header(Line):
    """The first line: the format of the file."""

    kind: Literal["header"] = "header"
    format: Literal["loopwright-records"] = "loopwright-records"
    version: Annotated[int, Field(ge=1)] = VERSION
    loopwright: Name
    exported_at: Moment


class WorkloadLine(Line):
    """A workload; its key is the structural hash of the script."""

    kind: Literal["workload"] = "workload"
    key: Key
    script: Annotated[StoredText, Field(max_length=MAX_SCRIPT_CHARS)]
    created_at: Moment


class TargetLine(Line):
    """A target, and its peak performance as a worker measured it."""

    kind: Literal["target"] = "target"
    name: TargetName
    peak_flops: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None


class GroupLine(Line):
    """A trial limit that several jobs share."""

    kind: Literal["group"] = "group"
    id: UUID
    max_trials: Annotated[
        int, Field(ge=1, le=MAX_TRIALS, validation_alias=AliasChoices("max_trials", "trials"))
    ]
    created_at: Moment


class JobLine(Line):
    """A job: its request and its end. Its numbers are those of `GET /jobs/{id}`."""

    kind: Literal["job"] = "job"
    id: UUID
    workload_key: Key
    target: TargetName
    state: JobState
    max_trials: Annotated[
        int, Field(ge=1, le=MAX_TRIALS, validation_alias=AliasChoices("max_trials", "trials"))
    ]
    max_secs: Annotated[
        Annotated[float, Field(gt=0, le=MAX_SECONDS)] | None,
        Field(validation_alias=AliasChoices("max_secs", "seconds")),
    ]
    plateau: Annotated[int, Field(ge=1, le=MAX_TRIALS)] | None
    plateau_from: Count = 0
    seed: Count
    strategy: Strategy
    rules: tuple[Name, ...] | None
    priority: Annotated[int, Field(ge=-(2**31), le=2**31 - 1)] = 0
    owner: ShortName | None = None
    best_secs: RunSecs | None
    best_low_secs: RunSecs | None
    best_high_secs: RunSecs | None
    default_secs: RunSecs | None
    active_secs: Secs
    num_finishes: Count = 0
    created_at: Moment
    started_at: Moment | None
    finished_at: Moment | None
    stop_reason: StopReason | None
    error: StoredText | None
    group_id: UUID | None = None
    weight: Annotated[float, Field(gt=0, le=MAX_WEIGHT)] = 1.0
    name: JobName | None = None
    note: JobNote | None = None
    tags: Tags = ()


class ResourcesLine(BaseModel):
    """What a kernel uses of its device."""

    model_config = ConfigDict(extra="forbid", frozen=True, from_attributes=True)

    registers: Count
    stack_bytes: Count
    spill_bytes: Count
    shared_bytes: Count
    occupancy: Annotated[float, Field(ge=0, le=1)] | None
    bank_conflicts: Annotated[float, Field(ge=1, allow_inf_nan=False)] | None = None


class ConditionsLine(BaseModel):
    """The conditions under which a kernel was timed on a GPU."""

    model_config = ConfigDict(extra="forbid", frozen=True, from_attributes=True)

    l2: Literal["cold", "warm"]
    sm_mhz: Count | None
    watts: Amount | None
    celsius: Annotated[int, Field(ge=-(2**31), lt=2**31)] | None
    slowed_by: Annotated[tuple[ShortName, ...], Field(max_length=16)]


class TrialLine(Line):
    """A candidate of the job above it, its measurement, and the worker and tools that made it."""

    kind: Literal["trial"] = "trial"
    job_id: UUID
    number: Count
    candidate_key: Key
    round: Count
    sketch: Name
    trace: dict[str, Any]  # JSON, parsed and checked by `Trace.from_json`
    predicted: Known
    error: ErrorKind | None
    message: StoredText
    run_secs: tuple[RunSecs, ...]
    max_error: Known
    is_spot_checked: bool = False
    build_secs: Secs
    check_secs: Secs
    time_secs: Secs
    worker: Name
    toolchain: Name
    resources: ResourcesLine | None = None
    conditions: ConditionsLine | None = None
    created_at: Moment

    @model_validator(mode="after")
    def _has_times_or_an_error(self) -> Self:
        if bool(self.run_secs) == (self.error is not None):
            raise ValueError("a trial has either run_secs or an error")
        return self

    @property
    def best_secs(self) -> float | None:
        """Return the shortest time in seconds; None for a failure."""
        return min(self.run_secs, default=None)


TRIAL_COLUMNS = tuple(name for name in TrialLine.model_fields if name != "kind")


class FinalLine(Line):
    """A trial of the job above it that one of the job's final comparisons measured again."""

    kind: Literal["final"] = "final"
    job_id: UUID
    finish: Count
    number: Count
    outcome: Outcome
    run_secs: RunSecs | None
    low_secs: RunSecs | None
    high_secs: RunSecs | None
    rounds: tuple[tuple[RunSecs, ...], ...]
    error: ErrorKind | None
    message: StoredText
    workers: tuple[Name, ...]
    toolchain: Name
    created_at: Moment


class SettingLine(BaseModel):
    """A setting of a library, and its run time in seconds; null if it failed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[StoredText, Field(max_length=255)]
    kernel_set: ShortName
    secs: RunSecs | None


class BaselineLine(Line):
    """A library that was timed beside the trial that the last final comparison of the job kept."""

    kind: Literal["baseline"] = "baseline"
    job_id: UUID
    library: Annotated[StoredText, Field(min_length=1, max_length=32)]
    trial_number: Annotated[Count, Field(validation_alias=AliasChoices("trial_number", "number"))]
    version: Name
    run_secs: RunSecs
    kernel_secs: RunSecs
    speedup: Ratio
    low: Ratio | None
    high: Ratio | None
    worker: Name
    toolchain: Name
    kernel_set: ShortName | None = None
    setting: Annotated[StoredText, Field(max_length=255)] | None = None
    tried: tuple[SettingLine, ...] | None = None
    share_of_peak: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    is_below_cpu: bool = False
    created_at: Moment


class End(Line):
    """The last line: the number of lines between the header and this one."""

    kind: Literal["end"] = "end"
    num_lines: Annotated[int, Field(ge=0)]


AnyLine: TypeAlias = (
    Header
    | WorkloadLine
    | TargetLine
    | GroupLine
    | JobLine
    | TrialLine
    | FinalLine
    | BaselineLine
    | End
)
_ADAPTER: TypeAdapter[AnyLine] = TypeAdapter(Annotated[AnyLine, Field(discriminator="kind")])


def parse_line(text: bytes) -> AnyLine:
    """Read a line.

    Raises:
        ValidationError: If the text is no valid line.
    """
    return _ADAPTER.validate_json(text)


def written(line: Line) -> str:
    """Return the text of a line in a file; equal contents have equal texts."""
    return line.model_dump_json() + "\n"


def values(line: Line, *left_out: str) -> dict[str, Any]:
    """Return the fields of a line as values of columns."""
    return line.model_dump(exclude={"kind", *left_out})


def is_later(a: tuple[int, JobLine], b: tuple[int, JobLine]) -> bool:
    """Return whether version `a` of a job, with its number of trials, replaces version `b`.

    More trials win, then the later end, then the order of the lines, then a version with a name, a
    note or tags, then their order. The last rules make the result independent of the order of
    imports.
    """
    return _rank(*a) > _rank(*b)


def _rank(num_trials: int, job: JobLine) -> tuple[int, datetime, str, bool, str]:
    # The group of a job is not part of its history, and files of version 1 do not have it. Earlier
    # files have no names, notes and tags, and must not remove them.
    description = {"name", "note", "tags"}
    text = job.model_dump_json(exclude={"group_id", "weight", *description})
    has_texts = bool(job.name or job.note or job.tags)
    texts = job.model_dump_json(include=description)
    return num_trials, job.finished_at or job.created_at, text, has_texts, texts
