"""Submit workloads to a server: one, or several that share a budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar, overload
from uuid import uuid4

from compiler.keywords import check_keywords
from compiler.target.target import Target
from loopwright.client.decoding import read
from loopwright.client.methods import request
from loopwright.client.requests import checked, target_text
from loopwright.client.resolve_kernel import KernelResolver
from loopwright.client.steps import KEY, HttpCall, Plan, send
from loopwright.client.workload_request import to_wire
from loopwright.earlier_names import with_current_names
from loopwright.workload import WorkloadLike, Workloads, check_names, weights_of
from service.wire.model_reads import ModelRead
from service.wire.models import GroupRead, JobRead
from service.wire.requests import (
    GroupCreate,
    GroupTask,
    JobCreate,
    ModelCreate,
    ModelSource,
    ShapesCreate,
)
from service.wire.shape_reads import ShapesRead

OneT = TypeVar("OneT")
SeveralT = TypeVar("SeveralT")
ShapesT = TypeVar("ShapesT")

Ranges: TypeAlias = Mapping[Any, tuple[int, int] | int]
"""The least and the greatest size of extents, by their names or their variables."""

_OPTIONS = {"weights", "ranges", *JobCreate.model_fields} - {"workload"}


class Submitting(Generic[OneT, SeveralT, ShapesT]):
    """Methods that submit jobs; `OneT`, `SeveralT` and `ShapesT` are the types of the handles."""

    _connection: Any
    _known: KernelResolver
    _handle: ClassVar[Callable[..., Any]]
    _group_handle: ClassVar[Callable[..., Any]]
    _shapes_handle: ClassVar[Callable[..., Any]]

    @overload
    def tune(
        self,
        workload: WorkloadLike,
        *,
        target: Target | str = "cpu",
        max_trials: int = 200,
        max_secs: float | None = None,
        plateau: int | None = None,
        seed: int = 0,
        strategy: str = "evolutionary",
        rules: Sequence[str] | None = None,
        warm_start: bool = True,
        priority: int = 0,
        name: str | None = None,
        note: str | None = None,
        tags: Sequence[str] | None = None,
        webhook: Mapping[str, str] | None = None,
        window: str | None = None,
    ) -> OneT: ...
    @overload
    def tune(
        self,
        workload: Workloads,
        *,
        weights: Sequence[float] | None = None,
        target: Target | str = "cpu",
        max_trials: int = 200,
        max_secs: float | None = None,
        plateau: int | None = None,
        seed: int = 0,
        strategy: str = "evolutionary",
        rules: Sequence[str] | None = None,
        warm_start: bool = True,
        priority: int = 0,
        name: str | None = None,
        note: str | None = None,
        tags: Sequence[str] | None = None,
        webhook: Mapping[str, str] | None = None,
        window: str | None = None,
    ) -> SeveralT: ...
    @overload
    def tune(
        self,
        workload: WorkloadLike,
        *,
        ranges: Ranges,
        target: Target | str = "cpu",
        max_trials: int = 200,
        max_secs: float | None = None,
        plateau: int | None = None,
        seed: int = 0,
        strategy: str = "evolutionary",
        rules: Sequence[str] | None = None,
        warm_start: bool = True,
        priority: int = 0,
        name: str | None = None,
        note: str | None = None,
        tags: Sequence[str] | None = None,
        webhook: Mapping[str, str] | None = None,
        window: str | None = None,
    ) -> ShapesT: ...
    def tune(self, workload: Any, **options: Any) -> Any:
        """Submit a tuning job and return at once; retries do not submit it twice.

        The job ends at the first limit, which `stop_reason` names. `stop` ends it at once with the
        best so far, and `cancel` discards the rest of the search.

        A list of workloads becomes a group of jobs, one each, that share the trials: each round
        goes to the job with the largest expected gain in weighted time.

        Args:
            weights: The weight of each workload's time, such as the number of its runs in a model;
                by default the weight of a task, and 1 for any other workload.
            max_trials: The limit on trials; trial 0 of a job is the default schedule. Each of
                several workloads needs at least 16.
            max_secs: The limit on the running time of the job.
            plateau: End after so many trials in a row that brought less than 1% together.
            rules: The names of the schedule rules that make the design space; by default all.
            warm_start: Whether to reuse the server's cost model and its schedules of other shapes.
                Without it, the search depends on the seed alone.
            priority: Queued jobs of higher priority start first.
            name, note, tags: Texts by which the job is found; see `JobHandle.describe`.
            webhook: The `url` that the server notifies when the job, or the whole group, has ended,
                and the `secret` that signs the event; see `docs/webhooks.md`.
            window: The hours in which the server measures it, such as `22:00-06:00 Europe/Berlin`;
                by default any time.

        Raises:
            TypeError: If an option does not exist, or the workload has none of its forms.
            InvalidRequestError: If the workload, the target, a rule or a number is invalid; for a
                script the message shows the position.
            ServerUnreachableError: If no server answers.
        """
        # Whether it is awaited is known to the class that inherits this.
        this: Any = self
        options = with_current_names("tune", options, _OPTIONS)
        check_keywords("tune", options, _OPTIONS)
        for field in ("rules", "tags"):
            check_names(field, options.get(field))
        if "ranges" in options:
            if isinstance(workload, list | tuple) or "weights" in options:
                raise ValueError("with ranges, tune takes one workload and no weights")
            return this._tune_shapes(workload, options.pop("ranges"), options)
        if isinstance(workload, list | tuple):
            return this._tune_several(workload, options.pop("weights", None), options)
        if "weights" in options:
            raise TypeError("weights requires several workloads: pass them as a list")
        return this._tune_one(workload, options)

    @request
    def tune_model(
        self,
        graph: str,
        *,
        name: str,
        target: Target | str = "cpu",
        max_trials: int = 2000,
        plateau: int | None = None,
        seed: int = 0,
        webhook: Mapping[str, str] | None = None,
        window: str | None = None,
    ) -> Plan[ModelRead]:
        """Submit the programs of a whole model and return at once; `lw.compile` calls this.

        The same submission again returns the same model: its jobs continue.

        Args:
            graph: The text of a graph, `Graph.script()`: without the weights.
            name: The name of the model.
            target: The CPU.
            max_trials: The limit on trials of all programs together; each needs 16.
            plateau: End a job after so many trials in a row that brought less than 1% together.
            seed: Of the search.
            webhook: The `url` to notify at the end, and the `secret` that signs the event.
            window: The hours in which the server measures it, such as `22:00-06:00 Europe/Berlin`.

        Raises:
            InvalidRequestError: If the model, the target or a number is invalid.
            ServerUnreachableError: If no server answers.
        """
        body = checked(
            ModelCreate,
            name=name,
            model=checked(ModelSource, graph=graph),
            target=target_text(target),
            max_trials=max_trials,
            plateau=plateau,
            seed=seed,
            webhook=webhook,
            window=window,
        )
        key = sha256(body.stable_forms()[0].encode()).hexdigest()
        call = HttpCall("POST", "/models", body, headers={KEY: key})
        return read(ModelRead, (yield from send(call)))

    @request
    def _tune_one(self, workload: WorkloadLike, options: dict[str, Any]) -> Plan[Any]:
        body = checked(JobCreate, workload=to_wire(workload), **_on_the_wire(options))
        response = yield from send(HttpCall("POST", "/jobs", body, headers={KEY: uuid4().hex}))
        return self._handle(self._connection, read(JobRead, response).id)

    @request
    def _tune_several(
        self,
        workloads: Sequence[WorkloadLike],
        weights: Sequence[float] | None,
        options: dict[str, Any],
    ) -> Plan[Any]:
        tasks = [
            checked(GroupTask, workload=to_wire(workload), weight=weight)
            for workload, weight in zip(workloads, weights_of(workloads, weights), strict=True)
        ]
        body = checked(GroupCreate, tasks=tuple(tasks), **_on_the_wire(options))
        response = yield from send(HttpCall("POST", "/groups", body, headers={KEY: uuid4().hex}))
        return self._group_handle(self._connection, read(GroupRead, response).id)

    @request
    def _tune_shapes(
        self, workload: WorkloadLike, ranges: Ranges, options: dict[str, Any]
    ) -> Plan[Any]:
        body = checked(
            ShapesCreate,
            workload=to_wire(workload),
            ranges=_ends_by_name(ranges),
            **_on_the_wire(options),
        )
        response = yield from send(HttpCall("POST", "/shapes", body, headers={KEY: uuid4().hex}))
        shapes_id = read(ShapesRead, response).id
        return self._shapes_handle(self._connection, shapes_id, self._known.public_key)


def _ends_by_name(ranges: Ranges) -> dict[Any, Any]:
    """Return ranges by the names of extents; one number is the greatest size."""
    if not isinstance(ranges, Mapping):
        raise TypeError(f'ranges is {ranges!r}: expected a mapping, such as {{"M": (1, 512)}}')
    return {
        getattr(getattr(extent, "var", extent), "name", extent): (1, ends)
        if isinstance(ends, int)
        else ends
        for extent, ends in ranges.items()
    }


def _on_the_wire(options: dict[str, Any]) -> dict[str, Any]:
    lists = {field: options.get(field) for field in ("rules", "tags")}
    return {
        "max_trials": 200,
        **options,
        "target": target_text(options.get("target", "cpu")),
        **{field: None if texts is None else tuple(texts) for field, texts in lists.items()},
    }
