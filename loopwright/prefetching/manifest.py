"""Manifests: the workloads whose kernels must be ready, as a TOML file.

    target = "cpu"

    [[kernels]]
    workload = "matmul:{rows},768,768"
    rows = [1, 16, 128]

    [[kernels]]
    workload = "attention.script"
    target = "cpu -num-cores=1"

A name in braces takes each value of its list; several names take all combinations.
"""

from __future__ import annotations

import itertools
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compiler.ir.core.program import PrimFunc
from compiler.ops import OperatorError
from compiler.script import ScriptError
from loopwright.errors import ManifestError
from loopwright.workload import to_func

MAX_KERNELS = 10_000
"""The limit on the kernels of a manifest: a list that is too long by mistake is refused. Chosen."""

_NAME = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SCRIPT_SUFFIXES = (".py", ".script", ".tvmscript")


@dataclass(frozen=True)
class WantedKernel:
    """A kernel of a manifest: the workload as it is written, its program, and its target."""

    workload: str
    func: PrimFunc
    target: str

    @property
    def query(self) -> str | PrimFunc:
        """Return the workload of a request: programs request an operator in its spelling."""
        return self.func if Path(self.workload).suffix in _SCRIPT_SUFFIXES else self.workload


def read_manifest(path: str | Path) -> list[WantedKernel]:
    """Return the kernels of a manifest, in its order; equal ones once.

    Raises:
        ManifestError: If it can't be read, has an unknown field, or a workload is not valid.
    """
    file = Path(path)
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ManifestError(f"the manifest {path} cannot be read: {error.strerror}") from error
    except ValueError as error:  # TOMLDecodeError and UnicodeDecodeError are
        raise ManifestError(f"the manifest {path} is no TOML file: {error}") from error
    try:
        return _wanted(content, file.parent)
    except (ManifestError, OperatorError, ScriptError) as error:
        raise ManifestError(f"the manifest {path}: {error}") from error


def _wanted(content: dict[str, Any], folder: Path) -> list[WantedKernel]:
    _check_fields("it", content, {"kernels", "target"})
    target = _text("target", content.get("target", "cpu"))
    entries = content.get("kernels")
    is_list = isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)
    if not is_list or not entries:
        raise ManifestError("expected at least one [[kernels]] with a workload")
    labels: dict[tuple[str, str], str] = {}
    for number, entry in enumerate(entries, start=1):
        label = f"kernel {number}"
        goal = _text(f"{label}: target", entry.get("target", target))
        for workload in _workloads(entry, label):
            labels.setdefault((workload, goal), label)
            # Programs are made afterwards: those of a list that is too long take seconds.
            if len(labels) > MAX_KERNELS:
                raise ManifestError(f"it has more than {MAX_KERNELS} kernels")
    return [
        WantedKernel(workload, to_func(_program_text(workload, folder, label)), goal)
        for (workload, goal), label in labels.items()
    ]


def _workloads(entry: dict[str, Any], label: str) -> list[str]:
    """Return the workloads of an entry, with all combinations of its values."""
    template = _text(f"{label}: workload", entry.get("workload"))
    names = list(dict.fromkeys(_NAME.findall(template)))
    _check_fields(label, entry, {"workload", "target", *names})
    values = [_values(entry, name, label) for name in names]
    combinations = itertools.islice(itertools.product(*values), MAX_KERNELS + 1)
    return [_filled(template, dict(zip(names, chosen, strict=True))) for chosen in combinations]


def _filled(template: str, values: dict[str, int | str]) -> str:
    return _NAME.sub(lambda match: str(values[match[1]]), template)


def _values(entry: dict[str, Any], name: str, label: str) -> list[int | str]:
    values = entry.get(name)
    is_list = isinstance(values, list) and values
    if not is_list or not all(type(value) in (int, str) for value in values or ()):
        raise ManifestError(
            f"{label}: {name} is {values!r}: expected a list of values for {{{name}}}, such as"
            " [1, 16]"
        )
    return list(values or ())


def _program_text(workload: str, folder: Path, label: str) -> str:
    """Return an operator, or the text of a script file, whose path begins at the manifest."""
    if Path(workload).suffix not in _SCRIPT_SUFFIXES:
        return workload
    try:
        return (folder / workload).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ManifestError(f"{label}: the script {workload} cannot be read: {reason}") from error


def _check_fields(label: str, fields: dict[str, Any], expected: set[str]) -> None:
    unknown = sorted(set(fields) - expected)
    if unknown:
        raise ManifestError(
            f"{label} has an unknown field {unknown[0]!r}: expected {', '.join(sorted(expected))}"
        )


def _text(label: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ManifestError(f"{label} is {value!r}: expected a text")
    return value
