"""Programs that are read by child processes."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing

import psutil
import pytest
from fastapi.testclient import TestClient

from service.common.errors import UnprocessableError
from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.intake import check, request_validation, workload_text
from service.intake.request_validation import read_workload
from service.intake.text_reader import TextReader, reading_in_children
from service.intake.workload_text import read_here
from service.store.database.database import Database
from service.wire.requests import Workload
from tests.patience import PATIENCE_SECS
from tests.service_fixtures import problem

SMALL = Workload(operator="matmul:16,16,16")
BLOCK = """    for i{0} in range(16):
        with T.block("b{0}"):
            v = T.axis.spatial(16, i{0})
            B[v] = A[v] + T.float32({0})
"""
HEAD = '@T.prim_func\ndef f(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):\n'
GATHERING = """    for i{0}, j{0} in T.grid(4, 4):
        with T.block("b{0}"):
            v = T.axis.spatial(16, i{0} * 4 + j{0})
            B[v] = A[v] + A[(v + {0}) % 16] * A[(v * 3) % 16] + A[(v * 5 + {0}) % 16]
"""
LARGE = HEAD + "".join(map(GATHERING.format, range(900)))
"""Takes seconds to be read, and is just not too large."""


@pytest.fixture(scope="module")
def reader() -> Iterator[TextReader]:
    with closing(TextReader(at_once=1)) as reader:
        yield reader


def test_a_child_reads_what_this_process_reads(reader: TextReader) -> None:
    script = Workload(script=HEAD + BLOCK.format(0))
    with reading_in_children(reader, "one"):
        for workload in (SMALL, script):
            assert read_workload(workload) == read_here(workload)


def test_a_refusal_comes_with_its_place(reader: TextReader) -> None:
    wrong = Workload(script=HEAD + "    B[0] = A[1\n")
    with pytest.raises(UnprocessableError) as here:
        read_here(wrong)
    with reading_in_children(reader, "one"), pytest.raises(UnprocessableError) as there:
        read_workload(wrong)
    assert (there.value.detail, there.value.flaws) == (here.value.detail, here.value.flaws)


def test_a_text_that_takes_too_long_costs_a_child_and_no_more() -> None:
    with closing(TextReader(at_once=1, cpu_secs=0)) as reader, reading_in_children(reader, "one"):
        with pytest.raises(UnprocessableError, match="too much processor time") as refused:
            read_workload(Workload(script=LARGE))
        assert refused.value.flaws[0].pointer == "/workload"
        # A new child imports modules first: on a slow machine that alone can take the limit.
        reader._cpu_secs = 10
        assert read_workload(SMALL) == read_here(SMALL)


def test_a_child_that_was_killed_is_replaced(reader: TextReader) -> None:
    with reading_in_children(reader, "one"):
        read_workload(SMALL)
        child = psutil.Process(reader._idle[0]._process.pid)
        child.kill()
        while child.status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)
        assert read_workload(SMALL) == read_here(SMALL)


ASKS = """
import sys
from service.wire.requests import Workload
from service.intake.request_validation import read_workload
from service.intake.text_reader import TextReader, reading_in_children

reader = TextReader(at_once=1)
with reading_in_children(reader, "one"):
    read_workload(Workload(operator="matmul:16,16,16"))
    print(reader._idle[0]._process.pid, flush=True)
    read_workload(Workload(script=sys.stdin.read()))
"""


def test_a_child_ends_with_its_parent_also_amid_a_text() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ASKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.stdin.write(LARGE)
        parent.stdin.close()
        before = child.cpu_times().user
        while child.cpu_times().user < before + 0.1:  # it is at work
            time.sleep(0.01)
        parent.send_signal(signal.SIGKILL)
        child.wait(PATIENCE_SECS)


def test_no_request_has_the_service_itself_read_a_program(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(_: Workload) -> None:
        raise AssertionError("this process read a program")

    monkeypatch.setattr(request_validation, "read_here", read)
    monkeypatch.setattr(check, "look_here", read)
    monkeypatch.setattr(check, "space_here", read)
    monkeypatch.setattr(workload_text, "read_here", read)
    asked = {"workload": SMALL.model_dump(exclude_none=True), "target": "cpu -num-cores=1"}
    with TestClient(create_app(Dependencies(database)), base_url="http://test/api/v1") as client:
        looked = client.post("/workloads/check", json={**asked, "space": True}).json()
        assert looked["space"]["num_schedules"] > 100
        assert [p["role"] for p in looked["parameters"]] == ["input", "input", "output"]
        assert client.post("/jobs", json={**asked, "max_trials": 8}).status_code == 201
        for path in ("/schedules/best", "/artifacts"):
            problem(client.post(path, json={**asked, "enqueue": True}), 404)
