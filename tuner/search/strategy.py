"""The contract of search strategies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tuner.candidate import Candidate
from tuner.trial import MeasuredTrial


@dataclass(frozen=True)
class Proposal:
    """A candidate to measure, with its score if there was a trained model."""

    candidate: Candidate
    predicted: float | None = None


class SearchStrategy(Protocol):
    """Proposes candidates of one task, round by round.

    Calls may come in any order, such as `ask, ask, tell, ask, tell`, so that a round is prepared
    while another is measured. The result of `ask` depends only on the task, the seed, the warm
    start, and the earlier calls with their arguments. So a search is repeated from recorded
    measurements, and continues in another process, by repeating these calls.
    """

    def ask(self, num: int) -> list[Proposal]:
        """Propose up to `num` different candidates, none of them proposed or told before.

        Fewer than `num` means that the space is exhausted.
        """
        ...

    def skip(self, proposed: Sequence[Sequence[Candidate]]) -> int:
        """Continue, before any other call, a search whose first calls of `ask` proposed these.

        Returns:
            How many of these calls need not be repeated. The next `ask` counts as the one after
            them. What they proposed is still to be told, as far as it was before that one.
        """
        ...

    def tell(self, trials: Sequence[MeasuredTrial]) -> None:
        """Add measurements, in the order of trial numbers.

        Trials need not have been proposed. Those of sketches that the space lacks, such as the
        default schedule's, have no effect.
        """
        ...

    def learned(self) -> bytes | None:
        """Return the trained cost model as stored bytes; None if nothing was learned."""
        ...
