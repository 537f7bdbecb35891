"""`loopwright check`: whether scripts parse, round-trip, build and compute correct results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from loopwright.cli.shared.failure import ExitCode, InputError
from loopwright.cli.shared.options import JsonOption
from loopwright.cli.shared.output import console, err_console, print_json, secs
from loopwright.local.checking import ScriptCheck, check_script, find_scripts


def check(
    paths: Annotated[
        list[Path],
        typer.Argument(help="Script files or folders.", metavar="DIR|FILE", show_default=False),
    ],
    as_json: JsonOption = False,
) -> None:
    """Check scripts: parse, print in each spelling and parse again, build, run, compare.

    Each kernel runs on random inputs, and its output is compared with the oracle. Folders are
    searched for .py, .script and .tvmscript files. The exit code is 1 if a script fails.
    """
    try:
        scripts = find_scripts(paths)
    except FileNotFoundError as error:
        raise InputError(str(error)) from error
    if not scripts:
        raise InputError("no scripts found: expected .py, .script or .tvmscript files")
    checks: list[ScriptCheck] = []
    for number, path in enumerate(scripts, start=1):
        checks.append(_checked(path, f"{number}/{len(scripts)}"))
        if not as_json:
            _show(checks[-1])
    num_failed = sum(c.failed is not None for c in checks)
    if as_json:
        summary = {"passed": len(checks) - num_failed, "failed": num_failed}
        files = [c.model_dump(mode="json") for c in checks]
        print_json({"files": files, "summary": summary})
    else:
        _summarise(checks, num_failed)
    if num_failed:
        raise typer.Exit(ExitCode.NO_RESULT)


def _checked(path: Path, progress: str) -> ScriptCheck:
    """Check a script; on a terminal show the current step."""
    if not err_console.is_terminal:
        return check_script(path)
    with err_console.status("") as status:
        return check_script(
            path, lambda doing: status.update(f"[dim]{progress}[/] {escape(path.name)}: {doing}")
        )


def _show(script_check: ScriptCheck) -> None:
    if script_check.failed is not None:
        console.print(
            f"[red]failed[/] {escape(script_check.path)}  {script_check.failed}", soft_wrap=True
        )
        for line in (script_check.reason or "").splitlines():
            console.print(f"       {line}", markup=False, highlight=False, soft_wrap=True)
        return
    console.print(
        f"[green]ok[/]     {escape(script_check.path)}  {secs(script_check.secs)}  "
        f"{escape(_evidence(script_check))}",
        highlight=False,
        soft_wrap=True,
    )


def _evidence(script_check: ScriptCheck) -> str:
    """Describe how each function was compared."""
    comparisons = []
    for func in script_check.functions:
        if func.compared_with is None:
            comparisons.append(f"{func.name}: not compared: {func.not_compared}")
        else:
            comparisons.append(
                f"{func.name}: as the {func.compared_with}, error {func.max_error:.1e}"
            )
    return "; ".join(comparisons)


def _summarise(checks: list[ScriptCheck], num_failed: int) -> None:
    total = secs(sum(c.secs for c in checks))
    num_unknown = sum(
        c.failed is None and any(func.not_compared for func in c.functions) for c in checks
    )
    unknown = f" ({num_unknown} not compared)" if num_unknown else ""
    console.print(
        f"{len(checks)} script(s) in {total}: "
        f"{len(checks) - num_failed} ok{unknown}, {num_failed} failed",
        highlight=False,
    )
