"""The list of ONNX's operators in `docs/models.md`.

`python -m tests.unit.compiler.graph.read_onnx.operator_table` writes it anew.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import compiler.graph.read_onnx  # noqa: F401  declares the conversions
from compiler.graph.read_onnx.registry import CONVERSIONS

PAGE = Path(__file__).parents[5] / "docs" / "models.md"
HEAD = "| family | operators |\n| --- | --- |\n"


def table() -> str:
    """Return the list as it stands on the page."""
    families: dict[str, list[str]] = defaultdict(list)
    for (domain, op_type), conversion in CONVERSIONS.items():
        family = conversion.__module__.rpartition(".")[2].replace("_", " ")
        families[family].append(f"{domain}.{op_type}" if domain else op_type)
    rows = [
        f"| {family} | {', '.join(sorted(families[family]))} |\n" for family in sorted(families)
    ]
    return HEAD + "".join(rows)


if __name__ == "__main__":
    PAGE.write_text(PAGE.read_text(encoding="utf-8").partition(HEAD)[0] + table(), encoding="utf-8")
