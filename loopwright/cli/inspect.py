"""`loopwright inspect`: the code and the resources of a kernel, without its device."""

from __future__ import annotations

from typing import Annotated

import typer

from compiler import driver
from loopwright.cli.shared.options import JsonOption, TargetOption, WorkloadArgument, read_workload
from loopwright.cli.shared.output import console, facts, print_json
from loopwright.workload import to_func


def inspect(
    workload: WorkloadArgument,
    *,
    target: TargetOption = "cpu",
    source: Annotated[bool, typer.Option("--source", help="Print the generated source.")] = False,
    assembly: Annotated[bool, typer.Option("--assembly", help="Print the assembly.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Compile a program, and show its code and its resources; no device is needed.

    A kernel for a GPU runs in the emulator, which reports races, bank conflicts and other faults
    with their line and thread, and is compared with the oracle. Of a large grid some blocks run.

    The program is compiled as it is written, or by the default schedule of the target.
    """
    inspection = driver.inspect(to_func(read_workload(workload)), target)
    if as_json:
        print_json(inspection.to_json())
        return
    console.print(facts(inspection.facts))
    for report in () if inspection.emulation is None else inspection.emulation.reports:
        console.print(report, markup=False, highlight=False)
    for text, is_shown in ((inspection.source, source), (inspection.assembly, assembly)):
        if is_shown:
            console.rule(text.language)
            typer.echo(text.text)  # Rich would change its tabs
