"""The libraries that the schedules of a search may call."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from compiler.executor.functions.registry import BUILT_IN, registered_func
from compiler.ir.core.library_calls import library_functions
from compiler.target.target import Target
from loopwright.workload import check_names
from tuner.candidate import Candidate
from tuner.space.generate import design_space
from tuner.space.own_rules import own_rules
from tuner.space.registry import search_space_of
from tuner.space.rules.cpu.library_calls import LIBRARIES, library_rule
from tuner.space.rules.rule import rule_name
from tuner.task import Task
from tuner.trial import MeasuredTrial
from tuner.warm_start import WarmStart


@dataclass(frozen=True)
class LibraryChoice:
    """Libraries by name, none by default."""

    libraries: tuple[str, ...] = ()

    @classmethod
    def of(cls, names: Collection[str]) -> LibraryChoice:
        """Return the choice of a user.

        Raises:
            TypeError: If it is no list of names.
            ValueError: If a library is unknown.
            UnknownFunctionError: If a library is not installed.
        """
        check_names("libraries", names)
        for name in names:
            if name not in LIBRARIES:
                near = difflib.get_close_matches(name, LIBRARIES, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(LIBRARIES)}"
                raise ValueError(f"unknown library {name!r}: {hint}")
        choice = cls(tuple(dict.fromkeys(names)))
        for function in choice.functions:
            registered_func(function)
        return choice

    @property
    def functions(self) -> tuple[str, ...]:
        """Return the names of the functions of the libraries."""
        return tuple(name for name in BUILT_IN if name.partition(".")[0] in self.libraries)

    def called(self, tasks: Sequence[Task]) -> tuple[str, ...]:
        """Return the names of the functions that candidates may call: those of programs, too."""
        of_programs = (name for task in tasks for name in library_functions(task.func.body))
        return tuple(dict.fromkeys((*self.functions, *of_programs)))

    def rules(self, rules: Collection[str] | None, target: Target) -> Collection[str] | None:
        """Return the names of the rules of a search, with those that call the libraries.

        Raises:
            ValueError: If the libraries do not run on such a target.
        """
        if not self.libraries:
            return rules
        space = search_space_of(target)
        if not space.optional_rules:
            names = ", ".join(self.libraries)
            raise ValueError(f"kernels for {target.name!r} call no library: got {names}")
        default = (*space.rule_names, *map(rule_name, own_rules()))
        chosen = default if rules is None else tuple(rules)
        return (*chosen, *map(library_rule, self.libraries))

    def first(self, task: Task, warm_start: WarmStart, rules: Collection[str] | None) -> WarmStart:
        """Return a warm start that begins with the calls of the libraries."""
        if not self.libraries:
            return warm_start
        candidates = {c.key: c for c in (*self._calls(task, rules), *warm_start.candidates)}
        return replace(warm_start, candidates=tuple(candidates.values()))

    def fastest(self, trials: Sequence[MeasuredTrial]) -> tuple[int, ...]:
        """Return the number of the fastest trial that calls a library, if one is correct.

        The final comparison includes it, also if its trial was slow: a library's threads suffer
        more from other load than those of a kernel.
        """
        called = [t for t in trials if self._is_call(t.candidate.sketch) and t.measurement.ok]
        fastest = min(called, key=lambda trial: trial.best_secs, default=None)
        return () if fastest is None else (fastest.number,)

    def _is_call(self, sketch: str) -> bool:
        return sketch.partition("/")[0] in self.libraries

    def _calls(self, task: Task, rules: Collection[str] | None) -> list[Candidate]:
        """Return a candidate of each sketch that calls a library, for each number of threads.

        Other knobs of the sketch keep their first option.
        """
        sketches = design_space(task, rules).sketches
        called = [sketch for sketch in sketches if self._is_call(sketch.name)]
        return [
            sketch.candidate([threads] + [0] * (len(sketch.knobs) - 1))
            for sketch in called
            for threads in range(len(sketch.knobs[0].options))
        ]
