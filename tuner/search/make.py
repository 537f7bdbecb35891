"""Make a search strategy by its name."""

from __future__ import annotations

import difflib

from tuner.cost_model.xgboost_model import XGBoostModel
from tuner.search.evolutionary import EvolutionaryStrategy
from tuner.search.random import RandomStrategy
from tuner.search.strategy import SearchStrategy
from tuner.space.generate import design_space
from tuner.task import Task

STRATEGIES = ("evolutionary", "random")


def make_strategy(name: str, task: Task, seed: int) -> SearchStrategy:
    """Return a fresh strategy for a task.

    Raises:
        ValueError: If there is no strategy of that name.
    """
    space = design_space(task)
    match name:
        case "evolutionary":
            return EvolutionaryStrategy(space, seed, XGBoostModel(seed), task.key)
        case "random":
            return RandomStrategy(space, seed)
        case _:
            near = difflib.get_close_matches(name, STRATEGIES, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(STRATEGIES)}"
            raise ValueError(f"unknown search strategy {name!r}: {hint}")
