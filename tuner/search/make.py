"""Make a search strategy by its name."""

from __future__ import annotations

import difflib
from collections.abc import Collection

from tuner.cost_model.cost_model import CostModel
from tuner.search.annealing import Annealing
from tuner.search.evolutionary import Evolutionary
from tuner.search.exhaustive import Exhaustive
from tuner.search.local import Local
from tuner.search.random import Random
from tuner.search.searcher import Proposer, Searcher
from tuner.search.strategy import SearchStrategy
from tuner.space.generate import design_space
from tuner.task import Task
from tuner.warm_start import COLD, WarmStart

PROPOSERS: dict[str, type[Proposer]] = {
    "evolutionary": Evolutionary,
    "annealing": Annealing,
    "local": Local,
    "exhaustive": Exhaustive,
    "random": Random,
}
STRATEGIES = tuple(PROPOSERS)


def uses_model(name: str) -> bool:
    """Return whether the strategy with a name uses a cost model."""
    return PROPOSERS[name].uses_model


def make_strategy(
    name: str,
    task: Task,
    seed: int,
    warm_start: WarmStart = COLD,
    rules: Collection[str] | None = None,
) -> SearchStrategy:
    """Return a fresh strategy for a task.

    Args:
        warm_start: The model and the candidates to begin with.
        rules: The names of the schedule rules that make the design space; None for all.

    Raises:
        ValueError: If the strategy or a rule does not exist.
        CostModelError: If the stored cost model can't be used.
    """
    if name not in PROPOSERS:
        near = difflib.get_close_matches(name, STRATEGIES, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(STRATEGIES)}"
        raise ValueError(f"unknown search strategy {name!r}: {hint}")
    return Searcher(
        PROPOSERS[name],
        design_space(task, rules),
        seed,
        _model(task, seed, warm_start.cost_model) if uses_model(name) else None,
        task_key=task.key,
        first=warm_start.candidates,
    )


def _model(task: Task, seed: int, base: bytes | None) -> CostModel:
    # XGBoost takes a third of a second to load, and processes without a search import this module.
    from tuner.cost_model.xgboost_model import XGBoostModel  # noqa: PLC0415

    return XGBoostModel(seed, base=base, kind=task.target.kind)
