"""A space of Kernel Tuner as a design space: one sketch with a knob for each parameter.

Its target is of a kind that exists in this process alone. It has no estimate, so a search begins
with random configurations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from compiler.schedule.trace.instruction import Instruction
from compiler.schedule.trace.trace import Trace
from compiler.target.target import TARGET_KINDS, Target
from tuner.candidate import Candidate
from tuner.replay.recorded_space import RecordedSpace
from tuner.space.design_space import Point
from tuner.space.registry import SEARCH_SPACES
from tuner.space.search_space import FeatureMatrix, Mask, SearchSpace
from tuner.space.tables.knob import ChoiceKnob, Ints
from tuner.space.tables.sketch import Sketch

KIND = "kernel-tuner"
MAX_PARAMETERS = 20
"""Parameters with more than one value; the largest space of the benchmark hub has 15."""
_PAIRS = np.triu_indices(MAX_PARAMETERS, 1)


class KernelTunerTarget(Target):
    """A machine of which only recorded times are known."""

    kind: ClassVar[str] = KIND

    @property
    def label(self) -> str:
        """Return the label of the kind."""
        return KIND

    @property
    def num_cores(self) -> int:
        """Return 1: nothing runs."""
        return 1

    @classmethod
    def _canonical(cls, text: str) -> str:
        return text


class ParameterSpace(RecordedSpace):
    """The valid configurations of a kernel.

    Args:
        parameters: The values of each parameter, by its name.
        configurations: The valid ones: a value of each parameter, in their order.
    """

    def __init__(
        self, parameters: Mapping[str, Sequence[Any]], configurations: Sequence[Sequence[Any]]
    ) -> None:
        _register()
        varied = [index for index, name in enumerate(parameters) if len(parameters[name]) > 1]
        if len(varied) > MAX_PARAMETERS:
            raise ValueError(f"{len(varied)} parameters: expected at most {MAX_PARAMETERS}")
        values = [list(parameters[name]) for name in parameters]
        self._configurations = {
            tuple(values[i].index(configuration[i]) for i in varied): tuple(configuration)
            for configuration in configurations
        }
        knobs = tuple(ChoiceKnob(_numbers(values[i])) for i in varied)
        sketch = Sketch("configurations", _trace(knobs), knobs, ())
        rows = np.array(list(self._configurations), np.int64).reshape(-1, len(knobs))
        super().__init__([sketch], Target(KIND), [rows])

    def configuration(self, candidate: Candidate) -> tuple[Any, ...]:
        """Return the configuration of a candidate, with all parameters."""
        point = self.point(candidate)
        assert point is not None, "a search proposes candidates of its space only"
        return self._configurations[point.choices]

    def random_candidates(self, num: int, seed: int) -> list[Candidate]:
        """Return different candidates to begin with."""
        rows = self.draw(0, num, np.random.default_rng(seed))
        return [self.candidate(Point(0, tuple(row))) for row in rows.tolist()]


def _numbers(values: Sequence[Any]) -> tuple[int, ...]:
    """Return the values of a parameter, or their indices if they are not all whole numbers."""
    if all(isinstance(value, int) for value in values):
        return tuple(map(int, values))
    return tuple(range(len(values)))


def _trace(knobs: Sequence[ChoiceKnob]) -> Trace:
    return Trace(
        tuple(
            Instruction(
                "sample_categorical",
                (
                    ("candidates", knob.values),
                    ("probs", tuple(1 / len(knob.values) for _ in knob.values)),
                ),
                (f"v{number}",),
                0,
            )
            for number, knob in enumerate(knobs)
        )
    )


def _features(sketch: Sketch, choices: Ints, target: Target) -> FeatureMatrix:
    """Return the values, and the products of pairs: a block has as many threads, for example."""
    del target
    values = np.ones((len(choices), MAX_PARAMETERS), np.float32)
    values[:, : len(sketch.knobs)] = sketch.values(choices)
    return np.hstack([values, values[:, _PAIRS[0]] * values[:, _PAIRS[1]]])


def _passes(sketch: Sketch, choices: Ints, target: Target) -> Mask:
    del sketch, target
    return np.ones(len(choices), np.bool_)


def _register() -> None:
    if KIND in SEARCH_SPACES.kinds:
        return
    names = [f"p{number}" for number in range(MAX_PARAMETERS)]
    pairs = [f"{names[one]}*{names[other]}" for one, other in zip(*_PAIRS, strict=True)]
    TARGET_KINDS.register(KIND, KernelTunerTarget)
    SEARCH_SPACES.register(
        KIND,
        SearchSpace(
            kind=KIND,
            first_rules=(),
            rules=(),
            feature_version=1,
            feature_names=(*names, *pairs),
            estimate=names[0],
            features=_features,
            passes=_passes,
        ),
    )
