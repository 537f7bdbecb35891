"""The cache of servers' answers on disk, kept between runs, with a size limit.

One file an answer, written atomically, with a checksum: several processes may share the directory,
and a damaged file is ignored. If the files exceed the limit, the least recently used are removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from compiler.user_cache import default_directory
from loopwright.atomic_file import atomic_file
from loopwright.cache_space import MAX_BYTES, make_room
from service.wire.requests import ScheduleQuery


@dataclass(frozen=True)
class CachedAnswer:
    """An answer: its bytes, the tag by which the server identifies them, and their time.

    `schedule` is the server's header for a kernel's schedule, `signature` its signature of the
    kernel.
    """

    etag: str
    content: bytes
    fetched_at: datetime
    schedule: str = ""
    signature: str = ""

    @property
    def age_secs(self) -> float:
        """Return the time since the server sent it, in seconds."""
        return max(0.0, (datetime.now(UTC) - self.fetched_at).total_seconds())


class DiskCache:
    """Answers by kind, server and query, under one directory.

    A directory that cannot be written, or a file that another process takes away meanwhile, costs
    the next download and nothing else.
    """

    def __init__(self, directory: Path | None = None, max_bytes: int = MAX_BYTES) -> None:
        self.directory = directory or default_directory()
        self._max_bytes = max_bytes

    def get(self, kind: str, url: str, query: ScheduleQuery) -> CachedAnswer | None:
        """Return the stored answer, or None; a damaged file is dropped."""
        path = self._path(kind, url, query)
        try:
            content = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        answer = _decode(content)
        if answer is None:
            with contextlib.suppress(OSError):
                path.unlink()
        return answer

    def put(self, kind: str, url: str, query: ScheduleQuery, answer: CachedAnswer) -> None:
        """Keep an answer, and let go of the oldest if there are too many."""
        path = self._path(kind, url, query)
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_file(path) as file:
                file.write(_encode(answer))
            make_room(self.directory, self._max_bytes)

    def _path(self, kind: str, url: str, query: ScheduleQuery) -> Path:
        query_json = query.model_dump_json(exclude={"enqueue"})  # the answer is the same
        key = hashlib.sha256(f"{url}\n{query_json}".encode()).hexdigest()
        return self.directory / kind / key


def _encode(answer: CachedAnswer) -> bytes:
    head = {
        "etag": answer.etag,
        "fetched_at": answer.fetched_at.isoformat(),
        "schedule": answer.schedule,
        "signature": answer.signature,
        "sha256": hashlib.sha256(answer.content).hexdigest(),
    }
    return json.dumps(head).encode() + b"\n" + answer.content


def _decode(file_content: bytes) -> CachedAnswer | None:
    """Return the contents of a file; None if it is damaged."""
    line, _, content = file_content.partition(b"\n")
    try:
        head = json.loads(line)
        if head["sha256"] != hashlib.sha256(content).hexdigest():
            return None
        fetched_at = datetime.fromisoformat(head["fetched_at"])
        return CachedAnswer(
            str(head["etag"]),
            content,
            fetched_at.astimezone(UTC),
            str(head["schedule"]),
            str(head.get("signature", "")),
        )
    except (ValueError, KeyError, TypeError):
        return None
