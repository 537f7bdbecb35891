"""Tuning without a server: the search in this process, candidates in killable children."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from numbers import Real
from typing import overload

from compiler.backends.backend import backend_of, device_for, host_labels
from compiler.ir.analysis.symbols import symbolic_problem, symbolic_vars
from compiler.ir.core.program import PrimFunc
from compiler.ir.verify.build_problem import build_problem
from compiler.keywords import suggests_keywords
from compiler.target.cpu import CpuTarget
from compiler.target.target import Target, complete_target
from compiler.user_cache import default_directory
from loopwright.client.progress import TrialProgress
from loopwright.earlier_names import takes_earlier_names
from loopwright.errors import JobFailedError
from loopwright.local.kept_runner import kept_runner
from loopwright.local.library_choice import LibraryChoice
from loopwright.local.measurable import require_measurable
from loopwright.local.shape_tuning import ShapeWorkload
from loopwright.local.shapes_result import ShapesResult
from loopwright.local.time_limit import TimeLimit
from loopwright.local.trial_reporter import TrialReporter, public_trial
from loopwright.local.tune_result import Trial, TuneResult
from loopwright.workload import WorkloadLike, Workloads, check_names, to_func, weights_of
from service.coordinator.measurer import WorkerMeasurer
from service.wire.trial_limit import MAX_TRIALS
from tuner.candidate import Candidate
from tuner.cost_model.training import Measured, MeasuredTask
from tuner.finish.baseline import Baseline, measure_baselines
from tuner.finish.contest import Finish
from tuner.finish.finish import finish
from tuner.finish.space_distance import SpaceDistance, space_distance
from tuner.finish.whole_space import WholeSpace, measured_whole, small_space
from tuner.loop.search_result import NothingMeasuredError, SearchResult
from tuner.loop.tune import tune_tasks
from tuner.replay import base_model
from tuner.search.make import STRATEGIES, uses_model
from tuner.shapes.choice_budget import ChoiceBudget
from tuner.shapes.ranges import Ranges
from tuner.task import Task
from tuner.transfer.from_measurements import warm_start_of
from tuner.warm_start import COLD, WarmStart
from workers.libraries.load import chosen_libraries
from workers.wire.request import MeasureLimits

DEFAULT_TRIALS = 200
"""Trials without a limit of the user; `docs/tuning.md` has the time that they take. Chosen."""

_ELSEWHERE = (
    "a server measures on that machine, by `loopwright serve --runner` (docs/remote.md) or a worker"
    " there; lw.compile_kernel compiles without measuring"
)


def _never() -> bool:
    return False


@overload
def tune(
    workload: WorkloadLike,
    *,
    target: Target | str = "cpu",
    max_trials: int | None = None,
    max_secs: float | None = None,
    plateau: int | None = None,
    seed: int = 0,
    strategy: str = "evolutionary",
    rules: Collection[str] | None = None,
    libraries: Collection[str] = (),
    warm_start: Sequence[TuneResult] | None = (),
    progress: bool | None = None,
    on_trial: Callable[[Trial], None] | None = None,
    should_stop: Callable[[], bool] = _never,
    limits: MeasureLimits | None = None,
) -> TuneResult: ...
@overload
def tune(
    workload: Workloads,
    *,
    weights: Sequence[float] | None = None,
    target: Target | str = "cpu",
    max_trials: int | None = None,
    max_secs: float | None = None,
    plateau: int | None = None,
    seed: int = 0,
    strategy: str = "evolutionary",
    rules: Collection[str] | None = None,
    libraries: Collection[str] = (),
    warm_start: Sequence[TuneResult] | None = (),
    progress: bool | None = None,
    on_trial: Callable[[Trial], None] | None = None,
    should_stop: Callable[[], bool] = _never,
    limits: MeasureLimits | None = None,
) -> list[TuneResult]: ...
@overload
def tune(
    workload: WorkloadLike,
    *,
    ranges: Ranges,
    target: Target | str = "cpu",
    max_trials: int = 200,
    max_secs: float | None = None,
    plateau: int | None = None,
    seed: int = 0,
    strategy: str = "evolutionary",
    rules: Collection[str] | None = None,
    libraries: Collection[str] = (),
    warm_start: Sequence[TuneResult] | None = (),
    progress: bool | None = None,
    on_trial: Callable[[Trial], None] | None = None,
    should_stop: Callable[[], bool] = _never,
    limits: MeasureLimits | None = None,
) -> ShapesResult: ...
@takes_earlier_names
@suggests_keywords
def tune(
    workload: WorkloadLike | Workloads,
    *,
    ranges: Ranges | None = None,
    weights: Sequence[float] | None = None,
    target: Target | str = "cpu",
    max_trials: int | None = None,
    max_secs: float | None = None,
    plateau: int | None = None,
    seed: int = 0,
    strategy: str = "evolutionary",
    rules: Collection[str] | None = None,
    libraries: Collection[str] = (),
    warm_start: Sequence[TuneResult] | None = (),
    progress: bool | None = None,
    on_trial: Callable[[Trial], None] | None = None,
    should_stop: Callable[[], bool] = _never,
    limits: MeasureLimits | None = None,
) -> TuneResult | list[TuneResult] | ShapesResult:
    """Search for a fast schedule of a workload on this host, or of each of several.

    Every candidate is built, compared with the oracle and timed in a child process that may crash
    or hang without harm. At the end the best are measured again, side by side, until one of them
    wins or they are tied, which takes some more seconds. Then NumPy takes turns with the winner if
    it has such an operator. A progress bar is drawn on a terminal. Ctrl-C ends the search; so does
    a program that raises in `on_trial`.

    A list of workloads shares the trials: each round goes to the workload with the largest expected
    gain in weighted time. The results come in the same order.

    With `ranges`, the workload is a symbolic program. Up to eight sizes of the ranges share the
    trials, 16 or more each.
    Their best schedules are carried over to the symbolic program and timed at more sizes; at most
    eight kernels are chosen, and a dispatcher that calls one of them by size. Each kernel is
    compared with the oracle at each of these sizes, and the whole module at the tuned ones.

    Args:
        workload: A program, a module of one function and those that it calls, the text of a script,
            or an operator with its shape; or a list of them, such as `lw.extract_tasks` returns for
            a module. A schedule stands for its current program, `sch.mod`: the search works on its
            loops and blocks.
        ranges: The least and the greatest size of each symbolic extent by its name, such as
            `{"M": (1, 512)}`. One that the program declares itself may be left out.
        weights: The weight of each workload's time, such as the number of its runs in a model; by
            default the weight of a task, and 1 for any other workload.
        max_trials: The limit on trials; trial 0 is the default schedule. By default 200, or all of
            a space of at most 256 schedules. Each of several workloads needs at least 16.
        max_secs: The limit on the time of this call, in seconds. The search leaves three tenths for
            the final comparison, of fewer trials if time is short. Without time for them, the
            default schedule and NumPy are left out. The trial in progress may end a little later,
            and one correct trial of each workload is measured in any case. With ranges, the time
            for the final comparison is for choosing and compiling kernels: in less of it, fewer
            kernels are timed at fewer sizes; see docs/shapes.md.
        plateau: End after so many trials in a row that brought less than 1% together.
        seed: The same seed and the same measurements give the same search.
        strategy: `"evolutionary"`, guided by a cost model, `"annealing"`, `"local"`,
            `"exhaustive"` or `"random"`; see docs/search.md.
        rules: The names of the schedule rules that make the design space; by default all.
        libraries: The libraries that a schedule may call for products and convolutions: "blas" is
            NumPy's BLAS, "torch" PyTorch. A call is measured first and competes as any candidate,
            so the result is not slower than the library. A kernel that calls one requires it where
            it is loaded (`Artifact.functions`), and can't be written for C: therefore none by
            default.
        warm_start: Earlier results. The search begins with the refitted best schedules of those for
            other shapes of the operator (or this one), and with a cost model that is trained on
            those for the same kind of CPU. In any case it uses the base model of the packaged
            measurements. None disables all of this.
        progress: Whether to draw the bar; by default only on a terminal or in a notebook.
        on_trial: Called with each trial as it is measured.
        should_stop: Called between results; once it returns true, the search ends, and the best so
            far counts.
        limits: Deadlines and memory of a candidate.

    Raises:
        ScriptError: If the text of a script is invalid.
        OperatorError: If the operator is unknown.
        ScheduleError: If a program has no blocks, and none can be derived of its loops.
        TargetError: If the target is unknown, or this host can't measure kernels for it.
        UnknownFunctionError: If a library is not installed, or if a program calls a function of
            this process that its child can't import.
        ValueError: If `strategy`, a rule or a library is unknown, a budget is not positive, the
            weights or trials do not fit the workloads, a shape is symbolic and has no range, a
            range is wrong, a module has several entries, or a call in it is not legal.
        NothingMeasuredError: If `should_stop` returned true before anything was measured.
        JobFailedError: If no trial of a workload is correct, not even the default schedule; its
            `results` hold those of all workloads.
    """
    _check_options(max_trials, max_secs, rules, warm_start)
    library_choice = LibraryChoice.of(libraries)
    begun = time.monotonic()
    goal = complete_target(target, host_labels)
    backend_of(goal).require_host(goal)
    shapes = None if ranges is None else _shapes(workload, weights, ranges, goal, max_trials)
    tasks = _tasks(workload, weights, goal) if shapes is None else shapes.tasks()
    device = device_for(goal)
    if device is None and isinstance(goal, CpuTarget):
        require_measurable("a kernel", goal, _ELSEWHERE)
    rules = library_choice.rules(rules, goal)
    time_limit = TimeLimit(max_secs, len(tasks), begun)
    name = tasks[0].func.name if len(tasks) == 1 else f"{len(tasks)} tasks"
    # The child starts while this process makes the design space and loads the cost model.
    with (
        kept_runner(
            device,
            library_choice.called(tasks),
            shares_builds=time_limit.affords_builders(),
        ) as runner,
        ExitStack() as stack,
    ):
        most_trials = _default_trials(tasks, rules) if max_trials is None else max_trials
        bar = stack.enter_context(TrialProgress(name, most_trials, show=progress))
        seen = TrialReporter(tasks, bar, on_trial)
        # Not PyTorch: loading it takes as long as a short search.
        libraries = tuple(name for name in chosen_libraries() if name in ("numpy", "cublas"))
        measurer = WorkerMeasurer(runner, limits, libraries=libraries)
        warm_starts = {
            t.key: library_choice.first(t, _warm_start(t, warm_start, seed, strategy, rules), rules)
            for t in tasks
        }
        searches = tune_tasks(
            tasks,
            measurer=measurer,
            max_trials=most_trials,
            max_secs=time_limit.search_secs(),
            plateau=plateau,
            seed=seed,
            strategy=strategy,
            rules=rules,
            warm_starts=warm_starts,
            on_trials=seen.see,
            should_stop=should_stop,
            without_default={t.key for t in tasks if not time_limit.affords_default(t)},
        )
        if shapes is not None:
            # A search that was stopped may not have begun with all sizes.
            measured = [
                (sizes, search, _result(task, search, None, None).trials)
                for sizes, task, search in zip(shapes.sizes, tasks, searches, strict=True)
                if search.trials
            ]
            budget = ChoiceBudget(time_limit.finish_secs(1), should_stop)
            return shapes.finished(
                measured,
                measurer,
                budget,
                lambda n: bar.draw(seen.num_measured, f"choosing kernels: {n} timed"),
            )
        results = [
            _finished(
                task,
                search,
                measurer,
                seed,
                rules,
                should_stop,
                time_limit,
                len(tasks) - number,
                library_choice.fastest(search.trials),
            )
            for number, (task, search) in enumerate(zip(tasks, searches, strict=True))
        ]
    for result in results:
        if not result.best.measurement.ok:
            raise JobFailedError(_failure(result), results)
    return results if isinstance(workload, list | tuple) else results[0]


def _check_options(
    max_trials: int | None,
    max_secs: float | None,
    rules: Collection[str] | None,
    warm_start: Sequence[TuneResult] | None,
) -> None:
    if max_trials is not None and max_trials not in range(1, MAX_TRIALS + 1):
        raise ValueError(f"max_trials is {max_trials!r}: expected a number from 1 to {MAX_TRIALS}")
    is_number = isinstance(max_secs, Real) and not isinstance(max_secs, bool)
    if max_secs is not None and not (is_number and 0 < max_secs < math.inf):
        raise ValueError(f"max_secs is {max_secs!r}: expected a positive number of seconds")
    check_names("rules", rules)
    if isinstance(warm_start, bool):
        raise TypeError(
            f"warm_start is {warm_start}: expected earlier results of lw.tune, () for none, or "
            "None for no warm start"
        )


def _default_trials(tasks: Sequence[Task], rules: Collection[str] | None) -> int:
    """Return the number of trials of a search without a limit."""
    if len(tasks) > 1:
        return DEFAULT_TRIALS
    num_schedules = small_space(tasks[0], rules)
    return DEFAULT_TRIALS if num_schedules is None else max(DEFAULT_TRIALS, 1 + num_schedules)


def _tasks(
    workload: WorkloadLike | Workloads, weights: Sequence[float] | None, target: Target
) -> list[Task]:
    several = list(workload) if isinstance(workload, list | tuple) else [workload]
    if not several:
        raise ValueError("there is no workload to tune: the list is empty")
    return [
        Task(_tunable(to_func(program)), target, weight)
        for program, weight in zip(several, weights_of(several, weights), strict=True)
    ]


def _shapes(
    workload: WorkloadLike | Workloads,
    weights: Sequence[float] | None,
    ranges: Ranges,
    target: Target,
    max_trials: int | None,
) -> ShapeWorkload:
    if isinstance(workload, list | tuple) or weights is not None:
        raise ValueError("with ranges, tune takes one workload and no weights")
    most_trials = DEFAULT_TRIALS if max_trials is None else max_trials
    return ShapeWorkload.of(to_func(workload), ranges, target, max_trials=most_trials)


def _tunable(func: PrimFunc) -> PrimFunc:
    if (problem := build_problem(func)) is not None:
        raise ValueError(f"{func.name}: {problem}")
    problem = symbolic_problem(func)
    if problem is not None:
        names = ", ".join(f'"{var.name}": (1, 512)' for var in symbolic_vars(func))
        raise ValueError(f"{func.name}: {problem}, or tune all sizes with ranges={{{names}}}")
    return func


def _failure(result: TuneResult) -> str:
    first = result.trials[0]
    name = "default schedule" if first.number == 0 else "first trial"
    return (
        f"none of {len(result.trials)} trials of {result.func.name} is correct;"
        f" the {name}: {first.measurement.error}: {first.measurement.message}"
    )


def _warm_start(
    task: Task,
    earlier: Sequence[TuneResult] | None,
    seed: int,
    strategy: str,
    rules: Collection[str] | None,
) -> WarmStart:
    if earlier is None or strategy not in STRATEGIES:
        return COLD
    base = None
    if uses_model(strategy) and task.target.kind == base_model.KIND:
        base = base_model.base_model(default_directory()).model
    measured_tasks = [
        MeasuredTask(
            Task(result.func, result.target),
            [Measured(Candidate(t.sketch, t.trace), t.provisional_secs) for t in result.trials],
        )
        for result in earlier
    ]
    return warm_start_of(task, measured_tasks, seed=seed, rules=rules, base=base)


def _finished(  # noqa: PLR0917
    task: Task,
    search: SearchResult,
    measurer: WorkerMeasurer,
    seed: int,
    rules: Collection[str] | None,
    should_stop: Callable[[], bool],
    time_limit: TimeLimit,
    num_unfinished: int,
    also: Collection[int],
) -> TuneResult:
    """Run the final comparison of a search, and time NumPy beside the winner."""
    num_schedules = measured_whole(task, search.trials, rules)
    final = finish(
        task,
        search.trials,
        measurer,
        seed=seed,
        also=also,
        is_whole=num_schedules is not None,
        max_secs=time_limit.finish_secs(num_unfinished),
        should_stop=should_stop,
    )
    baselines: list[Baseline] = []
    if final is not None and final.kept is not None and time_limit.affords_baseline():
        baselines = measure_baselines(
            task, final.kept.trial, measurer, seed=seed, should_stop=should_stop
        )
    whole = None
    if num_schedules is not None and final is not None and final.margin is not None:
        whole = WholeSpace(num_schedules, final.margin)
    distance = None
    if num_schedules is None and time_limit.affords_baseline():
        distance = space_distance(task, search.trials, rules)
    return _result(task, search, final, next(iter(baselines), None), whole, distance)


def _result(  # noqa: PLR0917
    task: Task,
    search: SearchResult,
    final: Finish | None,
    baseline: Baseline | None,
    whole: WholeSpace | None = None,
    distance: SpaceDistance | None = None,
) -> TuneResult:
    finalists = {} if final is None else {f.trial.number: f for f in final.finalists}
    trials = tuple(
        public_trial(task.target, trial, finalists.get(trial.number)) for trial in search.trials
    )
    if not trials:
        raise NothingMeasuredError(
            f"tuning {task.func.name} was stopped before the first measurement"
        )
    return TuneResult(task.func, task.target, trials, search.stop_reason, baseline, whole, distance)
