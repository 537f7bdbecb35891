"""A whole job for a GPU that the service emulates: submit, search, best, kernel, views."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from playwright.sync_api import expect
from typer.testing import CliRunner

import loopwright as lw
from compiler.target.emulated import EMULATED_GPUS
from loopwright.cli.main import app
from loopwright.errors import InvalidRequestError
from service.wire.models import JobState
from service.wire.times import TimeKind
from tests.acceptance.service.server import Server, serving
from tests.browser.conftest import chromium
from tests.patience import PATIENCE_SECS

WORKLOAD = "matmul:32,32,32:float32"
TARGET = "cuda -arch=sm_90a -gpu=h200 -emulated"
NUM_TRIALS = 4


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("emulated")
    with serving(folder / "loopwright.db", "--emulate", "h200") as server:
        yield server


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[lw.Client]:
    url = str(server.http.base_url).removesuffix("/api/v1/")
    with lw.Client(url) as client:
        yield client


@pytest.fixture(scope="module")
def job(client: lw.Client) -> lw.JobHandle:
    # The only emulated GPU of the service.
    job = client.tune(
        WORKLOAD, target="cuda -emulated", max_trials=NUM_TRIALS, strategy="random", seed=1
    )
    job.wait(timeout_secs=PATIENCE_SECS)
    return job


def test_every_trial_is_compiled_emulated_and_compared_with_the_oracle(
    job: lw.JobHandle,
) -> None:
    ended = job.read()
    assert (ended.state, ended.num_measured) == (JobState.SUCCEEDED, NUM_TRIALS)
    assert ended.target == TARGET
    for trial in job.trials():
        assert trial.error is None, trial.message
        assert trial.max_error is not None
        assert trial.max_error < 1e-5
        assert trial.resources is not None
        assert 1 <= trial.resources.registers <= 255
        assert trial.resources.bank_conflicts is not None
        assert trial.resources.bank_conflicts >= 1
        assert "NVRTC" in trial.toolchain


def test_no_estimate_is_shown_as_a_measurement(client: lw.Client, job: lw.JobHandle) -> None:
    ended, best = job.read(), client.best(WORKLOAD, target=TARGET)
    kinds = {ended.best_kind, ended.default_kind, ended.speedup_kind, best.kind}
    assert kinds == {TimeKind.ESTIMATED}
    at = ("--url", client.url)
    for arguments in (
        ("trials", str(job.id)),
        ("jobs",),
        ("best", WORKLOAD, "--target", TARGET),
    ):
        shown = CliRunner().invoke(app, [*arguments, *at])
        assert shown.exit_code == 0, shown.output
        assert "estimated" in shown.output
        assert "provisional" not in shown.output


def test_a_client_runs_the_kernel_of_the_best_schedule(
    client: lw.Client, job: lw.JobHandle
) -> None:
    assert job.read().best_secs
    kernel = client.kernel(WORKLOAD, target=TARGET)
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 32, 32), np.float32)
    c = np.empty((32, 32), np.float32)
    kernel(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


def test_a_trial_shows_its_cuda_text_and_its_ptx(server: Server, job: lw.JobHandle) -> None:
    code = server.http.get(f"/jobs/{job.id}/trials/1/code").raise_for_status().json()
    assert (code["source_language"], code["assembly_language"]) == ("CUDA C++", "PTX")
    assert "__global__" in code["source"]
    assert ".target sm_90a" in code["assembly"]


def test_the_pages_show_the_resources_and_no_measurement(
    client: lw.Client, job: lw.JobHandle
) -> None:
    with chromium() as browser:
        page = browser.new_page()
        page.goto(f"{client.url}/jobs/{job.id}/trials/1")
        result = page.get_by_role("region", name="Result")
        for text in ("estimated", "Registers of a thread", "Occupancy", "Bank conflicts"):
            expect(result.get_by_text(text)).to_be_visible()
        page.get_by_role("tab", name="PTX").click()
        expect(page.get_by_role("region", name="PTX")).to_contain_text(".target sm_90a")
        page.get_by_role("tab", name="CUDA C++").click()
        expect(page.get_by_role("region", name="CUDA C++")).to_contain_text("__global__")
        page.goto(f"{client.url}/jobs/{job.id}")
        expect(page.get_by_role("heading", name="Shortest estimate so far")).to_be_visible()
        expect(page.get_by_text("provisional")).to_have_count(0)


def test_workers_say_what_they_emulate(client: lw.Client, job: lw.JobHandle) -> None:
    (gpu,) = (worker for worker in client.workers() if worker.device is not None)
    assert gpu.label == "cuda/h200-emulated"
    assert gpu.device is not None
    assert (gpu.device.name, gpu.device.is_emulated) == ("h200-emulated-0", True)
    assert gpu.device.sm_mhz is None
    assert {trial.worker for trial in job.trials()} == {gpu.name}
    shown = CliRunner().invoke(app, ["workers", "--url", client.url])
    assert "cuda/h200-emulated" in shown.output


@pytest.mark.parametrize("target", ["cuda", "cuda -gpu=a100"])
def test_a_gpu_that_no_worker_has_is_refused_with_the_targets_that_they_have(
    client: lw.Client, target: str
) -> None:
    with pytest.raises(InvalidRequestError, match=r"h200.*emulated"):
        client.tune(WORKLOAD, target=target, max_trials=4)


def test_an_unknown_gpu_is_not_emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(EMULATED_GPUS, "")
    refused = CliRunner().invoke(app, ["serve", "--emulate", "h20"])
    assert refused.exit_code == 2
    assert "did you mean 'h200'" in refused.output
