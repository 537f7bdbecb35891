"""Actions that are under way, in groups: committed together, waited for by their number."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Owner:
    committed: list[list[Callable[[], None]]] = field(default_factory=list)
    current: list[Callable[[], None]] = field(default_factory=list)


class PendingGroups:
    """The actions of each thread or warpgroup. They run when their group is waited for."""

    def __init__(self) -> None:
        self._owners: dict[int, _Owner] = defaultdict(_Owner)

    def start(self, owner: int, action: Callable[[], None]) -> None:
        """Add an action to the current group."""
        self._owners[owner].current.append(action)

    def commit(self, owner: int) -> None:
        """End the current group."""
        groups = self._owners[owner]
        groups.committed.append(groups.current)
        groups.current = []

    def wait(self, owner: int, num_pending: int) -> None:
        """Run all committed groups but for the last ones."""
        committed = self._owners[owner].committed
        while len(committed) > num_pending:
            for action in committed.pop(0):
                action()

    def finish(self) -> None:
        """Run all actions."""
        for owner in list(self._owners):
            self.commit(owner)
            self.wait(owner, 0)
