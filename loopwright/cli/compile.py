"""`loopwright compile`: from an ONNX model to a package that runs without a compiler."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from compiler.user_cache import default_directory
from loopwright.cli.shared.failure import ExitCode, InputError
from loopwright.cli.shared.model_options import (
    FixOption,
    ModelArgument,
    SeedOption,
    ShapeOption,
    TrialsOption,
    read_arrays,
    read_shapes,
    read_trials,
    require_file,
)
from loopwright.cli.shared.options import JsonOption, TargetOption, TokenOption, UrlOption
from loopwright.cli.shared.output import console, err_console, facts, print_json, size
from loopwright.cli.shared.where import find_server, say_measured_here
from loopwright.client.progress import format_ratio, format_secs
from loopwright.locks.lock import lock as write_lock
from loopwright.models import compiling
from loopwright.models.executable import Executable
from loopwright.models.records import FILE_NAME


def compile(
    model: ModelArgument,
    *,
    shape: ShapeOption = None,
    fix: FixOption = None,
    target: TargetOption = "cpu",
    trials: TrialsOption = "0",
    seed: SeedOption = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Package to write; by default the name of the model with .lwm."
        ),
    ] = None,
    lock: Annotated[
        Path | None, typer.Option("--lock", help="Take all schedules from this lock file.")
    ] = None,
    save_lock: Annotated[
        Path | None, typer.Option("--save-lock", help="Add the schedules to this lock file.")
    ] = None,
    url: UrlOption = None,
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compile an ONNX model to a package; with --trials, measure schedules first.

    Without trials, schedules are proposed, which takes seconds.

    With trials, they are measured on a server if --url names one or one responds at the default
    address, or else in this process, which stores each measurement at once: the same command
    continues a search that was interrupted. At the end, whole models are compared, and the faster
    one is written.

    With --lock, all schedules come from a lock file, and nothing is proposed or measured.
    """
    package = Path(f"{model.stem}.lwm") if output is None else output
    _check_output(package)
    require_file(model)
    num_trials = read_trials(trials)
    server_url = _server(num_trials, lock, url, token)
    if num_trials != 0 and server_url is None:
        say_measured_here(default_directory() / FILE_NAME)
    try:
        executable = compiling.compile(
            model,
            target=target,
            trials=num_trials,
            shapes=read_shapes(shape),
            fixed_inputs=read_arrays("--fix", fix),
            url=server_url,
            token=token,
            seed=seed,
            lock=lock,
        )
    except KeyboardInterrupt:
        if num_trials == 0:
            raise
        err_console.print("interrupted: the same command continues from the trials so far")
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    if save_lock is not None:
        _save_lock(save_lock, executable)
    try:
        executable.save(package)
    except OSError as error:
        raise InputError(f"{package} cannot be written: {error.strerror}") from error
    _show(executable, package, as_json=as_json)


def _server(
    num_trials: int | None, lock: Path | None, url: str | None, token: str | None
) -> str | None:
    """Return the address of the server to use; None without one. A lock file needs none."""
    if lock is not None and num_trials != 0:
        raise InputError("--lock and --trials exclude each other: a lock file has all schedules")
    needs_server = lock is None and (num_trials != 0 or url is not None)
    return find_server(url, token) if needs_server else None


def _save_lock(path: Path, executable: Executable) -> None:
    try:
        write_lock(path, executable)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error


def _check_output(package: Path) -> None:
    if not package.absolute().parent.is_dir():
        raise InputError(f"{package} cannot be written: the folder does not exist")
    if package.is_dir():
        raise InputError(f"{package} cannot be written: it is a folder")


def _show(executable: Executable, package: Path, *, as_json: bool) -> None:
    comparison = executable.comparison
    inspection = executable.inspect()
    if as_json:
        times = None
        if comparison is not None:
            times = {
                "first_secs": comparison.first_secs,
                "tuned_secs": comparison.tuned_secs,
                "speedup": comparison.speedup,
                "interval": list(comparison.interval),
            }
        print_json(
            {"package": str(package), "comparison": times, "inspection": inspection.to_json()}
        )
        return
    rows = {
        "model": executable.plan.name,
        "target": executable.plan.target.name,
        "kernels": f"{len(inspection.kernels)}, {inspection.num_calls} calls in a run",
        "memory": f"{size(inspection.arena_bytes)} between kernels,"
        f" {size(inspection.weights_bytes)} of weights",
    }
    if comparison is not None:
        low, high = comparison.interval
        rows["time"] = (
            f"{format_secs(comparison.tuned_secs)} tuned, {format_secs(comparison.first_secs)} with"
            f" the first proposals: {format_ratio(comparison.speedup)}"
            f" ({format_ratio(low)} to {format_ratio(high)})"
        )
    rows["package"] = f"{package}, {size(package.stat().st_size)}"
    console.print(facts(rows))
