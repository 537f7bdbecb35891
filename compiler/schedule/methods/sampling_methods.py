"""The methods of `Schedule` that make decisions: given ones, or drawn from its seed."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.ir.core.nodes import For, IntImm
from compiler.schedule.error import Refuse, refusal
from compiler.schedule.methods.primitive import primitive
from compiler.schedule.methods.queries import Queries
from compiler.schedule.primitives.sampling.sample import (
    fitted,
    fitted_partitioned,
    sample_index,
    sample_partitioned,
    sample_tile,
)
from compiler.schedule.primitives.sampling.sample_location import compute_locations, location_for
from compiler.schedule.trace.handle import BlockRV, ExprRV, LoopRV
from compiler.schedule.tree.tree import loop_at, loop_path

# A chosen bound: each factor becomes a loop, and a program has at most `limits.MAX_NEST`.
MAX_FACTORS = 256
MAX_WEIGHT = 1e300
"""The limit on a weight, so that a sum of many does not overflow."""
NO_FACTOR = -1
"""In a decision: the outermost factor of a loop whose extent is unknown."""


class SamplingMethods(Queries):
    """Sampling leaves the program unchanged; traces record the decision.

    A given decision is first fitted to the program; the fitted one is recorded.
    """

    @primitive(num_outputs="n")
    def sample_perfect_tile(
        self,
        loop: LoopRV,
        n: int,
        max_innermost_factor: int = 16,
        decision: Sequence[int] | None = None,
    ) -> list[ExprRV | None]:
        """Choose factors whose product is the extent of a loop; all choices are equally likely.

        Args:
            n: The number of factors; a decision with another number overrides it.
            max_innermost_factor: The greatest factor that is drawn for the last of several, -1
                for any.
            decision: The factors to choose; None draws them. From the last on, a factor is kept if
                it divides the remaining extent, else it becomes all of it. The first is the rest.

        Returns:
            The factors. For a loop whose extent is not a literal, None and the inner factors of a
            decision of `n` factors, or ones.

        Raises:
            ScheduleError: If there are fewer than two factors to draw, or a decision is invalid.
        """
        name = "sample_perfect_tile"
        loop_stmt, refuse = self._tiled(name, loop)
        max_innermost = self._value(name, max_innermost_factor)
        extent = loop_stmt.extent
        decided = _factors_of(decision, loop_stmt, refuse)
        if (
            not isinstance(extent, IntImm)
            and decided is not None
            and len(decided) != self._value(name, n)
        ):
            decided = None  # a decision from another program
        count = self._value(name, n) if decided is None else len(decided)
        _require_factors(count, 1 if max_innermost == -1 else 2, loop_stmt, refuse)
        if max_innermost != -1 and max_innermost < 1:
            raise refuse(
                f"max_innermost_factor is {max_innermost}: expected a positive number or -1",
                loop_stmt,
                "invalid_argument",
            )
        if not isinstance(extent, IntImm):
            factors = _undetermined_factors(count) if decided is None else (NO_FACTOR, *decided[1:])
        elif decided is not None:
            factors = fitted(extent.value, decided)
        else:
            factors = sample_tile(self._rng, extent.value, count, max_innermost)
        values = [self._new_value(f) if f != NO_FACTOR else None for f in factors]
        arguments = {"loop": loop, "n": len(factors), "max_innermost_factor": max_innermost}
        self._record(name, arguments, values, factors)
        return values

    @primitive(num_outputs="n")
    def sample_partitioned_tile(
        self,
        loop: LoopRV,
        n: int,
        partition_pos: int = 0,
        innerpart_factor: int = 1,
        decision: Sequence[int] | None = None,
    ) -> list[ExprRV]:
        """Choose factors whose product is a loop's extent, the inner ones a multiple of a number.

        All choices are equally likely.

        Args:
            n: The number of factors; a decision with another number overrides it.
            partition_pos: The number of outer factors.
            innerpart_factor: A divisor of the product of the inner factors.
            decision: The factors to choose; None draws them. They are fitted to the extent as those
                of `sample_perfect_tile`. If the product of the inner ones is not a multiple, the
                first of them becomes the number itself.

        Returns:
            The factors. If the number does not divide the extent, or that is not a literal, -1 and
            ones.

        Raises:
            ScheduleError: If there are fewer than two factors to draw, `partition_pos` is not a
                position among them, the number is not positive, or a decision is invalid.
        """
        name = "sample_partitioned_tile"
        loop_stmt, refuse = self._tiled(name, loop)
        inner_start = self._value(name, partition_pos)
        inner_multiple = self._value(name, innerpart_factor)
        extent = _extent_in_multiples(loop_stmt, inner_multiple, refuse)
        decided = None if extent is None else _factors_of(decision, loop_stmt, refuse)
        count = self._value(name, n) if decided is None else len(decided)
        _require_partition(count, inner_start, inner_multiple, loop_stmt, refuse)
        if extent is None:
            factors = _undetermined_factors(count)
        elif decided is not None:
            factors = fitted_partitioned(extent, decided, inner_start, inner_multiple)
        else:
            factors = sample_partitioned(self._rng, extent, count, inner_start, inner_multiple)
        values = [self._new_value(factor) for factor in factors]
        arguments = {
            "loop": loop,
            "n": count,
            "partition_pos": inner_start,
            "innerpart_factor": inner_multiple,
        }
        self._record(name, arguments, values, factors)
        return values

    @primitive()
    def sample_categorical(
        self, candidates: Sequence[int], probs: Sequence[float], decision: int | None = None
    ) -> ExprRV:
        """Choose one of some integers.

        Args:
            probs: The relative probability of each candidate.
            decision: The position of the candidate to choose; None draws it.

        Raises:
            ScheduleError: If there are no candidates, they are not integers, the probabilities are
                not one for each, none of them is above zero, or the decision is not a position.
        """
        name = "sample_categorical"
        numbers = [self._value(name, candidate) for candidate in candidates]
        if not numbers or len(numbers) != len(probs):
            reason = f"{len(numbers)} candidates have {len(probs)} probabilities"
            raise self._fail(name, reason)
        if not all(map(_is_weight, probs)) or not any(probs):
            raise self._fail(name, f"{list(probs)} are not probabilities, or all zero")
        weights = [float(p) for p in probs]
        drawn = decision is None
        chosen = sample_index(self._rng, weights) if drawn else self._value(name, decision)
        if not 0 <= chosen < len(numbers):
            reason = f"decision {chosen} is not a position among {len(numbers)} candidates"
            raise self._fail(name, reason)
        value = self._new_value(numbers[chosen])
        arguments: dict[str, object] = {"candidates": tuple(numbers), "probs": tuple(weights)}
        self._record(name, arguments, [value], chosen)
        return value

    @primitive()
    def sample_compute_location(self, block: BlockRV | str, decision: int | None = None) -> LoopRV:
        """Choose where to compute a block; all possible locations are equally likely.

        Args:
            decision: The location to choose; None draws one. -2 inlines the block into its
                consumers, -1 leaves it unchanged, others are loops around the first consumer,
                counted from the outermost. If it is not possible, the possible location before it
                is taken.

        Returns:
            An argument for `compute_at`: a loop, or a handle that stands for one of the others.

        Raises:
            ScheduleError: If the block does not exist, or is the root.
        """
        name = "sample_compute_location"
        handle, func, block_name = self._find(name, block)
        locations = compute_locations(func, block_name)
        if decision is None:
            chosen = self._rng.choice(locations)
        else:
            chosen = location_for(locations, self._value(name, decision))
        at = chosen.at
        loop = self._new_special_location(at) if isinstance(at, str) else self._new_loop(func, at)
        self._record(name, {"block": handle}, [loop], chosen.number)
        return loop

    def _tiled(self, primitive: str, loop: LoopRV) -> tuple[For, Refuse]:
        func, var = self._loop(primitive, loop)
        refuse = refusal(primitive, func)
        return loop_at(loop_path(func, var, refuse)), refuse


def _factors_of(decision: object, loop: For, refuse: Refuse) -> tuple[int, ...] | None:
    """Return the factors of a decision, or refuse: all but the first must be positive."""
    if decision is None:
        return None
    items = tuple(decision) if isinstance(decision, list | tuple) else ()
    factors = tuple(f for f in items if isinstance(f, int) and not isinstance(f, bool))
    if not items or len(factors) != len(items) or any(factor < 1 for factor in factors[1:]):
        raise refuse(
            f"decision {decision!r} is not a list of positive integers", loop, "invalid_argument"
        )
    return factors


def _is_weight(probability: object) -> bool:
    return isinstance(probability, int | float) and 0 <= probability <= MAX_WEIGHT


def _require_factors(count: int, min_count: int, loop: For, refuse: Refuse) -> None:
    if not min_count <= count <= MAX_FACTORS:
        reason = f"loop {loop.var.name} can't be cut into {count} factors"
        raise refuse(
            f"{reason}: {min_count} to {MAX_FACTORS} are expected", loop, "invalid_argument"
        )


def _extent_in_multiples(loop: For, multiple: int, refuse: Refuse) -> int | None:
    """Return the extent of a loop; None if it is unknown or not a multiple of a number."""
    if multiple < 1:
        reason = f"innerpart_factor is {multiple}: expected a positive number"
        raise refuse(reason, loop, "invalid_argument")
    if not isinstance(loop.extent, IntImm) or loop.extent.value % multiple:
        return None
    return loop.extent.value


def _require_partition(
    count: int, inner_start: int, inner_multiple: int, loop: For, refuse: Refuse
) -> None:
    """Refuse factors that can't be divided into outer and inner ones at a position."""
    min_count = 1 if (inner_start, inner_multiple) == (0, 1) else 2
    _require_factors(count, min_count, loop, refuse)
    if not 0 <= inner_start < count and (inner_start, inner_multiple) != (count, 1):
        reason = f"partition_pos is {inner_start}: no inner factor of {count} begins there"
        raise refuse(reason, loop, "invalid_argument")


def _undetermined_factors(count: int) -> tuple[int, ...]:
    """Return the factors for an unknown extent: all of it in the first."""
    return (NO_FACTOR, *(1 for _ in range(count - 1)))
