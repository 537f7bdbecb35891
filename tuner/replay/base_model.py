"""The base model, with which a search begins if there are no measurements yet.

It is trained from the packaged sets: once, in a few seconds, at first use. Then it is stored in a
directory under the hash of its inputs: the sets, the schema of the features, and the settings of
the training.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile

import xgboost

from tuner.cost_model import stored_format, stored_model
from tuner.cost_model.boosting import SETTINGS, STORE_TREES, boost
from tuner.cost_model.cost_model import CostModelError, Samples
from tuner.replay import packaged
from tuner.space.registry import SEARCH_SPACES

SEED = 0
KIND = "cpu"
"""The kind of the targets of all packaged measurements, and so of the base model."""


@dataclass(frozen=True)
class BaseModel:
    """A stored model, and its provenance.

    Attributes:
        model: As `XGBoostModel(base=...)` reads it.
        num_tasks, num_samples: The size of its training data.
        fingerprint: SHA-256 of all inputs, in hexadecimal.
    """

    model: bytes
    num_tasks: int
    num_samples: int
    fingerprint: str


def base_model(directory: Path) -> BaseModel:
    """Return the base model from `directory`, or train one and store it there."""
    fingerprint = _fingerprint()
    path = directory / "models" / fingerprint[:32]
    stored = _load(path, fingerprint)
    if stored is not None:
        return stored
    trained = _trained(packaged.packaged_samples(), fingerprint)
    with suppress(OSError):  # if it can't be stored, it is trained again next time
        _save(trained, path)
    return trained


def _trained(samples: Sequence[Samples], fingerprint: str) -> BaseModel:
    model = stored_model.encode(boost(samples, SEED, STORE_TREES), KIND)
    return BaseModel(model, len(samples), sum(len(s.run_secs) for s in samples), fingerprint)


def _fingerprint() -> str:
    decides = (
        packaged.fingerprint(),
        packaged.ROWS,
        SEARCH_SPACES.find(KIND).feature_version,
        stored_format.FORMAT_VERSION,
        SETTINGS,
        xgboost.__version__,
    )
    return sha256(repr(decides).encode()).hexdigest()


def _load(path: Path, fingerprint: str) -> BaseModel | None:
    """Return the model in a file; None if there is none, or if it is damaged."""
    try:
        head, _, model = path.read_bytes().partition(b"\n")
        stored = BaseModel(model, **json.loads(head))
        stored_format.check(stored.model, KIND)
    except (OSError, ValueError, TypeError, CostModelError):
        return None
    return stored if stored.fingerprint == fingerprint else None


def _save(trained: BaseModel, path: Path) -> None:
    """Write a file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    head = asdict(trained)
    model = head.pop("model")
    with NamedTemporaryFile(dir=path.parent, prefix=f"{path.name}.", delete=False) as file:
        file.write(json.dumps(head).encode() + b"\n" + model)
    os.replace(file.name, path)
