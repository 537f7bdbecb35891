"""What is recorded of the operators: `python -m tests.unit.compiler.ops.records` adds what is new.

A recorded program never changes: stored workloads are found by their hashes.
"""

from __future__ import annotations

import json
from pathlib import Path

from compiler import ops
from compiler.ir.analysis.structural import structural_hash
from compiler.ir.core.nodes import Block
from compiler.ir.core.visit import walk
from compiler.ops.spec import signature
from tests.unit.compiler.ops.specs import SPECS

PAGE = Path(__file__).parents[4] / "docs" / "operators.md"
PROGRAMS = Path(__file__).parent / "recorded_programs.json"
HEAD = "| operator | what it computes |\n| --- | --- |\n"


def described(spec: str) -> list[str]:
    """Return the start of a program's hash, and the names of its parameters and blocks."""
    func = ops.from_spec(spec)
    blocks = [node for node in walk(func.body) if isinstance(node, Block)]
    names = [buffer.name for buffer in func.buffers] + [block.name for block in blocks[1:]]
    return [structural_hash(func)[:16], " ".join(names)]


def recorded() -> dict[str, list[str]]:
    """Return the descriptions of programs by spec."""
    programs: dict[str, list[str]] = json.loads(PROGRAMS.read_text(encoding="utf-8"))
    return programs


def table() -> str:
    """Return the list of operators as it stands on the page."""
    rows = []
    for name in sorted(ops.OPERATORS):
        written = signature(name).replace("[:dtype]", "")
        summary = ops.OPERATORS[name].summary.replace("|", "\\|")
        rows.append(f"| `{written}` | {summary} |\n")
    return HEAD + "".join(rows)


def main() -> None:
    """Record the programs of new specs, and write the list of operators anew."""
    programs = recorded()
    for spec in SPECS:
        programs.setdefault(spec, described(spec))
    lines = [f" {json.dumps(spec)}: {json.dumps(of)}" for spec, of in programs.items()]
    PROGRAMS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    PAGE.write_text(PAGE.read_text(encoding="utf-8").partition(HEAD)[0] + table(), encoding="utf-8")


if __name__ == "__main__":
    main()
