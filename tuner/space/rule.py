"""The contract of schedule rules."""

from __future__ import annotations

from typing import Protocol

from tuner.space.draft import Draft


class ScheduleRule(Protocol):
    """One idea of how to schedule a kind of block; all rules together make the design space.

    Rules run one after another over the whole program. A rule extends a draft in place and returns
    it, alone or with forks where there is a choice of structure; a draft that it does not apply to
    is returned as it was. A `ScheduleError` drops the draft.
    """

    def apply(self, draft: Draft) -> list[Draft]:
        """Return the drafts that come of one."""
        ...
