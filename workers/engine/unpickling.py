"""The names that Dask may unpickle in our processes: a short list, and nothing else.

Dask pickles tasks, results and errors, and unpickles them in the scheduler's process, in the
coordinator (often the same process) and in workers. A worker runs candidates, so its messages must
be data. Answers are texts (`workers.engine.dask_worker`), and everything else in a pickle is
limited to the names below: with them nothing can be opened, run or imported. Any other name becomes
`Refused`, an object that accepts every operation and does nothing.
"""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import structlog
from distributed.protocol.serialize import dask_deserialize

_NAMES = frozenset(
    {
        ("builtins", "bytes"),
        ("builtins", "str"),
        ("dask._expr", "Expr._reconstruct"),
        ("dask._expr", "LLGExpr"),
        ("dask._task_spec", "Task"),
        ("distributed.scheduler", "KilledWorker"),
        ("distributed.shuffle._worker_plugin", "ShuffleWorkerPlugin"),
        ("workers.engine.dask_worker", "compare_batch"),
        ("workers.engine.dask_worker", "measure_batch"),
        ("workers.engine.dask_worker", "remote_step"),
    }
)

_log = structlog.get_logger()
_told: set[tuple[str, str]] = set()
_MAX_TOLD = 100
"""Refused names that are logged, each once: a peer may send any number of them. Chosen."""


class Refused(Exception):  # noqa: N818 - it stands for errors and for anything else
    """The replacement of a name that may not be unpickled."""

    def __init__(self, *_: object, **__: object) -> None:
        super().__init__("unpickled a forbidden name")

    def __call__(self, *_: object, **__: object) -> Refused:
        """Replace the result of a function."""
        return self

    def __setstate__(self, _: object) -> None:
        pass

    def __setitem__(self, _: object, __: object) -> None:
        pass

    def append(self, _: object) -> None:
        """Accept an item of a list."""

    def extend(self, _: object) -> None:
        """Accept items of a list."""


def _refuse(_: object, __: object) -> Refused:
    """Replace an object that has its own unpickling."""
    return Refused()


dask_deserialize.register(Refused, _refuse)  # type: ignore[no-untyped-call]


def _no_traceback(*_: object) -> None:
    """Replace the traceback of an error, which Dask requires to be one."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("tblib.pickling_support", "unpickle_traceback"):
            return _no_traceback
        if (module, name) in _NAMES:
            return super().find_class(module, name)
        if (module, name) not in _told and len(_told) < _MAX_TOLD:
            _told.add((module, name))
            _log.warning("not unpickled: the name is not allowed", name=f"{module}.{name}"[:200])
        return Refused


def loads(
    content: bytes | bytearray | memoryview, *, buffers: Iterable[Any] = (), **_: object
) -> Any:
    """Unpickle the allowed names only."""
    return _Unpickler(io.BytesIO(bytes(content)), buffers=tuple(buffers) or None).load()


def restrict_dask() -> None:
    """Make Dask unpickle by `loads` in this process, for good; a second call does nothing."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in {"dask", "distributed"} and _uses_pickle(module):
            module.pickle = _RESTRICTED  # type: ignore[attr-defined]


def _uses_pickle(module: ModuleType) -> bool:
    return vars(module).get("pickle") is pickle


def _restricted() -> ModuleType:
    """Return a module like `pickle` with restricted readers."""
    module = ModuleType("pickle")
    vars(module).update(vars(pickle))
    for name in ("load", "Unpickler", "_Unpickler", "_load", "_loads"):
        vars(module).pop(name, None)
    vars(module)["loads"] = loads
    return module


_RESTRICTED = _restricted()
