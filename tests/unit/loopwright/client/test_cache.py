from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from compiler.user_cache import default_directory
from loopwright.atomic_file import PARTIAL
from loopwright.client.cache import CachedAnswer, DiskCache
from service.wire.requests import ScheduleQuery, Workload

AT = datetime(2026, 1, 1, tzinfo=UTC)
KEPT = CachedAnswer('"tag"', b"\x00bytes\nwith a line\n", AT, "nearest")


def query(size: int = 8) -> ScheduleQuery:
    return ScheduleQuery(workload=Workload(operator=f"matmul:{size},8,8"))


def files(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


def test_what_was_put_is_got_by_kind_server_and_query(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    cache.put("kernels", "http://a", query(), KEPT)
    assert DiskCache(tmp_path).get("kernels", "http://a", query()) == KEPT
    assert cache.get("schedules", "http://a", query()) is None
    assert cache.get("kernels", "http://b", query()) is None
    other = query().model_copy(update={"target": "cpu -num-cores=1"})
    assert cache.get("kernels", "http://a", other) is None
    assert KEPT.age_secs > 0


def damage(content: bytes) -> list[bytes]:
    flipped = bytearray(content)
    flipped[-3] ^= 1
    return [b"", b"{}", content[:-1], bytes(flipped), content.replace(b"2026", b"noon"), b"\xff\n"]


@pytest.mark.parametrize("kind", range(6))
def test_a_damaged_file_is_dropped_and_written_anew(tmp_path: Path, kind: int) -> None:
    cache = DiskCache(tmp_path)
    cache.put("kernels", "http://a", query(), KEPT)
    (file,) = files(tmp_path)
    file.write_bytes(damage(file.read_bytes())[kind])
    assert cache.get("kernels", "http://a", query()) is None
    assert files(tmp_path) == []
    cache.put("kernels", "http://a", query(), KEPT)
    assert cache.get("kernels", "http://a", query()) == KEPT


def test_what_was_not_asked_for_longest_goes_first(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, max_bytes=10_000)
    for size in range(8):
        cache.put("kernels", "http://a", query(size), CachedAnswer("", bytes(1000), AT))
        (newest,) = {*files(tmp_path)} - {f for f in files(tmp_path) if f.stat().st_mtime < 1e6}
        os.utime(newest, (size, size))
    cache.get("kernels", "http://a", query(0))
    cache.put("kernels", "http://a", query(8), CachedAnswer("", bytes(1000), AT))
    known = [n for n in range(9) if cache.get("kernels", "http://a", query(n))]
    assert sum(file.stat().st_size for file in files(tmp_path)) <= 10_000
    assert 0 in known  # asked for since
    assert 1 not in known
    assert known[-1] == 8


def test_what_a_killed_writer_left_is_cleared_away_after_a_while(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    cache.put("kernels", "http://a", query(), KEPT)
    old, new = (tmp_path / "kernels" / f"{PARTIAL}{name}" for name in ("old", "new"))
    for path in (old, new):
        path.write_bytes(b"...")
    os.utime(old, (1.0, 1.0))
    cache.put("kernels", "http://a", query(9), KEPT)
    assert (old.exists(), new.exists()) == (False, True)


def hammer(directory: Path, seed: int) -> int:
    """Put and get at random; return how many answers were found, each of them right."""
    cache = DiskCache(directory, max_bytes=20_000)
    num_found = 0
    for turn in range(60):
        size = 1 + (seed * 7 + turn * 5) % 12
        content = bytes([size]) * 3000
        cache.put("kernels", "http://a", query(size), CachedAnswer(str(size), content, AT))
        kept = cache.get("kernels", "http://a", query(1 + turn % 12))
        if kept is not None:
            assert kept.content == bytes([int(kept.etag)]) * 3000
            num_found += 1
    return num_found


def test_processes_share_a_directory_that_is_too_small_for_all(tmp_path: Path) -> None:
    with ProcessPoolExecutor(3) as pool:
        found = list(pool.map(hammer, [tmp_path] * 3, range(3)))
    assert sum(found) > 0
    DiskCache(tmp_path, max_bytes=20_000).put("kernels", "http://a", query(99), KEPT)
    assert sum(file.stat().st_size for file in files(tmp_path)) <= 20_000
    assert not [file for file in files(tmp_path) if file.name.startswith(PARTIAL)]


def test_a_directory_that_cannot_be_written_costs_nothing_but_the_cache(tmp_path: Path) -> None:
    blocked = tmp_path / "a file, not a directory"
    blocked.write_text("")
    cache = DiskCache(blocked)
    cache.put("kernels", "http://a", query(), KEPT)
    assert cache.get("kernels", "http://a", query()) is None


def test_the_environment_chooses_the_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    monkeypatch.delenv("LOOPWRIGHT_CACHE", raising=False)
    assert default_directory() == Path("/x/loopwright")
    monkeypatch.setenv("LOOPWRIGHT_CACHE", "/y")
    assert default_directory() == Path("/y")
