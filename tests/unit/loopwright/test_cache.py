from __future__ import annotations

from pathlib import Path

import pytest

from loopwright.cache import CachedKernel, KernelCache, default_directory
from loopwright.models import ScheduleQuery, Workload

QUERY = ScheduleQuery(workload=Workload(operator="matmul:8,8,8"))
KERNEL = CachedKernel('"tag"', b"\x00bytes\nwith a line\n", "nearest")


def test_what_was_put_is_got_by_server_and_query(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path)
    cache.put("http://a", QUERY, KERNEL)
    assert KernelCache(tmp_path).get("http://a", QUERY) == KERNEL
    assert cache.get("http://b", QUERY) is None
    assert cache.get("http://a", QUERY.model_copy(update={"target": "cpu -num-cores=1"})) is None


def test_a_file_cut_short_is_no_kernel(tmp_path: Path) -> None:
    cache = KernelCache(tmp_path)
    cache.put("http://a", QUERY, KERNEL)
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    file.write_bytes(b'"tag"')
    assert cache.get("http://a", QUERY) is None


def test_a_directory_that_cannot_be_written_costs_nothing_but_the_cache(tmp_path: Path) -> None:
    blocked = tmp_path / "a file, not a directory"
    blocked.write_text("")
    cache = KernelCache(blocked)
    cache.put("http://a", QUERY, KERNEL)
    assert cache.get("http://a", QUERY) is None


def test_the_environment_chooses_the_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    monkeypatch.delenv("LOOPWRIGHT_CACHE", raising=False)
    assert default_directory() == Path("/x/loopwright")
    monkeypatch.setenv("LOOPWRIGHT_CACHE", "/y")
    assert default_directory() == Path("/y")
