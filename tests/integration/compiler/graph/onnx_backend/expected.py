"""The cases that are expected to fail, grouped by reason, in a file of lines.

A line that begins with `# ` is the reason of the cases below it: a part of their outcome, in which
`*` stands for any text. `make onnx-cases ARGS=--record` writes the file anew.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

_PATH = Path(__file__).parent / "expected_failures.txt"


def expected_failures() -> dict[str, str]:
    """Return the reasons by case."""
    reasons: dict[str, str] = {}
    reason = ""
    for line in _PATH.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            reason = line.removeprefix("# ")
        elif line:
            reasons[line] = reason
    return reasons


def deviations(outcomes: Mapping[str, str]) -> list[str]:
    """Return the cases that fail for no expected reason, and those that pass unexpectedly."""
    expected = expected_failures()
    lines = []
    for name, outcome in outcomes.items():
        if outcome == "passed":
            if name in expected:
                lines.append(f"{name}: passed: expected {expected[name]}; record it")
        elif name not in expected:
            lines.append(f"{name}: {outcome}")
        elif not _is_explained(outcome, expected[name]):
            lines.append(f"{name}: {outcome}: expected {expected[name]}")
    return lines


def _is_explained(outcome: str, reason: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in reason.split("*"))
    return outcome.startswith("refused") and re.search(pattern, outcome, re.DOTALL) is not None


def record(outcomes: Mapping[str, str]) -> None:
    """Write the cases that are refused, with what their outcomes share as the reason."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name, outcome in outcomes.items():
        if outcome.startswith("refused"):
            groups[_reason(outcome)].append(name)
    lines = []
    for reason in sorted(groups):
        lines += [f"# {reason}", *sorted(groups[reason]), ""]
    _PATH.write_text("\n".join(lines), encoding="utf-8")


def _reason(outcome: str) -> str:
    """Return an outcome without names, shapes and advice."""
    text = outcome.partition(": ")[2].partition(";")[0]
    return re.sub(r"'[^']*'|\([^()]*\)", "*", text)[:90].rstrip()
