"""`loopwright best`: the fastest schedule that a server has stored."""

from __future__ import annotations

from typing import Annotated

import typer

from loopwright.cli.shared.options import (
    JsonOption,
    TargetOption,
    TokenOption,
    UrlOption,
    WorkloadArgument,
    read_workload,
)
from loopwright.cli.shared.output import (
    against,
    between,
    console,
    facts,
    labelled,
    print_json,
    secs,
    times_faster,
)
from loopwright.cli.shared.where import server
from service.wire.models import BestRead


def best(
    workload: WorkloadArgument,
    *,
    target: TargetOption = "cpu",
    url: UrlOption = None,
    token: TokenOption = None,
    nearest: Annotated[
        bool,
        typer.Option("--nearest", help="Fall back to the schedule of the nearest shape."),
    ] = False,
    enqueue: Annotated[
        bool, typer.Option("--enqueue", help="Queue a job if no schedule is stored.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show the best schedule of a workload, as a Python program."""
    text = read_workload(workload)
    with server(url, token) as client:
        answer = client.best(text, target=target, nearest=nearest, enqueue=enqueue)
    if as_json:
        print_json(answer.record)
        return
    record = answer.record
    console.print(
        facts(
            {
                "target": record.target,
                **_quality(record),
                "found by": f"trial {record.trial_number} of job {record.job_id}",
                **{name: str(value) for name, value in record.provenance.items()},
            }
        )
    )
    console.print()
    console.print(answer.trace.python(), markup=False, highlight=False, soft_wrap=True)


def _quality(record: BestRead) -> dict[str, str]:
    """Describe the time of a schedule, measured or expected."""
    near = record.nearest
    if near is None:
        best = labelled(record.run_secs, record.kind) + between(record.interval)
        faster = times_faster(record.speedup, record.speedup_kind)
        best = f"{best} ({faster} over the default)"
        if record.is_outdated:
            best += "; measured with an older code generator: tune again to update the time"
        return {
            "best": best,
            "default": labelled(record.default_secs, record.default_kind),
            **against(record.baseline),
        }
    loss = "unknown" if near.expected_loss is None else f"{near.expected_loss:.0%} of the speed"
    return {
        "best": "adapted from another shape; not measured on this one",
        "tuned for": f"workload {near.workload_key[:12]} on {near.target},"
        f" {near.distance:.3g} doublings away ({secs(near.run_secs)} there)",
        "expected loss": f"{loss} ({near.basis})",
    }
