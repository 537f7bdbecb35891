"""A class name stands for one thing: no two modules of the packages define the same one."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("compiler", "tuner", "workers", "service", "loopwright")


def classes() -> dict[str, list[str]]:
    """Return the modules that define a class at their top, by its name."""
    modules = defaultdict(list)
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef):
                    modules[node.name].append(str(path.relative_to(ROOT)))
    return modules


def test_no_two_classes_have_one_name() -> None:
    names = classes()
    assert len(names) > 500
    assert {name: where for name, where in names.items() if len(where) > 1} == {}
