"""`Client.kernel` in every situation that a network and a server can bring about."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from examples.serving import free_port
from tests.unit.loopwright.fake_server import Answer, FakeServer

OPERATOR = "relu:16:float32"
NOTHING_KNOWN = Answer(404, {"title": "not found", "detail": "relu was not tuned for cpu"})


@pytest.fixture(scope="module")
def artifact() -> lw.Artifact:
    return lw.build(lw.ops.from_spec(OPERATOR), "cpu").artifact


@pytest.fixture
def client(fake: FakeServer, tmp_path: Path) -> Iterator[lw.Client]:
    with lw.Client(fake.url, cache=tmp_path / "cache") as opened:
        yield opened


def fetched(artifact: lw.Artifact, etag: str = '"1"') -> Answer:
    return Answer(body=artifact.to_bytes(), headers={"ETag": etag})


def check(kernel: lw.Kernel) -> None:
    a = np.linspace(-1, 1, 16, dtype="float32")
    b = np.full(16, np.nan, "float32")
    kernel(a, b)
    np.testing.assert_array_equal(b, np.maximum(a, 0))


def test_a_kernel_is_fetched_and_runs(
    fake: FakeServer, client: lw.Client, artifact: lw.Artifact
) -> None:
    fake.answers = [fetched(artifact)]
    kernel = client.kernel(OPERATOR)
    assert kernel.source is lw.KernelSource.SERVER
    assert kernel.is_tuned
    check(kernel)


def test_a_call_of_a_kernel_may_say_how_many_threads_it_uses(
    fake: FakeServer, client: lw.Client, artifact: lw.Artifact
) -> None:
    fake.answers = [fetched(artifact)]
    kernel = client.kernel(OPERATOR)
    a, b = np.ones(16, "float32"), np.zeros(16, "float32")
    kernel(a, b, num_threads=1)
    np.testing.assert_array_equal(b, a)
    with pytest.raises(lw.ArgumentError, match="num_threads is 0"):
        kernel(a, b, num_threads=0)


def test_a_kernel_is_sent_again_only_if_it_changed(
    fake: FakeServer, client: lw.Client, artifact: lw.Artifact
) -> None:
    fake.answers = [fetched(artifact), Answer(304), fetched(artifact, '"2"'), Answer(304)]
    sources = [client.kernel(OPERATOR).source for _ in range(4)]
    assert sources == ["server", "cache", "server", "cache"]
    assert [asked.headers.get("if-none-match") for asked in fake.asked] == [
        None,
        '"1"',
        '"1"',
        '"2"',
    ]


def test_the_cache_answers_when_the_server_does_not(
    fake: FakeServer, client: lw.Client, artifact: lw.Artifact
) -> None:
    fake.answers = [fetched(artifact), *[Answer(503)] * 3]
    client.kernel(OPERATOR)
    with pytest.warns(lw.StaleAnswerWarning, match="the kernel of 0 s ago") as caught:
        kernel = client.kernel(OPERATOR)
    assert caught[0].filename == __file__
    assert kernel.source is lw.KernelSource.CACHE
    assert kernel.fetched_at is not None
    check(kernel)


def test_a_client_that_is_offline_asks_nobody(
    fake: FakeServer, client: lw.Client, artifact: lw.Artifact, tmp_path: Path
) -> None:
    fake.answers = [fetched(artifact)]
    client.kernel(OPERATOR)
    with lw.Client(fake.url, cache=tmp_path / "cache", offline=True) as offline:
        check(offline.kernel(OPERATOR, fallback=False))
        with pytest.raises(lw.ServerUnreachableError, match="the client is offline"):
            offline.kernel("relu:17:float32", fallback=False)
        with pytest.warns(lw.FallbackWarning, match="offline"):
            assert not offline.kernel("relu:17:float32").is_tuned
        with pytest.raises(lw.ServerUnreachableError, match="offline"):
            list(offline.jobs())
    assert len(fake.asked) == 1


def test_a_schedule_is_remembered_for_when_the_server_is_away(
    fake: FakeServer, client: lw.Client
) -> None:
    body = {
        "workload_key": "0" * 64,
        "target": "cpu",
        "run_secs": 1e-3,
        "default_secs": 2e-3,
        "trace": {"format": 1, "instructions": []},
        "job_id": "00000000-0000-0000-0000-000000000007",
        "trial_number": 3,
        "provenance": {},
    }
    fake.answers = [Answer(body=body), *[Answer(503)] * 3, Answer(404, {"title": "gone"})]
    now = client.best(OPERATOR)
    assert (now.run_secs, now.fetched_at) == (1e-3, None)
    with pytest.warns(lw.StaleAnswerWarning, match="using the schedule of 0 s ago"):
        then = client.best(OPERATOR)
    assert then.record == now.record
    assert then.fetched_at is not None
    with pytest.raises(lw.NotFoundError):  # a server that answers is believed
        client.best(OPERATOR)


def test_a_damaged_cache_is_as_good_as_none(
    fake: FakeServer, client: lw.Client, artifact: lw.Artifact, tmp_path: Path
) -> None:
    fake.answers = [fetched(artifact), fetched(artifact)]
    client.kernel(OPERATOR)
    (file,) = (path for path in (tmp_path / "cache").rglob("*") if path.is_file())
    file.write_bytes(file.read_bytes()[:-100])
    assert client.kernel(OPERATOR).source is lw.KernelSource.SERVER
    assert "if-none-match" not in fake.asked[1].headers


def test_without_a_tuned_kernel_the_default_is_built_and_that_is_said(
    fake: FakeServer, client: lw.Client
) -> None:
    fake.answers = [NOTHING_KNOWN]
    with pytest.warns(lw.FallbackWarning, match="default schedule: relu was not tuned") as caught:
        kernel = client.kernel(OPERATOR)
    assert caught[0].filename == __file__
    assert not kernel.is_tuned
    check(kernel)


def test_without_a_server_the_default_is_built_and_that_is_said(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    with (
        lw.Client(url, cache=tmp_path, attempts=1) as client,
        pytest.warns(lw.FallbackWarning, match=f"no answer from {url}"),
    ):
        check(client.kernel(OPERATOR))


def test_a_function_and_those_that_it_calls_are_one_kernel(tmp_path: Path) -> None:
    text = """
@I.ir_module
class Module:
    @T.prim_func
    def double(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = A[i] * T.float32(2)

    @T.prim_func
    def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        Y = T.alloc_buffer((4,))
        Module.double(A, Y)
        Module.double(Y, B)
"""
    url = f"http://127.0.0.1:{free_port()}"
    for workload in (text, lw.parse_module(text)):
        out = np.empty(4, "float32")
        with (
            lw.Client(url, cache=tmp_path, attempts=1) as client,
            pytest.warns(lw.FallbackWarning),
        ):
            client.kernel(workload)(np.ones(4, "float32"), out)
        np.testing.assert_array_equal(out, np.full(4, 4))


def test_a_kernel_for_another_machine_is_refused_and_replaced(
    fake: FakeServer, client: lw.Client, artifact: lw.Artifact
) -> None:
    foreign = replace(artifact, features=artifact.features + ",+a-feature-of-the-future")
    fake.answers = [fetched(foreign)] * 2
    with pytest.warns(lw.FallbackWarning, match="a-feature-of-the-future"):
        check(client.kernel(OPERATOR))
    with pytest.raises(lw.ArtifactRefusedError, match="a-feature-of-the-future"):
        client.kernel(OPERATOR, fallback=False)


@pytest.mark.parametrize("content", [b"", b"not a zip file"])
def test_what_is_no_artifact_is_refused(
    fake: FakeServer, client: lw.Client, content: bytes
) -> None:
    fake.answers = [Answer(body=content)]
    with pytest.raises(lw.ArtifactRefusedError):
        client.kernel(OPERATOR, fallback=False)


def test_without_fallback_what_is_not_known_is_an_error(
    fake: FakeServer, client: lw.Client
) -> None:
    fake.answers = [NOTHING_KNOWN]
    with pytest.raises(lw.NotFoundError):
        client.kernel(OPERATOR, fallback=False)


def test_a_mistake_in_the_request_is_never_papered_over(
    fake: FakeServer, client: lw.Client
) -> None:
    fake.answers = [Answer(422, {"title": "unknown target"}), Answer(401, {"title": "who?"})]
    with warnings.catch_warnings(), pytest.raises(lw.InvalidRequestError):
        client.kernel(OPERATOR)
    with warnings.catch_warnings(), pytest.raises(lw.AccessDeniedError):
        client.kernel(OPERATOR)


def test_retries_print_nothing(tmp_path: Path) -> None:
    code = (
        "import sys, warnings, loopwright as lw; warnings.simplefilter('ignore');"
        "lw.Client(sys.argv[1], attempts=2).kernel('matmul:4,4,4')"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, f"http://127.0.0.1:{free_port()}"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "LOOPWRIGHT_CACHE": str(tmp_path)},
    )
    assert (ran.stdout, ran.stderr) == ("", "")
