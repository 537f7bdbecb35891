"""The contract of search strategies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tuner.candidate import Candidate
from tuner.trial import Trial


@dataclass(frozen=True)
class Proposal:
    """A candidate to measure, with the cost model's score if a trained model chose it."""

    candidate: Candidate
    predicted: float | None = None


class SearchStrategy(Protocol):
    """Proposes candidates of one task, round by round.

    What `ask` returns depends only on the task, the seed, and what was told, round by round: so a
    search can be repeated from recorded measurements, and resumed in another process. `ask` twice
    without a `tell` between gives the same proposals.
    """

    def ask(self, num: int) -> list[Proposal]:
        """Propose up to `num` different candidates, none of which was told before.

        Fewer than `num` means that the space holds no more.
        """
        ...

    def tell(self, trials: Sequence[Trial]) -> None:
        """End a round: take in what was measured in it, in the order of trial numbers.

        Trials of sketches that the space does not have, such as the default schedule's, are only
        remembered as measured.
        """
        ...

    def learned(self) -> bytes | None:
        """Return the trained cost model as stored bytes; None if nothing was learned."""
        ...
