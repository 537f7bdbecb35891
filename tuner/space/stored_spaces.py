"""Design spaces as files: reading one takes a hundredth to a tenth of the time of making it.

A coordinator's process enables them. A file belongs to one version of the code, one program, and
one target. Its first line is a digest of the rest, so a damaged file is not used.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import compiler
import tuner
from compiler.schedule.error import TraceError
from compiler.target.target import Target
from tuner.space.design_space import SketchSpace
from tuner.space.sketch_json import read_sketch, write_sketch
from tuner.task import Task

_MAX_FILES = 1000
"""Files of a directory, of up to 100 KB each: at more, the oldest are deleted. Chosen."""

_directories: list[Path] = []


def keep_in(directory: Path) -> None:
    """Keep design spaces in a directory from now on; the process must be the user's own."""
    _directories[:] = [directory / "spaces"]


def load(task: Task, rules: Collection[str] | None) -> SketchSpace | None:
    """Return the stored space of a task; None if there is none."""
    for directory in _directories:
        with suppress(OSError, TypeError, ValueError, TraceError):
            digest, _, content = (directory / _name(task, rules)).read_bytes().partition(b"\n")
            if digest.decode() == sha256(content).hexdigest():
                return SketchSpace(map(read_sketch, json.loads(content)), task.target)
    return None


def save(task: Task, rules: Collection[str] | None, space: SketchSpace) -> None:
    """Store the space of a task, if a directory was chosen and can be written."""
    for directory in _directories:
        # A sketch of an added kind may have no JSON.
        with suppress(OSError, TypeError, ValueError):
            content = json.dumps([write_sketch(sketch) for sketch in space.sketches]).encode()
            directory.mkdir(parents=True, exist_ok=True)
            _delete_old(directory)
            with NamedTemporaryFile(dir=directory, delete=False) as file:
                file.write(sha256(content).hexdigest().encode() + b"\n" + content)
            os.replace(file.name, directory / _name(task, rules))


def _delete_old(directory: Path) -> None:
    files = sorted(directory.iterdir(), key=lambda path: path.stat().st_mtime)
    for path in files[: max(0, len(files) - _MAX_FILES)]:
        path.unlink(missing_ok=True)


def _name(task: Task, rules: Collection[str] | None) -> str:
    decides = (
        _digest_of_code(),
        task.script,  # not its hash: traces depend on the names of blocks
        task.target.name,
        _facts(task.target),
        None if rules is None else sorted(rules),
    )
    return sha256(repr(decides).encode()).hexdigest()


def _facts(target: Target) -> dict[str, Any]:
    """Return the properties of a target: those of this host's CPU are not in its name."""
    names = [name for name in dir(target) if isinstance(getattr(type(target), name, 0), property)]
    return {name: getattr(target, name) for name in names}


@cache
def _digest_of_code() -> str:
    """Return a digest of all code that makes design spaces."""
    digest = sha256()
    for package in (compiler, tuner):
        for folder in package.__path__:
            for path in sorted(Path(folder).rglob("*.py")):
                digest.update(path.read_bytes())
    return digest.hexdigest()
