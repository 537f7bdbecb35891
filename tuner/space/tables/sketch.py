"""Sketches: traces with open decisions, and tables for batches of candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import numpy.typing as npt

from compiler.schedule.trace.trace import Trace
from tuner.candidate import Candidate
from tuner.space.tables.canonical_decisions import Zone, canonical
from tuner.space.tables.kernel_blocks import KernelBlocks
from tuner.space.tables.knob import Ints, Knob
from tuner.space.tables.lane_steps import LaneSteps, lane_steps
from tuner.space.tables.nest import TiledNest
from tuner.space.tables.shared_copies import SharedCopy


@dataclass(frozen=True)
class Sketch:
    """A family of schedules: one trace, and one knob for each of its decisions, in their order.

    A batch of N candidates is an N x K array of choices: a column for each knob, with indices of
    its options. `values` turns it into an N x D table of the decided numbers.

    Attributes:
        nests: The tiled blocks, the block with the most arithmetic first.
        tags: Properties that the nests do not show, such as `fused` or `padded_at_tile`.
        rules: The names of the rules that changed it, in the order in which they ran.
        zones: Loops for which different decisions are equivalent; see
            `tuner.space.tables.canonical_decisions`.
        excluded: Pairs of a column and a number. A row with that number produces the same program
            as a row of another sketch, or one that the sketch is not made for.
        labels: The labels of the decisions; see `tuner.space.tables.labels`.
        copies: On a GPU, the inputs that are copied into shared memory.
        kernels: On a GPU, the kernels.
    """

    name: str
    trace: Trace
    knobs: tuple[Knob, ...]
    nests: tuple[TiledNest, ...]
    tags: frozenset[str] = frozenset()
    rules: tuple[str, ...] = ()
    zones: tuple[Zone, ...] = ()
    excluded: tuple[tuple[int, int], ...] = ()
    labels: tuple[str, ...] = ()
    copies: tuple[SharedCopy, ...] = ()
    kernels: tuple[KernelBlocks, ...] = ()

    @property
    def size(self) -> int:
        """The number of candidates of the sketch, before any filter."""
        return prod(len(knob.options) for knob in self.knobs)

    @cached_property
    def num_options(self) -> Ints:
        """The number of options of each knob."""
        return np.array([len(knob.options) for knob in self.knobs], np.int64)

    @cached_property
    def lane_steps(self) -> dict[str, LaneSteps]:
        """The decisions about vectorized loops that the nests do not hold, by block."""
        return lane_steps(self.trace, self.knobs)

    def values(self, choices: Ints) -> Ints:
        """Return the table of a batch: the columns of all knobs side by side."""
        if not self.knobs:
            return np.empty((len(choices), 0), np.int64)
        return np.hstack([k.options[choices[:, i]] for i, k in enumerate(self.knobs)])

    def is_representative(self, choices: Ints) -> npt.NDArray[np.bool_]:
        """Return a mask of the rows of choices that are canonical and not in `excluded`."""
        values = self.values(choices)
        rows = canonical(self.zones, self.knobs, choices, values)
        mask: npt.NDArray[np.bool_] = (rows == choices).all(axis=1)
        for column, number in self.excluded:
            mask &= values[:, column] != number
        return mask

    def canonical(self, choices: Ints) -> Ints:
        """Return, for each row of choices, the canonical row of its program."""
        return canonical(self.zones, self.knobs, choices, self.values(choices))

    def draw(self, num: int, rng: np.random.Generator) -> Ints:
        """Draw choices evenly and independently."""
        return rng.integers(self.num_options, size=(num, len(self.knobs)))

    def candidate(self, choices: Sequence[int] | Ints) -> Candidate:
        """Return the candidate of one row of choices."""
        taken = [k.decision(int(c)) for k, c in zip(self.knobs, choices, strict=True)]
        return Candidate(self.name, self.trace.with_decisions(taken))

    def choices(self, candidate: Candidate) -> tuple[int, ...] | None:
        """Return the choices of a candidate; None if it is no candidate of this sketch."""
        decisions = candidate.trace.decisions.values()
        if candidate.sketch != self.name or len(decisions) != len(self.knobs):
            return None
        choices = [k.choice(d) for k, d in zip(self.knobs, decisions, strict=True)]
        legal_choices = tuple(c for c in choices if c is not None)
        return legal_choices if len(legal_choices) == len(choices) else None
