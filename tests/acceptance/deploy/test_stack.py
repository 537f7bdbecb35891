"""The stack of `docker-compose.yml` as processes: limits of the proxy, and what a kill costs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection

import httpx2
import pytest

import loopwright as lw
from service.wire.models import EventKind, JobState
from tests import postgres
from tests.acceptance.chaos import chaos
from tests.acceptance.chaos.faults import Injector
from tests.acceptance.deploy.compose_file import ROOT
from tests.acceptance.deploy.service_process import find_program
from tests.acceptance.deploy.stack import Stack, running
from tests.patience import PATIENCE_SECS

pytestmark = pytest.mark.slow

TARGET = "cpu -num-cores=1"
TRIALS = 24
KILLED_TOGETHER = (
    ("api-1", "coordinator-1", "worker-1"),
    ("postgres", "proxy", "api-2", "coordinator-2", "scheduler", "worker-2"),
)


@pytest.fixture(scope="module")
def injector() -> Iterator[Injector]:
    """Run the stack, with what injects faults into it."""
    if postgres.find_programs() is None:
        pytest.skip("PostgreSQL is not installed: there is no pg_ctl")
    for program in ("haproxy", "wget"):
        if find_program(program) is None:
            pytest.skip(f"{program} is not installed")
    injectors: list[Injector] = []
    with running(lambda stack: injectors.append(Injector(stack))):
        yield injectors[0]
        injectors[0].close()


@pytest.fixture(scope="module")
def stack(injector: Injector) -> Stack:
    return injector.stack


@pytest.fixture(scope="module")
def token(stack: Stack) -> str:
    return (stack.secrets / "admin_token").read_text().strip()


@pytest.fixture(scope="module")
def http(stack: Stack) -> Iterator[httpx2.Client]:
    """Return a connection to the proxy."""
    with chaos.connect(stack) as http:
        yield http


def test_only_the_holder_of_the_token_reads(stack: Stack, http: httpx2.Client) -> None:
    assert http.get("/api/v1/jobs").status_code == 200
    assert httpx2.get(f"{stack.url('proxy', 8080)}/api/v1/jobs").status_code == 401


def test_the_proxy_refuses_bodies_beyond_the_limits(http: httpx2.Client) -> None:
    """It reads the length only: the service sees no byte of the body."""
    at = http.base_url

    def status(path: str, length: int) -> int:
        with closing(HTTPConnection(at.host, at.port, timeout=60)) as connection:
            connection.putrequest("POST", path)
            connection.putheader("Content-Length", str(length))
            connection.endheaders()
            return connection.getresponse().status

    assert status("/api/v1/jobs", (2 << 20) + 1) == 413
    assert status("/api/v1/import", (1 << 30) + 1) == 413
    unsized = http.post("/api/v1/jobs", content=iter([b"{}"]))
    assert (unsized.status_code, unsized.json()["title"]) == (411, "Length Required")
    lines = {"Content-Type": "application/x-ndjson"}
    records = http.post("/api/v1/import", content=iter([b"{}\n"]), headers=lines)
    assert records.status_code == 422  # from the service, which has read them


def test_no_service_listens_beyond_loopback(stack: Stack) -> None:
    addresses = [ip for service in stack.services.values() for ip in service.listening()]
    assert len(addresses) >= 12
    assert {address for address in addresses if not address.startswith("127.")} == set()


def test_boards_and_alerts_name_metrics_that_exist(stack: Stack, http: httpx2.Client) -> None:
    scraped = http.get("/metrics").text + httpx2.get(f"{stack.url('proxy', 8404)}/metrics").text
    exported = set(re.findall(r"^(\w+)[{ ]", scraped, re.MULTILINE))
    monitoring = ROOT / "deploy" / "monitoring"
    board = json.loads((monitoring / "grafana" / "board.json").read_text())
    expressions = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    expressions.append((monitoring / "alerts.yml").read_text())
    used = set(re.findall(r"\b(?:loopwright|haproxy)_\w+", " ".join(expressions)))
    assert len(used) >= 8
    assert used <= exported


@pytest.mark.parametrize("killed", KILLED_TOGETHER, ids=" ".join)
def test_a_job_survives_killed_services(
    stack: Stack, token: str, http: httpx2.Client, killed: tuple[str, ...]
) -> None:
    """Every trial is stored once, and events arrive through the proxy while the job runs."""
    with lw.Client(stack.url("proxy", 8080), token=token) as client:
        size = 32 + 8 * KILLED_TOGETHER.index(killed)
        handle = client.tune(
            f"matmul:{size},64,64",
            target=TARGET,
            max_trials=TRIALS,
            strategy="random",  # starts without a cost model
            warm_start=False,
        )
        for event in handle.events():
            if event.kind == EventKind.TRIALS:
                break
        assert handle.read().state is JobState.RUNNING
        stack.kill(*killed)
        if "api-1" in killed:  # the proxy uses the other API at once
            assert http.get("/api/v1/jobs").status_code == 200
        stack.restart(*killed)
        # Each loss of a batch costs up to 20 s, and other tests use the machine.
        job = handle.wait(timeout_secs=2 * PATIENCE_SECS)
        assert (job.state, job.num_measured) == (JobState.SUCCEEDED, TRIALS)
        assert sorted(trial.number for trial in handle.trials()) == list(range(TRIALS))


def test_every_service_is_killed_once(stack: Stack) -> None:
    steps = {"migrate", "certificate"}
    assert sorted(name for group in KILLED_TOGETHER for name in group) == sorted(
        stack.services.keys() - steps
    )


def test_histories_are_correct_after_random_faults(injector: Injector, http: httpx2.Client) -> None:
    """A short form of `make chaos`."""
    problems, line = chaos.run(injector, http, seed=1, num=10, secs=5.0)
    assert problems == [], "\n".join([line, *injector.log])


def test_all_services_stop_and_leave_nothing(stack: Stack) -> None:
    for service in stack.services.values():
        # One that ended by the last fault starts again, as its policy says.
        if "healthcheck" in service.definition:
            service.wait(restarts=True)
    failed = [name for name, code in stack.stop().items() if code != 0]
    assert failed == [], "\n".join(stack.services[name].log_end() for name in failed)
    assert stack.orphans() == []
    ready = [s.paths["/tmp"] / "ready" for s in stack.services.values() if "/tmp" in s.paths]
    assert not [path for path in ready if path.exists()]
