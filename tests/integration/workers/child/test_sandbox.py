"""What a hostile candidate meets: no network, no processes, no secrets, and limits that hold."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from compiler.runtime.measurement import ErrorKind
from tests.faults.requests import CHILD, DEFAULT_TRACE, fault, request
from workers.child.child_environment import child_environment
from workers.child.runner import ChildRunner
from workers.wire.request import MeasureLimits

SECRETS = {
    "LOOPWRIGHT_TOKEN": "lw_secret",
    "LOOPWRIGHT_URL": "http://user:secret@host",
    "DATABASE_URL": "postgresql://user:secret@host/name",
    "PGPASSWORD": "secret",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "SSH_AUTH_SOCK": "/secret",
}


@pytest.fixture(scope="module")
def runner() -> Iterator[ChildRunner]:
    with ChildRunner(child_module=CHILD) as runner:
        yield runner


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("forks", "PermissionError"),
        ("runs a program", "PermissionError"),
        ("signals its parent", "PermissionError"),
        ("leaves its group", "PermissionError"),
        ("writes a huge file", "File too large"),
    ],
)
def test_what_a_measurement_does_not_need_is_refused(
    runner: ChildRunner, tmp_path: Path, name: str, message: str
) -> None:
    trace = fault(name, marker=str(tmp_path / "marker"))
    found = [m for _, m in runner.measure(request(DEFAULT_TRACE, trace, DEFAULT_TRACE))]
    assert [m.ok for m in found] == [True, False, True]
    assert found[1].error == ErrorKind.BUILD_ERROR
    assert message in found[1].message


def test_a_port_of_this_host_cannot_be_reached(runner: ChildRunner) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        ((_, found),) = runner.measure(request(fault("connects", port=port)))
        assert "PermissionError" in found.message
        server.settimeout(0.1)
        with pytest.raises(TimeoutError):
            server.accept()


def test_threads_without_end_cost_one_trial(runner: ChildRunner) -> None:
    limits = MeasureLimits(memory_bytes=1 << 30, build_timeout_secs=20)
    traces = (fault("starts threads"), DEFAULT_TRACE)
    first, second = (m for _, m in runner.measure(request(*traces, limits=limits)))
    assert not first.ok
    assert second.ok, second.message


def test_a_candidate_sees_no_secret_and_no_network(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    marker = tmp_path / "seen"
    with ChildRunner(child_module=CHILD) as runner:
        list(runner.measure(request(fault("tells what it sees", marker=str(marker)))))
        lacks = runner.host().lacks
    seen = json.loads(marker.read_text())
    assert not SECRETS.keys() & seen["environment"].keys()
    assert "secret" not in str(seen["environment"])
    assert seen["no_new_privs"]
    assert seen["core"] == [0, 0]
    assert seen["files"][1] <= 1024
    assert seen["cpu"][1] > 0
    is_apart = seen["network"] != os.readlink("/proc/self/ns/net")
    assert is_apart != any("no network isolation" in lack for lack in lacks)


def test_what_a_child_needs_is_in_its_environment() -> None:
    kept = {"PATH": "/bin", "HOME": "/root", "LC_ALL": "C", "OPENBLAS_CORETYPE": "ZEN"}
    kept |= {"LOOPWRIGHT_CACHE": "/cache", "LD_LIBRARY_PATH": "/lib"}
    found = child_environment({**kept, **SECRETS})
    assert found.items() >= kept.items()
    assert found["OMP_NUM_THREADS"] == "1"
    assert found["PYTHONPATH"]


PROGRAM = """
from workers.child import sandbox
assert sandbox.refuse() == []   # from here on the kernel refuses name spaces, too
print(*sandbox.confine(), sep=";")
"""


def test_what_the_kernel_does_not_allow_is_said() -> None:
    # The filter wants `no_new_privs`, or privileges.
    lines = "import ctypes; ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)\n" + PROGRAM
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", lines], env=environment, text=True, capture_output=True, check=True
    )
    assert done.stdout.strip() == "no network isolation: Operation not permitted"


def test_a_process_that_needs_no_files_opens_none(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("secret")
    code = f"""
import os, sys
from workers.child import sandbox
os.chdir({str(tmp_path)!r})
here = os.open(".", os.O_PATH)
sandbox.confine()
assert sandbox.refuse(outside=True) == []
for name, *arguments in (
    ("open", "a", os.O_RDONLY), ("unlink", "a"), ("mkdir", "b"), ("rmdir", "b"),
    ("rename", "a", "b"), ("link", "a", "b"), ("symlink", "a", "b"), ("truncate", "a", 0),
    ("chmod", "a", 0o777), ("chown", "a", 0, 0), ("utime", "a"), ("mkfifo", "b"),
    ("chdir", "/"), ("readlink", "/proc/self/exe"), ("setxattr", "a", "user.b", b"c"),
    ("sched_setaffinity", os.getppid(), [0]), ("setpriority", os.PRIO_PROCESS, os.getppid(), 19),
):
    try:
        getattr(os, name)(*arguments)
    except PermissionError:
        continue
    sys.exit(f"{{name}} is allowed")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
