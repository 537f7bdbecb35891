"""The result of `lw.tune`: its trials, and the best of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compiler.backends.module import Module
from compiler.driver import build
from compiler.ir.core.program import PrimFunc
from compiler.runtime.measurement import Measurement
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.trace import Trace
from compiler.target.target import Target
from loopwright.client.progress import format_ratio, format_secs
from service.wire.times import RunTime, TimeKind, speed_up
from tuner.finish.baseline import Baseline
from tuner.finish.contest import Finalist, Outcome
from tuner.finish.space_distance import SpaceDistance
from tuner.finish.whole_space import WholeSpace
from tuner.loop.budget import StopReason


@dataclass(frozen=True, slots=True, repr=False)
class Trial:
    """One measured candidate.

    Its time is provisional, the shortest sample of the search, unless it was measured again in the
    final comparison, side by side with other finalists. Then `final` has the rounds, and the time
    is confirmed, their median. `kind` says which it is. On an emulated `target` it is an estimate.
    """

    number: int
    sketch: str
    trace: Trace
    measurement: Measurement
    final: Finalist | None = None
    target: Target | None = None

    def __repr__(self) -> str:
        outcome = str(self.measurement.error)
        if self.measurement.ok:
            outcome = f"{format_secs(self.run_secs)} {self.kind}"
        return f"<Trial {self.number} of sketch {self.sketch}: {outcome}>"

    @property
    def run_secs(self) -> float:
        """Return the seconds of one run: confirmed if possible, else provisional.

        Infinity if the candidate failed.
        """
        return self.measurement.best_secs if self.final is None else self.final.run_secs

    @property
    def provisional_secs(self) -> float:
        """Return the shortest sample of the search, in seconds a run; infinity for a failure."""
        return self.measurement.best_secs

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return the 95% confidence interval of `run_secs`; None while it is provisional."""
        return None if self.final is None else self.final.interval

    @property
    def kind(self) -> TimeKind:
        """Return which statistic `run_secs` is, or that it is an estimate."""
        if self.time.kind is TimeKind.ESTIMATED:
            return TimeKind.ESTIMATED
        return TimeKind.PROVISIONAL if self.final is None else TimeKind.CONFIRMED

    @property
    def time(self) -> RunTime:
        """Return its time, provisional or confirmed."""
        target = "" if self.target is None else self.target.name
        return RunTime(self.run_secs, self.interval, self.provisional_secs, target)


@dataclass(frozen=True, repr=False)
class TuneResult:
    """The result of tuning; `trials` are in order, and trial 0 is the default schedule.

    There may be no trial 0 if time was limited. `stop_reason` says why it ended: `"budget"`,
    `"time_budget"`, `"plateau"`, `"exhausted"` (there are no more candidates) or `"cancelled"`.
    `baseline` is NumPy on the same inputs, timed in turns with the best; None if NumPy has no such
    operator, or was not timed. `whole_space` says how certain the best is, if all schedules of
    the space were measured; None otherwise. `space_distance` estimates how far the best is from
    the best of a larger space; None without a basis (`docs/tuning.md`).
    """

    func: PrimFunc
    target: Target
    trials: tuple[Trial, ...]
    stop_reason: StopReason
    baseline: Baseline | None = None
    whole_space: WholeSpace | None = None
    space_distance: SpaceDistance | None = None

    def __repr__(self) -> str:
        best, ratio = self.best, self.speedup
        claim = self.whole_space or self.space_distance
        faster = "" if ratio is None else f", {format_ratio(ratio)} the default"
        return (
            f"<TuneResult of {self.func.name} on {self.target.name}: {len(self.trials)} trials,"
            f" best {format_secs(best.run_secs)} {best.kind}{faster}"
            f"{'' if claim is None else f', {claim}'}>"
        )

    @property
    def best(self) -> Trial:
        """Return the trial to use; never slower than the default, if that was measured.

        It won the final comparison. Of several tied trials it is the first, unless another is
        faster by more than a percent. Its time is confirmed. Without a final comparison, it is the
        trial with the shortest sample, and its time is provisional.
        """
        winners = (t for t in self.trials if t.final and t.final.outcome is Outcome.KEPT)
        fastest = min(self.trials, key=lambda trial: (trial.provisional_secs, trial.number))
        return next(winners, fastest)

    @property
    def speedup(self) -> float | None:
        """Return the speed-up of the best over the default schedule.

        Both times are confirmed, or both provisional. None if the default schedule failed, or was
        not measured.
        """
        if self.default is None or not self.default.measurement.ok:
            return None
        ratio = speed_up(self.default.time, self.best.time)
        return None if ratio is None else ratio.ratio

    @property
    def is_tied(self) -> bool:
        """Return whether other trials may be as fast as the best."""
        return any(t.final and t.final.outcome is Outcome.TIED for t in self.trials)

    @property
    def default(self) -> Trial | None:
        """Return the trial of the default schedule; None if there was no time to measure it."""
        return self.trials[0] if self.trials[0].number == 0 else None

    @property
    def default_time(self) -> RunTime:
        """Return the time of the default schedule, without seconds if it is unknown."""
        default = self.default
        return default.time if default and default.measurement.ok else RunTime(None)

    def schedule(self) -> Schedule:
        """Return the program under the best schedule."""
        return self.best.trace.apply_to(self.func)

    def build(self, const_params: Mapping[str, Any] | None = None) -> Module:
        """Compile the program under the best schedule; see `loopwright.build`."""
        return build(self.schedule(), self.target, const_params)
