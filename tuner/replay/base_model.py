"""The base model, with which a search begins if there are no measurements yet.

It is trained from the packaged sets, and comes with them, so that the first search on a machine
does not wait for a training: `python -m benchmarks.tuner.train_base` makes it. Its fingerprint is
the hash of its inputs: the sets, the schema of the features, and the settings of the training. If
one of them is another, it is trained once, in seconds, and stored in a directory.
"""

from __future__ import annotations

import json
import lzma
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile

from tuner.cost_model import stored_format, stored_model
from tuner.cost_model.boosting import SETTINGS, boost, without_statistics
from tuner.cost_model.cost_model import CostModelError, Samples
from tuner.replay import packaged
from tuner.space.registry import SEARCH_SPACES

SEED = 0
KIND = "cpu"
"""The kind of the targets of all packaged measurements, and so of the base model."""
PACKAGED = packaged.FOLDER / "base_model.xz"
"""The base model of the packaged sets."""


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
    """Return the base model from `directory` or the package, or train one and store it there."""
    fingerprint = _fingerprint()
    path = directory / "models" / fingerprint[:32]
    stored = _load(path, fingerprint)
    if stored is not None:
        return stored
    model = packaged_model()
    if model is None or model.fingerprint != fingerprint:
        model = trained_model()
    with suppress(OSError):  # if it can't be stored, it is read or trained again next time
        _save(model, path)
    return model


def packaged_model() -> BaseModel | None:
    """Return the model that comes with the package; None if there is none, or if it is damaged."""
    try:
        return _read(lzma.decompress(PACKAGED.read_bytes()))
    except (OSError, ValueError, TypeError, lzma.LZMAError, CostModelError):
        return None


def trained_model() -> BaseModel:
    """Train the base model of the packaged sets."""
    return _trained(packaged.packaged_samples(), _fingerprint())


def write_packaged() -> BaseModel:
    """Train the base model, and put it beside the packaged sets."""
    trained = trained_model()
    PACKAGED.write_bytes(lzma.compress(_written(trained), preset=9))
    return trained


def _trained(samples: Sequence[Samples], fingerprint: str) -> BaseModel:
    model = stored_model.encode(without_statistics(boost(samples, SEED)), KIND)
    return BaseModel(model, len(samples), sum(len(s.run_secs) for s in samples), fingerprint)


def _fingerprint() -> str:
    decides = (
        packaged.fingerprint(),
        packaged.ROWS,
        SEARCH_SPACES.find(KIND).feature_version,
        stored_format.FORMAT_VERSION,
        SETTINGS,
    )
    return sha256(repr(decides).encode()).hexdigest()


def _load(path: Path, fingerprint: str) -> BaseModel | None:
    """Return the model in a file; None if there is none, or if it is damaged."""
    try:
        stored = _read(path.read_bytes())
    except (OSError, ValueError, TypeError, CostModelError):
        return None
    return stored if stored.fingerprint == fingerprint else None


def _save(trained: BaseModel, path: Path) -> None:
    """Write a file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=path.parent, prefix=f"{path.name}.", delete=False) as file:
        file.write(_written(trained))
    os.replace(file.name, path)


def _written(trained: BaseModel) -> bytes:
    """Return a line that describes the model, then the model."""
    head = asdict(trained)
    model: bytes = head.pop("model")
    return json.dumps(head).encode() + b"\n" + model


def _read(content: bytes) -> BaseModel:
    head, _, model = content.partition(b"\n")
    stored = BaseModel(model, **json.loads(head))
    stored_format.check(stored.model, KIND)
    return stored
