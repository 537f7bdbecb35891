"""The requests that a client sends to the service, as pydantic models.

They refuse unknown fields, so that a typing error is not ignored.
"""

from __future__ import annotations

import re
from base64 import b64decode
from contextlib import suppress
from enum import StrEnum
from typing import Annotated, Any, TypeAlias

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from service.wire.surrogates import lone_surrogates
from service.wire.trial_limit import MAX_TRIALS
from service.wire.windows import WindowText

# Limits of requests: chosen, not measured.
MAX_SCRIPT_CHARS = 262_144  # far more than any operator needs; bounds the time of the parser
MAX_SECONDS = 7 * 24 * 3600.0
MAX_RULES = 64  # more than there are
MAX_SEED = 2**31 - 1  # of a 32-bit column
MAX_PRIORITY = 1000
# Of a group: all their searches are in memory at once, about 2 MB each (90 small products with all
# rules: 149 MB). At most 200 programs of a model take 0.5% of its time, and so have jobs.
MAX_TASKS = 256
MAX_WEIGHT = 1e9  # only the ratios of weights matter
MAX_GRAPH_CHARS = 1_000_000  # of the text of a model: that of about 5,000 nodes
MAX_ONNX_CHARS = 1_900_000  # of a file in base64, so that the body keeps to its limit
MAX_INPUTS = 256  # of a model
MAX_RANK = 16  # of an input
MAX_RANGES = 8  # of a search over ranges: sizes are spread over as many extents
MAX_EXTENT = 2**31 - 1
MAX_NESTING = 4  # of a body: /model/shapes/NAME/0, or /tasks/0/workload/operator
MAX_NOTE_CHARS = 4000  # a page of text
MAX_TAGS = 16

# The second name of each is its name in version 0.1, which is accepted until 0.2.
TRIALS_ALIASES = AliasChoices("max_trials", "trials")
SECS_ALIASES = AliasChoices("max_secs", "seconds")


def _without_zero(text: str) -> str:
    if "\0" in text:
        raise ValueError("a text must not contain a zero character")
    return text


StoredText: TypeAlias = Annotated[str, AfterValidator(_without_zero)]
"""A text that every database can store: PostgreSQL has no zero characters."""
JobName: TypeAlias = Annotated[StoredText, Field(max_length=255)]
JobNote: TypeAlias = Annotated[StoredText, Field(max_length=MAX_NOTE_CHARS)]


def _each_once(tags: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(set(tags)))


_TAG = r"^[a-z0-9][a-z0-9._:/=+-]{0,63}$"


def _is_tag(text: str) -> str:
    if re.fullmatch(_TAG, text) is None:
        raise ValueError(
            f"{text[:64]!r} is not a tag: expected 1 to 64 of the characters a-z, 0-9 and ._:/=+-,"
            " of which the first is a letter or a digit"
        )
    return text


Tag: TypeAlias = Annotated[str, Field(json_schema_extra={"pattern": _TAG}), AfterValidator(_is_tag)]
"""A tag in lower case: filters of all databases find it, whatever they do with upper case."""
Tags: TypeAlias = Annotated[tuple[Tag, ...], Field(max_length=MAX_TAGS), AfterValidator(_each_once)]
RuleName: TypeAlias = Annotated[str, Field(max_length=255)]


_LATER_FIELDS = frozenset({"webhook", "window"})
"""Fields of submissions since idempotency keys are stored; null is their default."""


_LONE_SURROGATE = PydanticCustomError(
    "lone_surrogate", "a text must not contain half of a surrogate pair, such as \\ud800"
)


class Request(BaseModel):
    """A body that a client sends: an unknown field is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_lone_surrogates(cls, body: object) -> object:
        """Refuse texts that cannot be encoded: JSON can escape half of a surrogate pair."""
        if flaws := [
            InitErrorDetails(type=_LONE_SURROGATE, loc=location, input=text)
            for location, text in lone_surrogates(body)
        ]:
            raise ValidationError.from_exception_data(cls.__name__, flaws)
        return body

    @model_validator(mode="before")
    @classmethod
    def _refuse_both_names(cls, body: object) -> object:
        """Refuse a field that is given under its current and its earlier name."""
        for current, earlier in (TRIALS_ALIASES.choices, SECS_ALIASES.choices):
            if isinstance(body, dict) and current in body and earlier in body:
                raise ValueError(
                    f"{earlier!r} is the earlier name of {current!r}: give one of them"
                )
        return body


class Strategy(StrEnum):
    """The search strategy that proposes the candidates."""

    EVOLUTIONARY = "evolutionary"
    ANNEALING = "annealing"
    LOCAL = "local"
    EXHAUSTIVE = "exhaustive"
    RANDOM = "random"


class Workload(Request):
    """A workload: the text of a script, or an operator with its name and shape."""

    script: str | None = Field(default=None, min_length=1, max_length=MAX_SCRIPT_CHARS)
    operator: str | None = Field(
        default=None, min_length=1, max_length=1000, examples=["matmul:512,512,512:float32"]
    )

    @model_validator(mode="after")
    def _has_one_form(self) -> Workload:
        if (self.script is None) == (self.operator is None):
            raise ValueError("a workload has either `script` or `operator`")
        return self


WEBHOOK_SECRET_PREFIX = "whsec_"


def _strong_secret(text: str) -> str:
    """Refuse a secret that is not one of the Standard Webhooks: 24 to 64 random bytes."""
    has_prefix = text.startswith(WEBHOOK_SECRET_PREFIX)
    with suppress(ValueError):  # of base64
        size = len(b64decode(text.removeprefix(WEBHOOK_SECRET_PREFIX), validate=True))
        if has_prefix and 24 <= size <= 64:
            return text
    raise ValueError(
        f"a webhook secret is {WEBHOOK_SECRET_PREFIX!r} and 24 to 64 random bytes in base64, such "
        "as `openssl rand -base64 32` prints"
    )


class Webhook(Request):
    """An address to notify when the job, group or model has ended, and the key of signatures."""

    # Visible ASCII characters alone: a host in another script is in its encoded form (xn--).
    url: str = Field(max_length=2000, pattern=r"^https?://[\x21-\x7e]+$")
    secret: Annotated[str, AfterValidator(_strong_secret)] = Field(max_length=100, repr=False)


class SearchOptions(Request):
    """Options and limits of a search."""

    target: str = Field(default="cpu", min_length=1, max_length=1000)
    max_trials: int = Field(ge=1, le=MAX_TRIALS, validation_alias=TRIALS_ALIASES)
    max_secs: float | None = Field(
        default=None, gt=0, le=MAX_SECONDS, validation_alias=SECS_ALIASES
    )
    plateau: int | None = Field(default=None, ge=1, le=MAX_TRIALS)  # trials without progress
    seed: int = Field(default=0, ge=0, le=MAX_SEED)
    strategy: Strategy = Strategy.EVOLUTIONARY
    # The names of the schedule rules of the design space; null for all rules.
    rules: tuple[RuleName, ...] | None = Field(default=None, min_length=1, max_length=MAX_RULES)
    warm_start: bool = True  # reuse the cost model, and schedules of other shapes
    # A queued job of higher priority starts first.
    priority: int = Field(default=0, ge=-MAX_PRIORITY, le=MAX_PRIORITY)
    webhook: Webhook | None = None
    # The hours in which it is measured; null for any time.
    window: WindowText | None = None

    def stable_forms(self) -> tuple[str, ...]:
        """Return the texts that identify the request: that of this version first.

        A field that a version adds is left out of the text of a request that does not use it, so
        that a retry after an upgrade is the same request. The texts of jobs were written as nulls
        from their first version on; the version before it had no such fields.
        """
        unused = {field for field in _LATER_FIELDS if getattr(self, field, None) is None}
        forms = [self.model_dump_json(exclude=unused)]
        texts = JobDescription.model_fields if isinstance(self, JobDescription) else {}
        if texts and all(getattr(self, field) is None for field in texts):
            forms.append(self.model_dump_json(exclude={*unused, *texts}))
        return tuple(forms)


class JobDescription(Request):
    """The texts by which users find a job; they do not change what it does. Empty means none."""

    name: JobName | None = None
    note: JobNote | None = None
    tags: Tags | None = Field(default=None, examples=[["nightly", "model:bert"]])


class JobCreate(SearchOptions, JobDescription):
    """A request to tune one workload for one target."""

    workload: Workload


class GroupTask(Request):
    """A workload of a group, and its weight, such as the number of its runs in a model."""

    workload: Workload
    weight: float = Field(default=1.0, gt=0, le=MAX_WEIGHT)


class GroupCreate(SearchOptions, JobDescription):
    """A request to tune several workloads for one target under one trial limit.

    Each job of the group has its name, note and tags.
    """

    tasks: tuple[GroupTask, ...] = Field(min_length=1, max_length=MAX_TASKS)


InputName: TypeAlias = Annotated[str, Field(max_length=255)]
InputShape: TypeAlias = Annotated[
    tuple[Annotated[int, Field(ge=0, le=MAX_EXTENT)], ...], Field(max_length=MAX_RANK)
]


class ModelSource(Request):
    """A model: the text of its graph, or a small ONNX file in base64.

    In the text, weights are named by their SHA-256: their values are not needed. An ONNX file has
    all of its weights inside.
    """

    graph: str | None = Field(default=None, min_length=1, max_length=MAX_GRAPH_CHARS)
    onnx: str | None = Field(default=None, min_length=1, max_length=MAX_ONNX_CHARS)
    # The shapes of inputs of an ONNX file, which fix its symbolic axes.
    shapes: dict[InputName, InputShape] = Field(default={}, max_length=MAX_INPUTS)

    @model_validator(mode="after")
    def _has_one_form(self) -> ModelSource:
        if (self.graph is None) == (self.onnx is None):
            raise ValueError("a model has either `graph` or `onnx`")
        if self.shapes and self.onnx is None:
            raise ValueError("`shapes` fixes axes of `onnx`: a graph states its shapes in its text")
        return self


class ModelCreate(SearchOptions):
    """A request to tune the programs of a whole model under one trial limit."""

    name: StoredText = Field(min_length=1, max_length=255)
    model: ModelSource


Range: TypeAlias = tuple[
    Annotated[int, Field(ge=1, le=MAX_EXTENT)], Annotated[int, Field(ge=1, le=MAX_EXTENT)]
]
"""The least and the greatest size of an extent."""


class ShapesCreate(SearchOptions, JobDescription):
    """A request for kernels that run a symbolic program at all sizes of ranges.

    Sizes spread over the ranges are tuned as jobs of one group, each with the name, note and tags.
    """

    workload: Workload
    # By the names of symbolic extents; the text of the program may declare ranges, too.
    ranges: dict[InputName, Range] = Field(
        default={}, max_length=MAX_RANGES, examples=[{"M": [1, 512]}]
    )


class GroupChange(Request):
    """A new trial limit for all jobs of a group together."""

    max_trials: int = Field(ge=1, le=MAX_TRIALS, validation_alias=TRIALS_ALIASES)


def _without_default(schema: dict[str, Any]) -> None:
    schema.pop("default")


class JobChange(Request):
    """New limits, a new priority and other texts for a job; a missing field does not change.

    In a running job, lower limits apply from the next trial, higher ones from the next round. A job
    that has ended continues if its new limits leave something to do.
    """

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    max_trials: int = Field(
        default=0,
        ge=1,
        le=MAX_TRIALS,
        validation_alias=TRIALS_ALIASES,
        json_schema_extra=_without_default,
    )
    max_secs: float | None = Field(
        default=None,
        gt=0,
        le=MAX_SECONDS,
        validation_alias=SECS_ALIASES,
        json_schema_extra=_without_default,
    )
    plateau: int | None = Field(
        default=None, ge=1, le=MAX_TRIALS, json_schema_extra=_without_default
    )
    priority: int = Field(
        default=0, ge=-MAX_PRIORITY, le=MAX_PRIORITY, json_schema_extra=_without_default
    )
    name: JobName | None = Field(default=None, json_schema_extra=_without_default)
    note: JobNote | None = Field(default=None, json_schema_extra=_without_default)
    tags: Tags = Field(default=(), json_schema_extra=_without_default)
    window: WindowText | None = Field(default=None, json_schema_extra=_without_default)

    @model_validator(mode="after")
    def _changes_something(self) -> JobChange:
        if not self.model_fields_set:
            raise ValueError(
                "nothing to change: expected max_trials, max_secs, plateau, priority, name, note,"
                " tags or window"
            )
        return self

    @model_serializer(mode="wrap")
    def _named_alone(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {k: v for k, v in serialize(self).items() if k in self.model_fields_set}


class ScheduleQuery(Request):
    """A request for the best known schedule of one workload on one target."""

    workload: Workload
    target: str = Field(default="cpu", min_length=1, max_length=1000)
    nearest: bool = False  # whether to accept the adapted one of the nearest shape
    enqueue: bool = False  # whether to queue a job if this exact schedule is missing
