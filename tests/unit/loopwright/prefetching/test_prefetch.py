"""`lw.prefetch` from a lock file, from a server, and from its cache."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from loopwright.locks.lock_file import LockFile
from loopwright.prefetching.manifest import read_manifest
from loopwright.prefetching.prefetch import each_prefetched
from tests.targets import here
from tests.unit.loopwright.fake_server import Answer, FakeServer
from tests.unit.loopwright.locks.made import OPERATOR, locked

NOT_TUNED = Answer(404, {"title": "not found", "detail": "dense was not tuned for cpu"})


def manifest(folder: Path, *workloads: str, target: str = "cpu") -> Path:
    path = folder / "kernels.toml"
    kernels = "".join(f'[[kernels]]\nworkload = "{workload}"\n' for workload in workloads)
    path.write_text(f'target = "{target}"\n{kernels}', encoding="utf-8")
    return path


def test_the_kernels_of_a_lock_file_are_ready_and_others_are_missing(tmp_path: Path) -> None:
    lock = tmp_path / "a.lock"
    LockFile([locked()]).save(lock)
    path = manifest(tmp_path, OPERATOR, "relu:8", target=here().name)
    ready = lw.prefetch(path, lock=lock)
    assert repr(ready) == "<Prefetched: 1 of 2 kernels are tuned>"
    assert not ready.is_ready
    c = np.zeros((16, 16), "float32")
    ready[OPERATOR](np.ones((16, 24), "float32"), np.ones((24, 16), "float32"), c)
    np.testing.assert_array_equal(c, np.full((16, 16), 24))
    missing = ready.kernels[1]
    assert (missing.kernel, missing.schedule) == (None, None)
    assert "relu is not in" in missing.problem
    with pytest.raises(KeyError):
        ready["relu:8"]


def test_a_fetched_kernel_is_in_the_cache_when_the_server_is_gone(
    fake: FakeServer, tmp_path: Path
) -> None:
    artifact = lw.build(lw.ops.from_spec("relu:16:float32"), "cpu").artifact
    fake.answers = [Answer(body=artifact.to_bytes(), headers={"ETag": '"1"'})]
    wanted = read_manifest(manifest(tmp_path, "relu:16:float32"))
    cache = tmp_path / "cache"
    with lw.Client(fake.url, cache=cache) as client:
        (fetched,) = each_prefetched(wanted, client, None)
    assert (fetched.schedule, fetched.problem) == (lw.KernelSchedule.BEST, "")
    with lw.Client(fake.url, cache=cache, offline=True) as client:
        assert client.kernel("relu:16:float32").source is lw.KernelSource.CACHE


def test_what_was_not_tuned_has_the_default_schedule_and_the_reason(
    fake: FakeServer, tmp_path: Path
) -> None:
    """Its constants have no values yet, so the kernel is not handed out."""
    fake.answers = [NOT_TUNED]
    wanted = read_manifest(manifest(tmp_path, "dense:4,8,16,constant=W"))
    with lw.Client(fake.url, cache=tmp_path / "cache", attempts=1) as client:
        (built,) = each_prefetched(wanted, client, None)
    assert built.schedule is lw.KernelSchedule.DEFAULT
    assert not built.is_tuned
    assert built.problem == "dense was not tuned for cpu"
    assert built.kernel is None
