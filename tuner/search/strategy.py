"""The contract of search strategies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tuner.candidate import Candidate
from tuner.trial import MeasuredTrial


@dataclass(frozen=True)
class Proposal:
    """A candidate to measure, with the cost model's score if a trained model was asked."""

    candidate: Candidate
    predicted: float | None = None


class SearchStrategy(Protocol):
    """Proposes candidates of one task, round by round.

    Asks and tells may come in any order, such as `ask, ask, tell, ask, tell`, so that a round is
    prepared while another is measured. What `ask` returns depends only on the task, the seed, the
    warm start, and the sequence of asks and tells up to then, with what was asked and told: so a
    search is repeated from recorded measurements, and goes on in another process, if that sequence
    is.
    """

    def ask(self, num: int) -> list[Proposal]:
        """Propose up to `num` different candidates, none of which was proposed or told before.

        Fewer than `num` means that the space holds no more.
        """
        ...

    def tell(self, trials: Sequence[MeasuredTrial]) -> None:
        """Take in what was measured, in the order of trial numbers.

        Trials need not have been proposed. Those of sketches that the space does not have, such as
        the default schedule's, change nothing.
        """
        ...

    def learned(self) -> bytes | None:
        """Return the trained cost model as stored bytes; None if nothing was learned."""
        ...
