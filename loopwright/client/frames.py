"""Tables for pandas, the one optional library of the client."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from uuid import UUID

from service.wire.models import TrialRead

if TYPE_CHECKING:
    import pandas as pd

# What a trial's row holds beside `job` and its times; traces are programs, and stay objects.
COLUMNS = (
    "number",
    "sketch",
    "error",
    "message",
    "run_secs",
    "max_error",
    "predicted",
    "build_secs",
    "check_secs",
    "time_secs",
    "worker",
    "created_at",
    "trace",
)


def trials_frame(trials: Iterable[tuple[UUID, TrialRead]]) -> pd.DataFrame:
    """Return trials, each with the id of its job, as a table.

    Raises:
        ModuleNotFoundError: If pandas is not installed.
    """
    rows: list[dict[str, Any]] = [
        {
            "job": str(job_id),
            "provisional_secs": trial.provisional_secs,
            "confirmed_secs": None if trial.final is None else trial.final.run_secs,
            "best_secs": trial.provisional_secs,  # the earlier name of `provisional_secs`
            **{name: getattr(trial, name) for name in COLUMNS},
        }
        for job_id, trial in trials
    ]
    times = ["provisional_secs", "confirmed_secs", "best_secs"]
    order = ["job", "number", "sketch", "error", *times, *COLUMNS[3:]]
    frame = _pandas().DataFrame(rows, columns=order)
    numbers = [*times, "max_error", "predicted", "build_secs", "check_secs", "time_secs"]
    return frame.astype(dict.fromkeys(numbers, "float64") | {"number": "int64"})


def _pandas() -> Any:
    try:
        return importlib.import_module("pandas")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "a table of trials requires pandas: pip install 'loopwright[pandas]'"
        ) from error
