"""The limit on loops whose end is not known: a program that never ends becomes an error."""

from __future__ import annotations


class WhileSteps:
    """Counts the iterations of all `while` loops in one run of a program.

    Args:
        error: The error to raise beyond the limit.
        limit: The number of iterations.
    """

    def __init__(self, error: type[Exception], limit: int) -> None:
        self._error = error
        self._limit = limit
        self._left = limit

    def count(self) -> None:
        """Count one iteration.

        Raises:
            Exception: Of the given type, if the program has had too many.
        """
        self._left -= 1
        if self._left < 0:
            raise self._error(
                f"the while loops ran for {self._limit} iterations, which is the limit: "
                "they may never end"
            )
