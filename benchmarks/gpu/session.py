"""A run of one command: its progress, its time limit, and its file of results."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.gpu.bench_gpu import BenchGpu
from benchmarks.report import commit, machine


class Session:
    """Collects rows; each is written at once, so that a run that is ended early leaves its results.

    Args:
        command: The name of the command.
        gpu: The GPU.
        folder: The folder of the file.
        max_secs: The time that the command should take at most.
    """

    def __init__(self, command: str, gpu: BenchGpu, folder: Path, max_secs: float) -> None:
        self.gpu = gpu
        self.folder = folder
        self._command = command
        self._started = time.monotonic()
        self._max_secs = max_secs
        self._rows: list[Mapping[str, Any]] = []

    @property
    def path(self) -> Path:
        """The file of results; its name has the label, so estimates never replace measurements."""
        return result_path(self.folder, self._command, self.gpu)

    @property
    def secs_left(self) -> float:
        """The rest of the time."""
        return self._max_secs - (time.monotonic() - self._started)

    def share(self, num_left: int) -> float:
        """Return the seconds for the next of several equal parts of the work that is left."""
        return max(1.0, self.secs_left / max(num_left, 1))

    def say(self, text: str) -> None:
        """Print a line of progress."""
        print(f"[{time.monotonic() - self._started:5.0f} s] {text}", flush=True)

    def add(self, row: Mapping[str, Any], text: str) -> None:
        """Add a row of results, and say it in words."""
        self._rows.append(row)
        self.say(f"{text} (estimate)" if self.gpu.is_emulated and row.get("secs") else text)
        self.folder.mkdir(parents=True, exist_ok=True)
        content = {
            "benchmark": self._command,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "wall_secs": time.monotonic() - self._started,
            "machine": machine(),
            "commit": commit(),
            "gpu": self.gpu.facts(),
            "rows": self._rows,
        }
        self.path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def result_path(folder: Path, command: str, gpu: BenchGpu) -> Path:
    """Return the file of a command's results on a GPU."""
    return folder / f"{command}-{gpu.target.label.replace('/', '-')}.json"
