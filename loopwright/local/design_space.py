"""The design space of a program, to show to users and to sample from."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from compiler.backends.backend import host_labels
from compiler.ir.core.program import PrimFunc
from compiler.ir.verify.verify import verify_but_for_races
from compiler.keywords import suggests_keywords
from compiler.schedule.trace.trace import Trace
from compiler.target.target import Target, complete_target
from loopwright.tables import FittedTable
from loopwright.workload import WorkloadLike, to_func
from tuner.space.design_space import Count
from tuner.space.generate import design_space as generate
from tuner.space.tables.knob import Ints
from tuner.space.tables.sketch import Sketch as SketchTables
from tuner.task import Task

MAX_SAMPLE = 1 << 15
"""The largest sample: as many as the combinations that are counted one by one. Chosen."""


@dataclass(frozen=True, slots=True)
class SketchSummary:
    """A family of schedules, in words.

    Attributes:
        rules: The names of the rules that made it, in the order in which they ran.
        knobs: A line for each decision: its label, its options and their number.
        num_decisions: The number of combinations of options.
        num_schedules: The number of different programs among them that pass the static filter: an
            estimate from a sample, unless `is_exact`.
    """

    name: str
    rules: tuple[str, ...]
    knobs: tuple[str, ...]
    num_decisions: int
    num_schedules: int
    is_exact: bool


class DesignSpace:
    """The candidates of a search: sketches, each with open decisions.

    Attributes:
        func: The program.
        target: The target.
        sketches: In the order of their indices.
    """

    def __init__(
        self, func: PrimFunc, target: Target, rules: Collection[str] | None = None
    ) -> None:
        verify_but_for_races(func)
        self.func = func
        self.target = target
        self._tables = generate(Task(func, target), rules)
        self.sketches = tuple(
            _summarize(sketch, self._tables.count(index))
            for index, sketch in enumerate(self._tables.sketches)
        )

    def __repr__(self) -> str:
        """Say how large the space is."""
        total = _number(self.num_schedules, is_exact=self.is_exact)
        names = ", ".join(sketch.name for sketch in self.sketches) or "the default schedule only"
        return (
            f"<DesignSpace of {self.func.name} on {self.target.name}: {total} schedules; {names}>"
        )

    @property
    def num_schedules(self) -> int:
        """Return the number of schedules in all sketches; see `SketchSummary.num_schedules`."""
        return sum(sketch.num_schedules for sketch in self.sketches)

    @property
    def is_exact(self) -> bool:
        """Return whether all of them were counted."""
        return all(sketch.is_exact for sketch in self.sketches)

    def show(self) -> None:
        """Print the sketches: what made them, what they decide, how many schedules they hold."""
        title = f"design space of {self.func.name} on {self.target.name}"
        table = Table(title=title, show_lines=True)
        for heading in ("sketch, its rules", "decisions"):
            table.add_column(heading, overflow="fold")
        for heading in ("combinations", "schedules"):
            table.add_column(heading, justify="right")
        for sketch in self.sketches:
            schedules = _number(sketch.num_schedules, is_exact=sketch.is_exact)
            made = "\n".join([sketch.name, *(f"  {rule}" for rule in sketch.rules)])
            decided = "\n".join(sketch.knobs)
            table.add_row(made, decided, f"{sketch.num_decisions:,}", schedules)
        decisions = sum(sketch.num_decisions for sketch in self.sketches)
        total = _number(self.num_schedules, is_exact=self.is_exact)
        table.add_row("all", "", f"{decisions:,}", total)
        Console().print(FittedTable(table))

    def sample(self, num: int, *, sketch: int | None = None, seed: int = 0) -> list[Trace]:
        """Return up to `num` different traces, drawn at random.

        Within a sketch every schedule has the same chance; several sketches take turns.

        Args:
            sketch: The index of the only sketch to draw from.

        Raises:
            IndexError: If the sketch does not exist.
            ValueError: If `num` is less than 1, or more than 32,768.
            TypeError: If `num` is not an integer.
        """
        if not 1 <= operator.index(num) <= MAX_SAMPLE:
            raise ValueError(f"cannot draw {num} traces: expected 1 to {MAX_SAMPLE:,}")
        rng = np.random.default_rng(seed)
        chosen = range(len(self.sketches)) if sketch is None else [self._index(sketch)]
        drawn = [iter([(i, row) for row in self._tables.draw(i, num, rng)]) for i in chosen]
        traces: list[Trace] = []
        while drawn and len(traces) < num:
            turn = [next(rows, None) for rows in drawn]
            drawn = [rows for rows, pair in zip(drawn, turn, strict=True) if pair is not None]
            traces += [self._trace(*pair) for pair in turn if pair is not None]
        return traces[:num]

    def enumerate(self, sketch: int) -> Iterator[Trace]:
        """Yield every trace of a small sketch.

        Raises:
            IndexError: If the sketch does not exist.
            ValueError: If it has more than 32,768 combinations.
        """
        rows = self._tables.enumerate(self._index(sketch))
        return (self._trace(sketch, row) for row in rows)

    def _index(self, sketch: int) -> int:
        if sketch not in range(len(self.sketches)):
            range_text = f"the space has {len(self.sketches)}, from 0"
            raise IndexError(f"no sketch {sketch}: {range_text}")
        return sketch

    def _trace(self, sketch: int, row: Ints) -> Trace:
        return self._tables.sketches[sketch].candidate(row).trace


@suggests_keywords
def design_space(
    workload: WorkloadLike,
    target: Target | str = "cpu",
    *,
    rules: Collection[str] | None = None,
) -> DesignSpace:
    """Return the space that `tune` searches.

    Args:
        workload: A program, the text of a script, or an operator with its shape.
        rules: The names of the rules that may run; by default all, including added ones.

    Raises:
        ScriptError: If the text of a script is invalid.
        OperatorError: If the operator is unknown.
        VerifyError: If the program is not legal, such as one with an invalid attribute.
        TargetError: If the target is unknown.
        ValueError: If a rule does not exist.
        ScheduleRuleError: If an added rule raises, or makes a sketch that cannot be replayed.
    """
    return DesignSpace(to_func(workload), complete_target(target, host_labels), rules)


def _summarize(sketch: SketchTables, count: Count) -> SketchSummary:
    knobs = tuple(f"{label}: {k}" for label, k in zip(sketch.labels, sketch.knobs, strict=True))
    summary = (sketch.name, sketch.rules, knobs, sketch.size, count.number, count.is_exact)
    return SketchSummary(*summary)


def _number(number: int, *, is_exact: bool) -> str:
    if is_exact:
        return f"{number:,}"
    digits = max(len(str(number)) - 2, 0)
    return f"about {round(number, -digits):,}"
