"""What a worker sends is data: nothing of it is executed where it arrives."""

from __future__ import annotations

import io
import os
import pickle
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import distributed.protocol.pickle
import pytest

from compiler.runtime.measurement import ErrorKind
from tests.faults import hostile_slot
from tests.faults.requests import DEFAULT_TRACE, request
from workers.engine import dask_worker
from workers.engine.dask_engine import DaskEngine
from workers.engine.unpickling import Refused, loads, restrict_dask
from workers.wire.answers import AnswerError, read_batch, read_rounds, write


def test_nothing_that_a_hostile_worker_sends_is_executed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(hostile_slot.MARKER, str(tmp_path / "made"))
    # Dask imports the module of this name in its workers.
    monkeypatch.setattr(dask_worker, "__name__", hostile_slot.__name__)
    with closing(DaskEngine.embedded(1)) as engine:
        ((index, found),) = engine.measure(request(DEFAULT_TRACE))
        assert (index, found.error) == (0, ErrorKind.WORKER_LOST)
        assert len(engine.workers()) == 1
    # A payload that was made at all was unpickled somewhere; the worker itself makes none.
    assert list(tmp_path.iterdir()) == []


class Payload:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("false",)


def test_a_name_that_is_not_allowed_becomes_nothing() -> None:
    restrict_dask()
    for content in (Payload(), [Payload()], os.system, ValueError("x"), io.BytesIO(b"x")):
        found = distributed.protocol.pickle.loads(pickle.dumps(content))
        assert found is Refused or isinstance(found, Refused | list)
    plain = {"a": [1, 2.5, None, "text", b"bytes", (True,)]}
    assert loads(pickle.dumps(plain)) == plain


def test_no_module_of_dask_unpickles_without_restriction() -> None:
    restrict_dask()
    names = [name for name in sys.modules if name.partition(".")[0] in {"dask", "distributed"}]
    assert [name for name in names if getattr(sys.modules[name], "pickle", None) is pickle] == []


MEASURED = {"run_secs": [1.0], "error": None, "message": ""}


def test_an_answer_is_read_as_it_was_written() -> None:
    (found,) = read_batch(write(lambda: [MEASURED]), 1)
    assert found.run_secs == (1.0,)
    ((found,),) = read_rounds(write(lambda: [[MEASURED]]), 1, 5)
    assert found.run_secs == (1.0,)


def test_an_error_of_a_worker_is_a_text() -> None:
    def fail() -> None:
        raise OSError("no space left")

    with pytest.raises(AnswerError, match="OSError: no space left"):
        read_batch(write(fail), 1)


@pytest.mark.parametrize(
    "answer",
    [
        b"[]",
        None,
        [MEASURED],
        "",
        "[]",
        "{}",
        "[" * 100_000,
        '{"found": {}}',
        '{"found": []}',
        '{"found": [[]]}',
        '{"found": [{"run_secs": [1]}, {"run_secs": [1]}]}',
        '{"found": [{"run_secs": [NaN]}]}',
        '{"found": [{"run_secs": [1], "extra": 1}]}',
        '{"error": 1}',
    ],
)
def test_what_is_no_answer_is_refused(answer: object) -> None:
    with pytest.raises(AnswerError):
        read_batch(answer, 1)
    with pytest.raises(AnswerError):
        read_rounds(answer, 1, 1)
