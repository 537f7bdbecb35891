"""Tables for pandas, the one optional library of the client."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from uuid import UUID

from service.wire.models import ConditionsRead, ResourcesRead, TrialRead

if TYPE_CHECKING:
    import pandas as pd

_TIMES = ("provisional_secs", "confirmed_secs", "best_secs")
_FIRST = ("job", "number", "sketch", "error", *_TIMES)
_NESTED = ("final", "resources", "conditions")
_FIELDS = tuple(name for name in TrialRead.model_fields if name not in _NESTED)
_RESOURCES = tuple(ResourcesRead.model_fields)
_CONDITIONS = tuple(ConditionsRead.model_fields)
_ALL = (*_FIELDS, *_RESOURCES, *_CONDITIONS)
COLUMNS = (*_FIRST, *(name for name in _ALL if name not in (*_FIRST, "trace")), "trace")
"""All fields of a trial, its job, its times, the resources of its kernel, and the conditions on a
GPU; traces are programs, and stay objects."""
_SECS = ("build_secs", "check_secs", "time_secs")
_FLOATS = (
    *(*_TIMES, "max_error", "predicted", *_SECS, *_RESOURCES),
    *("sm_mhz", "watts", "celsius"),
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
            **{name: getattr(trial, name) for name in _FIELDS},
            **{name: getattr(trial.resources, name, None) for name in _RESOURCES},
            **{name: getattr(trial.conditions, name, None) for name in _CONDITIONS},
        }
        for job_id, trial in trials
    ]
    frame = _pandas().DataFrame(rows, columns=COLUMNS)
    return frame.astype(dict.fromkeys(_FLOATS, "float64") | {"number": "int64"})


def _pandas() -> Any:
    try:
        return importlib.import_module("pandas")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "a table of trials requires pandas: pip install 'loopwright[pandas]'"
        ) from error
