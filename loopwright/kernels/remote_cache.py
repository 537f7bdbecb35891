"""A cache of compiled kernels on a server, by plain HTTP: `GET` and `PUT` by digest.

An entry is code that runs here. It has a message authentication code, whose secret the server does
not have: without it, entries of the server or of another user of its tokens are not loaded. A
server that fails or is slow costs one time limit a process.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import threading
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from loopwright.errors import LoopwrightError
from loopwright.user_warnings import warn_user

URL = "LOOPWRIGHT_REMOTE_CACHE"
TOKEN_FILE = "LOOPWRIGHT_REMOTE_CACHE_TOKEN_FILE"
SECRET_FILE = "LOOPWRIGHT_REMOTE_CACHE_SECRET_FILE"

TIMEOUT_SECS = 3.0
"""Time limit of a request in total. Chosen: building a kernel takes a few times less or longer."""
MAX_ENTRY_BYTES = 2 << 20
"""Limit of an entry: that of a server of Loopwright (`docs/cache.md`)."""
_MIN_SECRET_BYTES = 16
"""A chosen bound: a secret of fewer bytes can be guessed."""
_FORMAT = 1
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
# Answers that concern one entry; all others mean that the cache can't be used.
_MISSING, _TOO_LARGE, _OTHER_BYTES = 404, 413, 409
_STORED = (200, 201, 204, _TOO_LARGE, _OTHER_BYTES)


class RemoteCache:
    """Entries on a server. A failure is a warning, and ends its use by this object.

    Args:
        url: The address of the entries; `/` and the key follow it.
        secret: Authenticates entries; all who share them have it, and the server does not.
        token: Authenticates requests; None for a server without authentication.
        timeout_secs: The time limit of a request.
    """

    def __init__(
        self, url: str, secret: bytes, token: str | None, timeout_secs: float = TIMEOUT_SECS
    ) -> None:
        self._url = url.rstrip("/")
        self._secret = secret
        self._timeout_secs = timeout_secs
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._is_usable = True

    def get(self, key: str) -> bytes | None:
        """Return the content of an entry; None if it is missing, or not authentic."""
        entry = self._within_time(lambda: self._read(key))
        return None if entry is None else self._opened(key, entry)

    def put(self, key: str, content: bytes) -> None:
        """Store an entry."""
        head = {
            "format": _FORMAT,
            "sha256": hashlib.sha256(content).hexdigest(),
            "hmac": self._code(key, content),
        }
        entry = json.dumps(head).encode() + b"\n" + content
        if len(entry) <= MAX_ENTRY_BYTES:
            self._within_time(lambda: self._write(key, entry))

    def _read(self, key: str) -> bytes | None:
        with self._client() as client, client.stream("GET", f"{self._url}/{key}") as response:
            if response.status_code == _MISSING:
                return None
            response.raise_for_status()
            content = bytearray()
            for chunk in response.iter_bytes():
                content += chunk
                if len(content) > MAX_ENTRY_BYTES:
                    raise httpx2.HTTPError(f"an entry of more than {MAX_ENTRY_BYTES} bytes")
            return bytes(content)

    def _write(self, key: str, entry: bytes) -> None:
        headers = {"Content-Type": "application/octet-stream"}
        with self._client() as client:
            response = client.put(f"{self._url}/{key}", content=entry, headers=headers)
        if response.status_code not in _STORED:
            response.raise_for_status()
            raise httpx2.HTTPError(f"status {response.status_code} for a new entry")

    def _client(self) -> httpx2.Client:
        is_local = urlsplit(self._url).hostname in _LOOPBACK
        # A proxy from the environment can't reach this host's loopback.
        return httpx2.Client(
            headers=self._headers, timeout=self._timeout_secs, trust_env=not is_local
        )

    def _within_time(self, request: Callable[[], bytes | None]) -> bytes | None:
        """Run a request; return None, and use the cache no more, if it fails or lasts too long.

        The time limits of the transport are those of single reads: a server that sends a byte now
        and then would delay for ever. So a thread waits for it, and is left alone.
        """
        if not self._is_usable:
            return None
        outcome: list[bytes | Exception | None] = []

        def run() -> None:
            try:
                outcome.append(request())
            except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
                outcome.append(error)

        thread = threading.Thread(target=run, name="remote-cache", daemon=True)
        thread.start()
        thread.join(self._timeout_secs)
        answer = outcome[0] if outcome else TimeoutError(f"no answer in {self._timeout_secs} s")
        if isinstance(answer, Exception):
            self._is_usable = False
            reason = str(answer) or type(answer).__name__
            warn_user(
                f"the remote cache {self._url} is not used any more: {reason}", RuntimeWarning
            )
            return None
        return answer

    def _opened(self, key: str, entry: bytes) -> bytes | None:
        """Return the content of an entry; warn and return None if it is not authentic."""
        line, _, content = entry.partition(b"\n")
        try:
            code = str(json.loads(line)["hmac"])
        except (ValueError, LookupError, TypeError):
            code = ""
        if hmac.compare_digest(code.encode(), self._code(key, content).encode()):
            return content
        warn_user(
            f"the entry {key} of the remote cache {self._url} is damaged, or was stored with"
            " another secret: it is not used",
            RuntimeWarning,
        )
        return None

    def _code(self, key: str, content: bytes) -> str:
        digest = hashlib.sha256(content).hexdigest()
        return hmac.new(self._secret, f"{_FORMAT} {key} {digest}".encode(), "sha256").hexdigest()


def remote_cache() -> RemoteCache | None:
    """Return the cache that the environment names; None if it names none.

    Raises:
        LoopwrightError: If the address or a file that it names is missing or unusable.
    """
    url = os.environ.get(URL)
    if not url:
        return None
    return _cache_of(url, os.environ.get(SECRET_FILE, ""), os.environ.get(TOKEN_FILE, ""))


@lru_cache(maxsize=8)
def _cache_of(url: str, secret_file: str, token_file: str) -> RemoteCache:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise LoopwrightError(f"{URL}={url!r} is no address: expected https://HOST/PATH")
    if not secret_file:
        raise LoopwrightError(
            f"{URL} is set, and {SECRET_FILE} is not: name a file with a secret that all users of"
            " the cache share, such as the output of `openssl rand -hex 32`"
        )
    secret = _text_of(SECRET_FILE, secret_file).encode()
    if len(secret) < _MIN_SECRET_BYTES:
        raise LoopwrightError(
            f"{SECRET_FILE}: {secret_file} has {len(secret)} bytes: expected"
            f" {_MIN_SECRET_BYTES} or more"
        )
    return RemoteCache(url, secret, _text_of(TOKEN_FILE, token_file) if token_file else None)


def _text_of(variable: str, path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise LoopwrightError(f"{variable}: {path} can't be read: {error}") from error
