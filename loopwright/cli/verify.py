"""`loopwright verify`: whether locked kernels are still as fast as when they were tuned."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from loopwright.cli.shared.failure import ExitCode
from loopwright.cli.shared.options import JsonOption
from loopwright.cli.shared.output import between, console, print_json
from loopwright.client.progress import format_secs
from loopwright.locks.lock_file import LOCK_NAME
from loopwright.locks.verify_lock import BOUND, KernelCheck, LockVerdict, verify_lock
from service.coordinator.measurer import WorkerMeasurer
from workers.child.runner import ChildRunner

_FAILURES = (LockVerdict.SLOWER, LockVerdict.FAILED)
_COLORS = {LockVerdict.OK: "green", LockVerdict.SLOWER: "red", LockVerdict.FAILED: "red"}


def verify(
    *,
    against: Annotated[Path, typer.Option("--against", help="The lock file.")] = Path(LOCK_NAME),
    bound: Annotated[
        float, typer.Option(min=1.0, help="The largest accepted slowdown, as a ratio.")
    ] = BOUND,
    as_json: JsonOption = False,
) -> None:
    """Time the kernels of a lock file again, beside their recorded times.

    Kernels for other CPUs are listed, and not timed. The exit code is 1 if a kernel is slower than
    its record by more than the bound, with 95% confidence, crashes, or gives a wrong result; and 2
    if the lock file does not fit this host or this version.
    """
    checks = []
    with ChildRunner() as runner:
        for check in verify_lock(against, WorkerMeasurer(runner, libraries=()), bound):
            checks.append(check)
            if not as_json:
                _show(check)
    has_failed = any(check.verdict in _FAILURES for check in checks)
    if as_json:
        kernels = [check.model_dump(mode="json") for check in checks]
        print_json({"bound": bound, "passed": not has_failed, "kernels": kernels})
    if has_failed:
        raise typer.Exit(ExitCode.NO_RESULT)


def _show(check: KernelCheck) -> None:
    color = _COLORS.get(check.verdict, "yellow")
    name = f"{check.name} ({check.workload_key[:12]})"
    verdict = f"{check.verdict.replace('_', ' '):12}"
    console.print(
        f"[{color}]{verdict}[/] {escape(name)}  {escape(_figures(check))}",
        highlight=False,
        soft_wrap=True,
    )


def _figures(check: KernelCheck) -> str:
    if check.record is None or check.run_secs is None:
        return check.reason or ""
    figures = (
        f"{format_secs(check.run_secs)}{between(check.interval)}, recorded"
        f" {format_secs(check.record.run_secs)} by {check.record.worker}:"
        f" {_ratio(check.slowdown, check.slowdown_interval)} of the recorded time"
    )
    if check.relative_slowdown is None:
        return figures
    return (
        f"{figures}; {_ratio(check.relative_slowdown, check.relative_interval)} relative to the"
        f" default schedule, which takes {_ratio(check.machine_slowdown)} of its recorded time"
    )


def _ratio(ratio: float | None, interval: tuple[float, float] | None = None) -> str:
    shown = "" if interval is None else f" [{interval[0]:.3g} to {interval[1]:.3g}]"
    return "-" if ratio is None else f"{ratio:.3g}{shown}"
