"""`loopwright best`: the fastest schedule that a server knows."""

from __future__ import annotations

from loopwright.cli.options import (
    JsonOption,
    TargetOption,
    TokenOption,
    UrlOption,
    WorkloadArgument,
    read_workload,
)
from loopwright.cli.output import console, facts, print_json, secs, speed_up
from loopwright.client import DEFAULT_URL, Client


def best(
    workload: WorkloadArgument,
    target: TargetOption = "cpu",
    url: UrlOption = DEFAULT_URL,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the best schedule known of a workload, as a program that makes it."""
    text = read_workload(workload)
    with Client(url, token) as client:
        found = client.best(text, target=target)
    if as_json:
        print_json(found.record)
        return
    record = found.record
    console.print(
        facts(
            {
                "target": record.target,
                "best": f"{secs(record.run_secs)}"
                f" ({speed_up(record.default_secs, record.run_secs)} the default)",
                "found by": f"trial {record.trial_number} of job {record.job_id}",
                **{name: str(value) for name, value in record.provenance.items()},
            }
        )
    )
    console.print()
    console.print(found.trace.python(), markup=False, highlight=False, soft_wrap=True)
