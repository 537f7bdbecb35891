"""The contract of search spaces: generate and describe candidates for one kind of target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from compiler.target.target import Target
from tuner.space.rules.rule import ScheduleRule, rule_name
from tuner.space.tables.knob import Ints
from tuner.space.tables.sketch import Sketch

FeatureMatrix: TypeAlias = npt.NDArray[np.float32]
Mask: TypeAlias = npt.NDArray[np.bool_]

RANK = "estimate.rank"
"""The column with the rank of a candidate's estimated time in its design space, from 0 to 1."""
RATIO = "estimate.ratio"
"""The base-2 logarithm of its estimated time over the shortest of a sample of the space."""


@dataclass(frozen=True)
class SearchSpace:
    """The rules, the features and the static filter for one kind of target.

    Attributes:
        kind: The kind of the targets.
        first_rules: The rules that run before those that a program adds.
        rules: The rules that run after the added ones, in this order.
        optional_rules: The rules that run before these only if they are named.
        feature_version: The version of the columns, which changes with their meaning.
        feature_names: The names of the columns of features.
        estimate: The column that ranks candidates of a sketch without a trained model: lower is
            faster.
        estimates_secs: Whether this column is the base-2 logarithm of the seconds of a whole
            candidate, so that it compares candidates of different sketches, and with measurements.
        estimate_parts: The columns with base-2 logarithms of the times of parts of a candidate. If
            there are some, the last columns of features, `RATIO` and `RANK`, compare their
            sum with others of the design space; `features` does not return them.
        features: Returns a row of features for each row of choices of a sketch.
        passes: Returns a mask of the rows of choices of a sketch that are worth compiling.
    """

    kind: str
    first_rules: tuple[ScheduleRule, ...]
    rules: tuple[ScheduleRule, ...]
    feature_version: int
    feature_names: tuple[str, ...]
    estimate: str
    features: Callable[[Sketch, Ints, Target], FeatureMatrix]
    passes: Callable[[Sketch, Ints, Target], Mask]
    estimates_secs: bool = False
    optional_rules: tuple[ScheduleRule, ...] = ()
    estimate_parts: tuple[str, ...] = ()

    @cached_property
    def rule_names(self) -> tuple[str, ...]:
        """Return the names of the built-in rules, in the order in which they run."""
        return tuple(rule_name(rule) for rule in (*self.first_rules, *self.rules))

    @cached_property
    def num_features(self) -> int:
        """Return the number of columns of features."""
        return len(self.feature_names)

    def total_estimates(self, matrix: FeatureMatrix) -> FeatureMatrix:
        """Return the base-2 logarithm of the summed times of `estimate_parts` for each row."""
        columns = [self.feature_names.index(name) for name in self.estimate_parts]
        totals: FeatureMatrix = np.logaddexp2.reduce(matrix[:, columns], axis=1)
        return totals

    @cached_property
    def estimate_column(self) -> int:
        """Return the index of the column `estimate`."""
        return self.feature_names.index(self.estimate)
