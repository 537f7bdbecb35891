"""The methods of `Schedule` that take decisions: given ones, or drawn from its seed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from compiler.schedule.error import refusal
from compiler.schedule.handle import ExprRV, LoopRV
from compiler.schedule.plain_loop import literal_extent
from compiler.schedule.queries import Queries
from compiler.schedule.sample import sample_index, sample_tile
from compiler.schedule.tree import loop_at, loop_path


class SamplingMethods(Queries):
    """Sampling leaves the program as it is; what was decided is recorded."""

    def sample_perfect_tile(
        self,
        loop: LoopRV,
        n: int,
        max_innermost_factor: int = 16,
        decision: Sequence[int] | None = None,
    ) -> list[ExprRV]:
        """Choose factors whose product is the extent of a loop; all choices are equally likely.

        Args:
            n: How many factors.
            max_innermost_factor: The greatest that the last of them may be, if there are several.
            decision: The factors to choose; None draws them.

        Raises:
            ScheduleError: If the loop is none to split, or the decision is no such factors.
        """
        func, var = self._loop("sample_perfect_tile", loop)
        refuse = refusal("sample_perfect_tile", func)
        place = loop_at(loop_path(func, var, refuse))
        extent = literal_extent(place, refuse)
        if n < 1 or max_innermost_factor < 1:
            reason = f"n = {n} and max_innermost_factor = {max_innermost_factor} must be positive"
            raise refuse(reason, place)
        if decision is None:
            factors = sample_tile(self._rng, extent, n, max_innermost_factor)
        else:
            factors = tuple(decision)
            if len(factors) != n or min(factors) < 1 or math.prod(factors) != extent:
                reason = f"decision {list(factors)} is not {n} factors of {extent}, the extent of"
                raise refuse(f"{reason} loop {var.name}", place)
            if n > 1 and factors[-1] > max_innermost_factor:
                reason = f"the last factor of decision {list(factors)} is greater than"
                raise refuse(f"{reason} max_innermost_factor = {max_innermost_factor}", place)
        values = [self._new_value(factor) for factor in factors]
        arguments = {"loop": loop, "n": n, "max_innermost_factor": max_innermost_factor}
        self._record("sample_perfect_tile", arguments, values, factors)
        return values

    def sample_categorical(
        self, candidates: Sequence[int], probs: Sequence[float], decision: int | None = None
    ) -> ExprRV:
        """Choose one of some integers.

        Args:
            probs: How likely each candidate is.
            decision: The position of the candidate to choose; None draws it.

        Raises:
            ScheduleError: If there are no candidates, the probabilities are not one for each,
                none of them is above zero, or the decision is no position.
        """
        name = "sample_categorical"
        if not candidates or len(candidates) != len(probs):
            reason = f"{len(candidates)} candidates have {len(probs)} probabilities"
            raise self._fail(name, reason)
        if not all(math.isfinite(p) and p >= 0 for p in probs) or not any(probs):
            raise self._fail(name, f"probabilities {list(probs)} are negative, or all zero")
        chosen = sample_index(self._rng, probs) if decision is None else decision
        if not 0 <= chosen < len(candidates):
            reason = f"decision {chosen} is no position among {len(candidates)} candidates"
            raise self._fail(name, reason)
        value = self._new_value(candidates[chosen])
        arguments: dict[str, object] = {
            "candidates": tuple(candidates),
            "probs": tuple(float(p) for p in probs),
        }
        self._record(name, arguments, [value], chosen)
        return value
