"""The query parameters of each list: filters, order, page. An unknown parameter is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from compiler.target.target import with_own_kind
from service.common.paging import DEFAULT_LIMIT, MAX_LIMIT, ListRequest
from service.wire.models import JobState
from service.wire.readings import TrialOutcome
from service.wire.requests import MAX_TAGS, Tag
from service.wire.server_models import WorkerState

MAX_NUMBER = 2**31 - 1
"""The largest trial number: that of a 32-bit column."""
MAX_POINTS = 20_000
"""Points of a plot: more than the width of a screen in pixels. Chosen."""
MAX_NUMBERS = 64
"""Maximum number of values of one filter. Chosen."""


class ListQuery(BaseModel):
    """The page of a list: its order, its cursor and its size."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    limit: int = Field(default=DEFAULT_LIMIT, ge=1, le=MAX_LIMIT)
    cursor: str | None = Field(
        default=None,
        max_length=2000,
        description="`next_cursor` of the previous page; use the same order and filters",
    )

    def asked(self, name: str, sort: str) -> ListRequest:
        """Return the request for a page of the list `name`."""
        filters = self.model_dump(mode="json", exclude={"limit", "cursor", "sort"})
        return ListRequest(sort, {"list": name, **filters}, self.limit, self.cursor)


def _text(description: str) -> Any:
    return Field(default=None, min_length=1, max_length=1000, description=description)


TargetPart: TypeAlias = Annotated[str, AfterValidator(with_own_kind)]
_TARGET_PART = "a part of the target's text, such as `znver3`; `llvm` is a synonym of `cpu`"


class JobsQuery(ListQuery):
    """Filters and order of jobs."""

    state: list[JobState] = Field(default=[], max_length=MAX_NUMBERS)
    operator: str | None = _text("the name of the workload, such as `matmul`")
    target: TargetPart | None = _text(_TARGET_PART)
    owner: str | None = _text("the name of the token that submitted it")
    text: str | None = _text(
        "a part of the workload's name, the target, the owner, the id, the job's name, note or "
        "tags, or extents such as `512 x 512`"
    )
    tag: list[Tag] = Field(
        default=[], max_length=MAX_TAGS, description="tags, all of which the job has"
    )
    group: UUID | None = Field(default=None, description="the id of a group of jobs")
    sort: Literal[
        "-created_at",
        "created_at",
        "best_secs",
        "-best_secs",
        "num_measured",
        "-num_measured",
        "priority",
        "-priority",
        "workload_name",
        "-workload_name",
    ] = "-created_at"


class TrialsQuery(ListQuery):
    """Filters and order of a job's trials."""

    outcome: list[TrialOutcome] = Field(default=[], max_length=MAX_NUMBERS)
    sketch: str | None = Field(default=None, min_length=1, max_length=255)
    from_number: int = Field(default=0, ge=0, le=MAX_NUMBER)
    to_number: int | None = Field(default=None, ge=0, le=MAX_NUMBER, description="included")
    sort: Literal["number", "-number", "best_secs", "-best_secs"] = "number"


class SchedulesQuery(ListQuery):
    """Filters and order of best schedules."""

    operator: str | None = _text("the name of the workload, such as `matmul`")
    target: TargetPart | None = _text(_TARGET_PART)
    text: str | None = _text(
        "a part of the workload's name, its key or the target, or extents such as `512 x 512`"
    )
    sort: Literal[
        "-created_at",
        "created_at",
        "run_secs",
        "-run_secs",
        "workload_name",
        "-workload_name",
        "speedup",
        "-speedup",
        "flops_per_sec",
        "-flops_per_sec",
        "baseline",
        "-baseline",
    ] = "-created_at"


class WorkloadsQuery(ListQuery):
    """Filters and order of workloads."""

    operator: str | None = _text("the name of the workload, such as `matmul`")
    operator_key: str | None = Field(default=None, min_length=1, max_length=64)
    text: str | None = _text("a part of its name or key, or extents such as `512 x 512`")
    sort: Literal["-created_at", "created_at", "name", "-name", "flops", "-flops"] = "-created_at"


class SubjectsQuery(ListQuery):
    """Filters and order of what is tuned as the jobs of a group."""

    target: TargetPart | None = _text(_TARGET_PART)
    owner: str | None = _text("the name of the token that submitted it")
    text: str | None = _text("a part of its name or of the target")
    sort: Literal["-created_at", "created_at", "name", "-name"] = "-created_at"


class ModelsQuery(SubjectsQuery):
    """Filters and order of models."""


class ShapesQuery(SubjectsQuery):
    """Filters and order of searches over ranges."""


class TargetsQuery(ListQuery):
    """Filters and order of targets."""

    label: str | None = _text("the kind of target, such as `cpu/znver3`")
    text: str | None = _text("a part of its name")
    sort: Literal["name", "-name", "created_at", "-created_at"] = "name"


class CostModelsQuery(ListQuery):
    """Filters and order of cost models."""

    label: str | None = _text("the kind of target, such as `cpu/znver3`")
    job: UUID | None = Field(default=None, description="the job that trained the model")
    of_store: bool | None = Field(
        default=None, description="only global models, or only models of one job"
    )
    sort: Literal["-created_at", "created_at", "trained_on", "-trained_on"] = "-created_at"


class WorkersQuery(ListQuery):
    """Filters of workers, which are sorted by name."""

    label: str | None = _text("the kind of target that it serves, such as `cpu/znver3`")
    host: str | None = _text("the name of its host")
    state: list[WorkerState] = Field(default=[], max_length=MAX_NUMBERS)
    sort: Literal["name"] = "name"


class TokensQuery(ListQuery):
    """Filters and order of tokens."""

    text: str | None = _text("a part of its name")
    revoked: bool | None = Field(default=None, description="whether it was revoked")
    sort: Literal["-created_at", "created_at", "name", "-name"] = "-created_at"


class CurveQuery(BaseModel):
    """The resolution of a curve."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    points: int = Field(
        default=1000, ge=2, le=MAX_POINTS, description="the maximum number of items"
    )


class ColumnsQuery(BaseModel):
    """A range of a job's trials, and their maximum number."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    points: int = Field(
        default=5000, ge=2, le=MAX_POINTS, description="the maximum number of items"
    )
    from_number: int = Field(default=0, ge=0, le=MAX_NUMBER)
    to_number: int | None = Field(default=None, ge=0, le=MAX_NUMBER, description="included")


def _end(description: str) -> Any:
    return Field(default=None, allow_inf_nan=False, description=description)


_RENAMED = {
    "from_place": "from_predicted_percentile",
    "to_place": "to_predicted_percentile",
    "from_speed": "from_relative_speed",
    "to_speed": "to_relative_speed",
}


def _earlier(name: str) -> Any:
    return Field(default=None, description=f"the name of {name} before 0.2", deprecated=True)


class SelectionQuery(BaseModel):
    """Conditions on a job's trials, their order, and the part to return."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    from_number: int = Field(default=0, ge=0, le=MAX_NUMBER)
    to_number: int | None = Field(default=None, ge=0, le=MAX_NUMBER, description="included")
    sketch: str | None = Field(default=None, min_length=1, max_length=255)
    outcome: TrialOutcome | None = None
    from_secs: float | None = _end("the minimum run time")
    to_secs: float | None = _end("the maximum run time (inclusive)")
    from_predicted_percentile: float | None = _end(
        "the minimum predicted percentile within its round"
    )
    to_predicted_percentile: float | None = _end("the maximum (inclusive)")
    from_relative_speed: float | None = _end(
        "the minimum speed relative to the fastest of its round"
    )
    to_relative_speed: float | None = _end("the maximum (inclusive)")
    from_place: float | None = _earlier("from_predicted_percentile")
    to_place: float | None = _earlier("to_predicted_percentile")
    from_speed: float | None = _earlier("from_relative_speed")
    to_speed: float | None = _earlier("to_relative_speed")
    sort: Literal[
        "number",
        "-number",
        "best_secs",
        "-best_secs",
        "predicted",
        "-predicted",
        "sketch",
        "-sketch",
        "outcome",
        "-outcome",
    ] = "number"
    offset: int = Field(default=0, ge=0, le=MAX_NUMBER, description="the number of items to skip")
    limit: int = Field(default=200, ge=1, le=MAX_POINTS, description="the maximum number of items")

    @model_validator(mode="before")
    @classmethod
    def _read_earlier_names(cls, values: Any) -> Any:
        """Accept conditions under their names before 0.2; of both, the current name wins."""
        if not isinstance(values, Mapping):
            return values
        current = {name: value for name, value in values.items() if name not in _RENAMED}
        earlier = {_RENAMED[name]: value for name, value in values.items() if name in _RENAMED}
        return earlier | current
