"""Run each operator of the library on each target: `make test-targets`.

It writes `docs/targets.md`, which shows where an operator was correct.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from compiler.ops.operator import OPERATORS
from compiler.target.cpu import CpuTarget
from tests.cross.operators import TARGETS, Outcome, run_operators, target_of
from tests.cross.tools import CrossTools, MissingToolError, find_tools
from tests.unit.compiler.ops.specs import SPECS

PAGE = Path(__file__).parents[2] / "docs" / "targets.md"
_MARK = "<!-- The rest of this page is written by `make test-targets`. -->\n"


def run_target(cpu: str, specs: Sequence[str]) -> list[Outcome] | str:
    """Return the outcome of each operator; or why none ran."""
    try:
        tools = find_tools(target_of(cpu))
    except MissingToolError as error:
        return str(error)
    start = time.perf_counter()
    outcomes = list(run_operators(specs, target_of(cpu, tools), tools))
    for outcome in outcomes:
        if outcome.problem:
            sys.stdout.write(f"  {cpu} {outcome.spec}: {outcome.problem}\n")
    secs = time.perf_counter() - start
    place = "in QEMU" if tools.is_emulated else "on this host"
    sys.stdout.write(f"{cpu}: {_count(outcomes)} kernels correct {place}, in {secs:.0f} s\n")
    sys.stdout.flush()
    return outcomes


def page(results: Mapping[str, Sequence[Outcome] | str]) -> str:
    """Return the tables of the page."""
    lines = ["| CPU | what runs it | code for | kernels correct |", "| --- | --- | --- | --- |"]
    for cpu, found in results.items():
        target = target_of(cpu, _tools(cpu))
        lines.append(f"| {cpu} | {_place(cpu)} | {_code(target)} | {_count(found)} |")
    cpus = [cpu for cpu, found in results.items() if not isinstance(found, str)]
    lines += ["", f"| operator | {' | '.join(cpus)} |", f"| --- |{' --- |' * len(cpus)}"]
    for name in OPERATORS:
        cells = []
        for cpu in cpus:
            found = [o for o in results[cpu] if isinstance(o, Outcome) and o.operator == name]
            cells.append(_cell(found))
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _tools(cpu: str) -> CrossTools | None:
    try:
        return find_tools(target_of(cpu))
    except MissingToolError:
        return None


def _place(cpu: str) -> str:
    tools = _tools(cpu)
    if tools is None:
        return "nothing here"
    return f"`{' '.join(tools.runner)}`" if tools.is_emulated else "the host"


def _code(target: CpuTarget) -> str:
    changes = [word for word in target.name.split() if word.startswith("-mattr")]
    return (
        f"{target.arch}, vectors of {target.vector_bits} bits{''.join(f', `{c}`' for c in changes)}"
    )


def _count(found: Sequence[Outcome] | str) -> str:
    if isinstance(found, str):
        return f"not run: {found}"
    crashes = sum(outcome.is_of_emulator for outcome in found)
    note = f"; the emulator crashed on {crashes}" if crashes else ""
    return f"{sum(not outcome.problem for outcome in found)} of {len(found) - crashes}{note}"


def _cell(found: Sequence[Outcome]) -> str:
    """Return the number of correct kernels, in bold beside all if some are wrong."""
    correct = sum(not outcome.problem for outcome in found)
    run = sum(not outcome.is_of_emulator for outcome in found)
    return f"{correct}" if correct == run else f"**{correct} of {run}**"


def main() -> int:
    """Run all, and write the page; the exit code says whether a kernel was wrong."""
    parser = argparse.ArgumentParser(prog="make test-targets", description=__doc__)
    parser.add_argument(
        "cpus", nargs="*", default=TARGETS, help="CPUs, by default one of each kind"
    )
    parser.add_argument("--only", default="", help="operators whose text contains this")
    options = parser.parse_args()
    specs = [spec for spec in SPECS if options.only in spec]
    results = {cpu: run_target(cpu, specs) for cpu in options.cpus}
    for cpu, found in results.items():
        if isinstance(found, str):
            sys.stdout.write(f"{cpu}: not run: {found}\n")
    if not options.only and tuple(options.cpus) == TARGETS:
        head = PAGE.read_text(encoding="utf-8").partition(_MARK)[0]
        PAGE.write_text(f"{head}{_MARK}\n{page(results)}", encoding="utf-8")
    return any(
        o.is_wrong for found in results.values() if not isinstance(found, str) for o in found
    )


if __name__ == "__main__":
    sys.exit(main())
