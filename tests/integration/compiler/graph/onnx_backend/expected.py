"""The cases that are expected to fail, grouped by reason, in a file of lines.

A line that begins with `# ` is the reason of the cases below it: a part of their outcome, in which
`*` stands for any text. `python -m tests.integration.compiler.graph.onnx_backend --record` writes
the files anew.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

BY_REFERENCE = Path(__file__).parent / "expected_failures.txt"
"""Cases that the reader refuses, or that the reference does not compute."""

BY_KERNEL = Path(__file__).parent / "expected_kernel_failures.txt"
"""Cases that the reference computes, and kernels do not."""


def expected_failures(path: Path) -> dict[str, str]:
    """Return the reasons by case."""
    reasons: dict[str, str] = {}
    reason = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            reason = line.removeprefix("# ")
        elif line:
            reasons[line] = reason
    return reasons


def is_explained(outcome: str, reason: str) -> bool:
    """Return whether an outcome has the expected reason."""
    pattern = ".*".join(re.escape(part) for part in reason.split("*"))
    return re.search(pattern, outcome, re.DOTALL) is not None


def record(path: Path, outcomes: Mapping[str, str]) -> None:
    """Write the cases that do not pass, with what their outcomes share as the reason."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name, outcome in outcomes.items():
        if outcome != "passed":
            groups[_reason(outcome)].append(name)
    lines = []
    for reason in sorted(groups):
        lines += [f"# {reason}", *sorted(groups[reason]), ""]
    path.write_text("\n".join(lines), encoding="utf-8")


def _reason(outcome: str) -> str:
    """Return an outcome without names, shapes and advice."""
    text = outcome.partition(": ")[2].partition(";")[0]
    return re.sub(r"'[^']*'|\([^()]*\)", "*", text)[:90].rstrip()
