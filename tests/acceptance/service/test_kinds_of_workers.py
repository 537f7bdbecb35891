"""Jobs for another kind of CPU than that of the API's host, and of one of two coordinators'."""

from __future__ import annotations

import platform
import time
from pathlib import Path

import pytest

import loopwright as lw
from loopwright.errors import InvalidRequestError
from service.wire.models import JobState
from tests.acceptance.service.server import coordinating, running, serving
from tests.patience import PATIENCE_SECS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="it reports an older x86-64"),
]

OTHER = "cpu -mcpu=nehalem -num-cores=1"


def test_a_job_for_a_cpu_of_the_cluster_goes_to_its_worker(tmp_path: Path) -> None:
    """The API and a coordinator with workers of its own are of this host's kind; a worker is not.

    Its host is reported as a Nehalem, whose code any x86-64 can run.
    """
    database, keys = tmp_path / "loopwright.db", tmp_path / "keys"
    trust = ("--certificates", str(keys))
    with (
        serving(database, part="api") as server,
        lw.Client(str(server.http.base_url).removesuffix("/api/v1/")) as client,
        coordinating(database),
    ):
        with pytest.raises(InvalidRequestError, match=r"start `loopwright worker` on such a host"):
            client.tune("matmul:32,32,32", target=OTHER, max_trials=8)
        with running(tmp_path, "scheduler", "--port", "0", *trust) as meeting:
            assert meeting.stdout is not None
            address = meeting.stdout.readline().split()[-1]
            with (
                coordinating(database, "--scheduler", address, *trust),
                running(tmp_path, "worker", address, *trust, LOOPWRIGHT_HOST_CPU="nehalem"),
            ):
                deadline = time.monotonic() + PATIENCE_SECS
                while "cpu/nehalem" not in {worker.label for worker in client.workers()}:
                    assert time.monotonic() < deadline
                    time.sleep(0.1)
                job = client.tune("matmul:32,32,32", target=OTHER, max_trials=8)
                ended = job.wait(timeout_secs=PATIENCE_SECS)
        assert (ended.state, ended.num_measured) == (JobState.SUCCEEDED, 8)
        (other,) = (worker for worker in client.workers() if worker.label == "cpu/nehalem")
        assert {trial.worker for trial in job.trials()} == {other.name}
        # Nobody but the coordinator of that cluster took it.
        states = [event.payload["state"] for event in job.events() if event.kind == "state"]
        assert states == ["queued", "running", "succeeded"]
        # What a worker served once may be waited for.
        assert client.tune("matmul:16,16,16", target=OTHER, max_trials=8).read().target == OTHER
