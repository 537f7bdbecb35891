"""The client against a real server, over real HTTP."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from service.wire.models import EventKind, JobState
from tests.patience import PATIENCE_SECS

MATMUL = "matmul:32,48,64:float32"
TARGET = "cpu -num-cores=1"


def check_matmul(kernel: lw.Kernel | lw.Module) -> None:
    rng = np.random.default_rng(1)
    a = rng.standard_normal((32, 64), dtype="float32")
    b = rng.standard_normal((64, 48), dtype="float32")
    c = np.full((32, 48), np.nan, "float32")
    kernel(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)


def test_a_workload_goes_in_and_a_right_and_faster_kernel_comes_out(client: lw.Client) -> None:
    handle = client.tune(MATMUL, target=TARGET, max_trials=12)
    job = handle.wait(timeout_secs=PATIENCE_SECS)
    assert job.state is JobState.SUCCEEDED
    assert job.num_measured == job.max_trials == 12
    assert job.best_secs is not None
    assert job.default_secs is not None
    assert job.best_secs <= job.default_secs

    trials = list(handle.trials())
    assert [trial.number for trial in trials] == list(range(12))
    assert job.stop_reason == "budget"
    assert job.best_interval is not None
    low, high = job.best_interval
    assert low <= job.best_secs <= high

    best = client.best(MATMUL, target=TARGET)
    assert (best.run_secs, best.interval) == (job.best_secs, job.best_interval)
    check_matmul(lw.build(best.apply(lw.ops.from_spec(MATMUL)), TARGET))

    kernel = client.kernel(MATMUL, target=TARGET, fallback=False)
    assert kernel.source is lw.KernelSource.SERVER
    check_matmul(kernel)
    assert client.kernel(MATMUL, target=TARGET, fallback=False).source is lw.KernelSource.CACHE


def test_constant_weights_are_packed_once_by_the_tuner_and_by_the_user(
    client: lw.Client, tmp_path: Path
) -> None:
    spec = "dense:16,96,64,constant=W"
    job = client.tune(spec, target=TARGET, max_trials=8).wait(timeout_secs=PATIENCE_SECS)
    assert job.state is JobState.SUCCEEDED
    assert job.best_secs is not None
    with pytest.raises(lw.NotFoundError):  # another task
        client.best("dense:16,96,64", target=TARGET)

    rng = np.random.default_rng(1)
    a = rng.standard_normal((16, 64), dtype="float32")
    w = rng.standard_normal((96, 64), dtype="float32")
    best = client.best(spec, target=TARGET).apply(lw.ops.from_spec(spec))
    kernel = client.kernel(spec, target=TARGET, fallback=False, const_params={"W": w})
    for kernel_with_weights in (kernel, lw.build(best, TARGET, const_params={"W": w})):
        c = np.full((16, 96), np.nan, "float32")
        kernel_with_weights(a, c)
        np.testing.assert_allclose(c, a @ w.T, rtol=1e-4, atol=1e-4)
    near = client.best("dense:16,96,128,constant=W", target=TARGET, nearest=True)
    assert near.nearest is not None
    assert near.nearest.workload_key == job.workload_key

    client.export_records(tmp_path / "records.jsonl", jobs=[job.id])
    assert "layout_free_buffers" in (tmp_path / "records.jsonl").read_text()
    assert client.import_records(tmp_path / "records.jsonl").trials == 0  # the same workload

    with pytest.raises(lw.ArgumentError, match=r"got 3; the constants \(W\) were passed"):
        kernel(a, w, c)
    with pytest.raises(lw.ArgumentError, match="const_params lacks W"):
        client.kernel(spec, target=TARGET)
    with pytest.raises(lw.ArgumentError, match="parameter W is float32"):
        client.kernel(spec, target=TARGET, const_params={"W": a})


def test_before_a_shape_is_tuned_the_nearest_one_has_a_schedule(client: lw.Client) -> None:
    client.tune("matmul:32,48,32:float32", target=TARGET, max_trials=8).wait(
        timeout_secs=PATIENCE_SECS
    )
    with pytest.raises(lw.NotFoundError, match="nearest"):
        client.best("matmul:32,48,65", target=TARGET)
    best = client.best("matmul:32,48,65", target=TARGET, nearest=True)
    assert best.run_secs is None
    assert best.nearest is not None
    assert best.nearest.distance > 0
    best.apply(lw.ops.from_spec("matmul:32,48,65"))
    for source in (lw.KernelSource.SERVER, lw.KernelSource.CACHE):
        kernel = client.kernel("matmul:32,48,65", target=TARGET, nearest=True, fallback=False)
        assert kernel.is_tuned
        assert (kernel.source, kernel.schedule) == (source, lw.KernelSchedule.NEAREST)


def test_events_tell_a_job_from_its_start_to_its_end(client: lw.Client) -> None:
    handle = client.tune("relu:64", target=TARGET, max_trials=3)
    events = list(handle.events())
    ids = [event.id for event in events]
    assert ids == sorted(set(ids))
    assert events[-1].kind == EventKind.STATE
    assert events[-1].payload["state"] == "succeeded"
    measured = [e.payload["num_measured"] for e in events if e.kind == EventKind.TRIALS]
    assert measured[-1] == 3
    assert [event.id for event in handle.events(after=ids[-2])] == ids[-1:]


def test_three_ways_to_give_a_workload_are_one_workload(client: lw.Client) -> None:
    func = lw.ops.from_spec("relu:96")
    forms = ("relu:96", func, lw.script.script(func))
    jobs = [client.tune(form, target=TARGET, max_trials=1) for form in forms]
    assert len({job.wait(timeout_secs=PATIENCE_SECS).workload_key for job in jobs}) == 1


def test_a_cancelled_job_keeps_what_it_measured(client: lw.Client) -> None:
    handle = client.tune("matmul:128,128,128", target=TARGET, max_trials=10_000)
    for event in handle.events():
        if event.kind == EventKind.TRIALS:
            break
    assert handle.cancel().id == handle.id
    job = handle.wait(timeout_secs=PATIENCE_SECS)
    assert job.state is JobState.CANCELLED
    assert 0 < job.num_measured < 10_000
    assert len(list(handle.trials())) == job.num_measured


def test_jobs_are_listed_newest_first_and_by_state(client: lw.Client) -> None:
    first = client.tune("relu:32", target=TARGET, max_trials=1)
    second = client.tune("relu:33", target=TARGET, max_trials=1)
    first.wait(timeout_secs=PATIENCE_SECS)
    second.wait(timeout_secs=PATIENCE_SECS)
    listed = [job.id for job in client.jobs(limit=2)]
    assert listed == [second.id, first.id]
    assert len(list(client.jobs(limit=1))) == 1
    assert {job.state for job in client.jobs(state=JobState.SUCCEEDED)} == {JobState.SUCCEEDED}


def test_what_was_not_tuned_is_not_found(client: lw.Client) -> None:
    with pytest.raises(lw.NotFoundError):
        client.best("relu:12345", target=TARGET)
    with pytest.warns(lw.FallbackWarning):
        assert not client.kernel("relu:12345", target=TARGET).is_tuned


def test_a_script_with_a_mistake_is_answered_with_its_place(client: lw.Client) -> None:
    text = lw.script.script(lw.ops.from_spec("relu:32")).replace("32):", "32:")
    with pytest.raises(lw.InvalidRequestError, match=r"\^") as caught:
        client.tune(text, max_trials=1)
    assert caught.value.problem.status == 422
    assert caught.value.problem.errors[0].line is not None


def test_half_of_a_surrogate_pair_is_refused(client: lw.Client) -> None:
    with pytest.raises(lw.InvalidRequestError, match=r"^name is .*half of a surrogate pair"):
        client.tune("matmul:8,8,8", max_trials=1, name="\ud800")


@pytest.mark.parametrize(
    ("operator", "target", "trials", "words"),
    [
        ("matmull:8,8,8", "cpu", 1, "did you mean matmul"),
        ("matmul:8,8", "cpu", 1, "expected matmul:m,n,k"),
        ("matmul:0,8,8", "cpu", 1, "0"),
        ("matmul:8,8,8", "tpu", 1, "tpu"),
        ("matmul:8,8,8", "cpu -mcpu=znver33", 1, "znver3"),
        ("matmul:8,8,8", "cpu", 0, "trials"),
        ("matmul:8,8,8", "cpu", 1_000_000, "trials"),
    ],
)
def test_a_request_that_means_nothing_is_refused_with_a_reason(
    client: lw.Client, operator: str, target: str, trials: int, words: str
) -> None:
    before = len(list(client.jobs(limit=1000)))
    with pytest.raises(lw.InvalidRequestError, match=words):
        client.tune(operator, target=target, max_trials=trials)
    assert len(list(client.jobs(limit=1000))) == before


def test_what_was_missed_is_looked_for(client: lw.Client) -> None:
    with pytest.warns(lw.FallbackWarning, match="was queued"):
        assert not client.kernel("relu:4321", target=TARGET, enqueue=True).is_tuned
    with pytest.raises(lw.NotFoundError) as missed:
        client.best("relu:4322", target=TARGET, enqueue=True)
    assert missed.value.problem.job_id is not None
    job = client.job(missed.value.problem.job_id)
    assert job.wait(timeout_secs=PATIENCE_SECS).state is JobState.SUCCEEDED
    best = client.best("relu:4322", target=TARGET, enqueue=True)
    assert best.record.job_id == job.id


def test_what_a_client_returns_prints_as_a_line(client: lw.Client) -> None:
    job = client.tune("relu:37", target=TARGET, max_trials=1)
    ended = job.wait()
    why = "trial limit reached"
    assert str(ended).startswith(f"relu on {ended.target}: succeeded ({why}), 1 of 1 trial")
    best = client.best("relu:37", target=TARGET)
    assert repr(best).startswith(f"<Best of workload {ended.workload_key[:12]} on cpu -mcpu=")
    assert "\n" not in str(ended) + repr(best)
    with pytest.raises(lw.InvalidRequestError, match=r"^nothing to change: expected max_trials"):
        job.extend()


def test_a_job_that_does_not_exist_is_not_found(client: lw.Client) -> None:
    with pytest.raises(lw.NotFoundError):
        client.job("00000000-0000-0000-0000-000000000000").read()


def test_the_server_is_healthy_and_has_a_worker(client: lw.Client) -> None:
    assert client.health().status == "ok"
    assert client.workers()
