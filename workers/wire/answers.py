"""The answers of a worker: JSON text, read without trust.

    {"found": [measurement, ...]}    of candidates
    {"found": [[measurement, ...], ...]}    of rounds
    {"error": "why there is nothing"}

An error of a worker is a text, not a pickled exception.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from compiler.runtime.measurement import Measurement

MAX_CHARS = 64 << 20
"""Limit of an answer, far above that of a batch of 64 candidates. Chosen."""
_MAX_ERROR_CHARS = 2000
"""Limit of an error text. Chosen for a readable message."""


class AnswerError(ValueError):
    """A worker answered with an error, or with an invalid answer."""


def write(find: Callable[[], Any]) -> str:
    """Return the result of `find` as an answer, or its error."""
    try:
        return json.dumps({"found": find()}, allow_nan=False)
    except Exception as error:
        return of_error(error)


def of_error(error: Exception) -> str:
    """Return an error as an answer."""
    return json.dumps({"error": f"{type(error).__name__}: {error}"[:_MAX_ERROR_CHARS]})


def read_batch(answer: object, num_candidates: int) -> list[Measurement]:
    """Return the measurements of a batch.

    Raises:
        AnswerError: If the answer is an error, or does not fit.
    """
    return _measurements(read_found(answer), num_candidates)


def read_rounds(answer: object, num_contestants: int, max_rounds: int) -> list[list[Measurement]]:
    """Return rounds, one or more.

    Raises:
        AnswerError: If the answer is an error, or does not fit.
    """
    rounds = read_found(answer)
    if not isinstance(rounds, list) or not 1 <= len(rounds) <= max_rounds:
        raise AnswerError(f"a worker answered with something else than 1 to {max_rounds} rounds")
    return [_measurements(measured, num_contestants) for measured in rounds]


def read_found(answer: object) -> Any:
    """Return what a worker found, which is not trusted.

    Raises:
        AnswerError: If the answer is an error, or no answer.
    """
    if not isinstance(answer, str) or len(answer) > MAX_CHARS:
        raise AnswerError(f"a worker answered with no text, but {type(answer).__name__}")
    try:
        read = json.loads(answer)
    except (ValueError, RecursionError) as error:
        raise AnswerError("a worker answered with something else than JSON") from error
    match read:
        case {"error": str(reason)}:
            raise AnswerError(reason)
        case {"found": result}:
            return result
        case _:
            raise AnswerError("a worker answered with neither measurements nor an error")


def _measurements(items: object, num: int) -> list[Measurement]:
    if not isinstance(items, list) or len(items) != num:
        raise AnswerError(f"a worker answered with something else than {num} measurements")
    try:
        return [Measurement.from_json(obj) for obj in items]
    except (TypeError, ValueError) as error:
        raise AnswerError(f"a worker answered with a wrong measurement: {error}") from error
