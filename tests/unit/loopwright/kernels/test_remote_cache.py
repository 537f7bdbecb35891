"""Kernels in a cache on a server: shared, authenticated, and never slow or wrong."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from compiler.ops import from_spec
from compiler.target.target import Target
from loopwright.errors import LoopwrightError
from loopwright.kernels import cached_build, remote_cache
from loopwright.kernels.cached_build import build_kernel
from loopwright.kernels.remote_cache import MAX_ENTRY_BYTES, RemoteCache
from loopwright.locks.lock_file import LockFile
from tests.targets import here
from tests.unit.loopwright.locks.made import OPERATOR, locked

SECRET = b"0123456789abcdef"
FUNC = from_spec("matmul:8,6,4")


class CacheServer:
    """A server that keeps entries as they are sent; on request it is slow, or answers errors."""

    def __init__(self) -> None:
        self.entries: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.tokens: set[str | None] = set()
        self.status = 0
        self.pause_secs = 0.0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.note(self)
                entry = outer.entries.get(self.path)
                self.send_response(outer.status or (404 if entry is None else 200))
                self.send_header("Content-Length", str(len(entry or b"")))
                self.end_headers()
                if not outer.pause_secs:
                    self.wfile.write(entry or b"")
                    return
                for byte in entry or b"":  # each is within the time limit of a read
                    self.wfile.write(bytes([byte]))
                    time.sleep(outer.pause_secs)

            def do_PUT(self) -> None:
                outer.note(self)
                entry = self.rfile.read(int(self.headers["Content-Length"]))
                outer.entries.setdefault(self.path, entry)
                self.send_response(outer.status or 201)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._http.handle_error = lambda *_: None  # type: ignore[method-assign]
        self.url = f"http://127.0.0.1:{self._http.server_port}/cache"
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def note(self, handler: BaseHTTPRequestHandler) -> None:
        self.requests.append(handler.command)
        self.tokens.add(handler.headers["Authorization"])

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def server() -> Iterator[CacheServer]:
    server = CacheServer()
    yield server
    server.close()


@pytest.fixture
def used(
    server: CacheServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[CacheServer]:
    """Have this process use the server."""
    (tmp_path / "secret").write_bytes(SECRET + b"\n")
    (tmp_path / "token").write_text("lwt_x\n")
    monkeypatch.setenv(remote_cache.URL, server.url)
    monkeypatch.setenv(remote_cache.SECRET_FILE, str(tmp_path / "secret"))
    monkeypatch.setenv(remote_cache.TOKEN_FILE, str(tmp_path / "token"))
    yield server
    remote_cache._cache_of.cache_clear()


def cache_at(url: str, timeout_secs: float = 5.0) -> RemoteCache:
    return RemoteCache(url, SECRET, None, timeout_secs)


def check_product(kernel: lw.Kernel) -> None:
    a, b = np.ones((8, 4), "float32"), np.full((4, 6), 2, "float32")
    c = np.zeros((8, 6), "float32")
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a @ b)


def test_another_process_takes_what_was_built(
    used: CacheServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifact = build_kernel(FUNC, here())
    assert (used.requests, len(used.entries)) == (["GET", "PUT"], 1)
    assert used.tokens == {"Bearer lwt_x"}
    monkeypatch.setattr(cached_build, "build_here", None)  # a call would be an error
    assert build_kernel(FUNC, here()) == artifact
    kernel = lw.Kernel(artifact, lw.KernelSource.DEFAULT)
    check_product(kernel)


def test_what_a_kernel_depends_on_is_in_its_key(
    used: CacheServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = lw.Schedule(FUNC)
    schedule.split(schedule.get_loops("C")[0], [None, 4])
    build_kernel(FUNC, here())
    build_kernel(FUNC, here(), schedule.trace)
    build_kernel(FUNC, here(2))
    build_kernel(FUNC, Target(f"{here().name} -cache=cold"))
    build_kernel(from_spec("matmul:8,6,5"), here())
    monkeypatch.setattr(lw, "__version__", "0.0")
    build_kernel(FUNC, here())
    assert len(used.entries) == 6


@pytest.mark.parametrize(
    "change",
    [
        lambda entry: entry[:-1] + bytes([entry[-1] ^ 1]),
        lambda entry: entry.replace(b'"hmac": "', b'"hmac": "0'),
        lambda entry: entry[: len(entry) // 2],
        lambda _: b"",
        lambda _: b"[]\n",
    ],
)
def test_a_changed_entry_is_not_loaded(server: CacheServer, change: Any) -> None:
    cache = cache_at(server.url)
    cache.put("key", b"code")
    assert cache.get("key") == b"code"
    server.entries["/cache/key"] = change(server.entries["/cache/key"])
    with pytest.warns(RuntimeWarning, match="damaged, or was stored with another secret"):
        assert cache.get("key") is None


def test_an_entry_of_another_key_or_without_the_secret_is_not_loaded(server: CacheServer) -> None:
    cache_at(server.url).put("key", b"code")
    RemoteCache(server.url, b"another secret..", None).put("foreign", b"code")
    server.entries["/cache/moved"] = server.entries["/cache/key"]
    for key in ("moved", "foreign"):
        with pytest.warns(RuntimeWarning, match="not used"):
            assert cache_at(server.url).get(key) is None


def test_an_authentic_entry_of_another_kernel_is_built_here(used: CacheServer) -> None:
    other = build_kernel(from_spec("matmul:8,6,5"), here())
    cache_at(used.url).put(cached_build._key(FUNC, here(), cached_build._DEFAULT), other.to_bytes())
    check_product(lw.Kernel(build_kernel(FUNC, here()), lw.KernelSource.DEFAULT))


def test_a_server_that_answers_byte_by_byte_costs_one_time_limit(server: CacheServer) -> None:
    cache = cache_at(server.url, timeout_secs=0.5)
    cache.put("key", bytes(5000))
    server.pause_secs = 0.05
    with pytest.warns(RuntimeWarning, match="no answer in 0.5 s"):
        assert cache.get("key") is None
    num_requests = len(server.requests)
    assert cache.get("key") is None
    cache.put("other", b"")
    assert len(server.requests) == num_requests, "it is not asked again"


def test_a_server_that_is_down_or_refuses_is_asked_once(server: CacheServer) -> None:
    server.status = 500
    cache = cache_at(server.url)
    with pytest.warns(RuntimeWarning, match="500"):
        assert cache.get("key") is None
    assert cache.get("key") is None
    assert len(server.requests) == 1
    server.status = 403
    cache = cache_at(server.url)
    with pytest.warns(RuntimeWarning, match="403"):
        cache.put("key", b"code")
    server.close()
    with pytest.warns(RuntimeWarning, match="not used any more"):
        assert cache_at(server.url).get("key") is None


def test_an_entry_that_is_too_large_is_neither_sent_nor_read(server: CacheServer) -> None:
    cache = cache_at(server.url)
    cache.put("key", bytes(MAX_ENTRY_BYTES))
    assert server.requests == []
    server.entries["/cache/key"] = bytes(MAX_ENTRY_BYTES + 1)
    with pytest.warns(RuntimeWarning, match="an entry of more than"):
        assert cache.get("key") is None


def test_without_its_variable_no_cache_is_used() -> None:
    assert remote_cache.remote_cache() is None


@pytest.mark.parametrize(
    ("url", "secret", "message"),
    [
        ("ftp://x/cache", "0" * 32, "is no address"),
        ("http://x/cache", None, "_SECRET_FILE is not: name a file"),
        ("http://x/cache", "short", "has 5 bytes: expected 16 or more"),
    ],
)
def test_a_wrong_setting_is_said(
    url: str, secret: str | None, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(remote_cache.URL, url)
    if secret is not None:
        (tmp_path / "secret").write_text(secret)
        monkeypatch.setenv(remote_cache.SECRET_FILE, str(tmp_path / "secret"))
    with pytest.raises(LoopwrightError, match=message):
        build_kernel(FUNC, here())


def test_a_locked_kernel_comes_from_the_cache_if_it_has_the_locked_code(
    used: CacheServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "kernels.lock"
    entry = locked()
    LockFile((entry,)).save(path)
    program = lw.ops.from_spec(OPERATOR)  # that of a text is kept on disk, too
    built = lw.kernel(program, lock=path, target=here()).artifact
    with monkeypatch.context() as patch:
        patch.setattr(cached_build, "build_here", None)
        assert lw.kernel(program, lock=path, target=here()).artifact == built
    assert used.requests == ["GET", "PUT", "GET"]
    key = next(iter(used.entries))
    changed = replace(built, code=built.code + b"\0")
    used.entries.clear()
    cache_at(used.url).put(key.rpartition("/")[2], changed.to_bytes())
    assert lw.kernel(program, lock=path, target=here()).artifact == built
