"""`loopwright profile`: the time of a model by subgraphs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from compiler.executor.executor import Executor
from loopwright.cli.shared.failure import InputError
from loopwright.cli.shared.model_options import (
    Array,
    FixOption,
    InputOption,
    ModelArgument,
    SeedOption,
    ShapeOption,
    TrialsOption,
    is_package,
    read_arrays,
    read_model_package,
    read_shapes,
    read_trials,
    require_file,
)
from loopwright.cli.shared.options import JsonOption, TargetOption
from loopwright.cli.shared.output import console, facts, print_json
from loopwright.client.progress import format_secs
from loopwright.models import compiling
from loopwright.models.profile import run_secs


def profile(
    model: ModelArgument,
    *,
    shape: ShapeOption = None,
    fix: FixOption = None,
    inputs: InputOption = None,
    target: TargetOption = "cpu",
    trials: TrialsOption = "0",
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Compile a model, and show the time of each of its kernels, the slowest first.

    Of a package, the time of a whole run is shown: it is one function.

    GFLOP/s and the share of the peak count the floating-point operations of the programs. With the
    --trials and the --seed of an earlier `loopwright compile`, its records are used.
    """
    if is_package(str(model)):
        if shape or fix or trials != "0":
            raise InputError(f"{model} is compiled: --shape, --fix and --trials are for models")
        _profile_package(model, read_arrays("--input", inputs), as_json=as_json)
        return
    require_file(model)
    executable = compiling.compile(
        model,
        target=target,
        trials=read_trials(trials),
        shapes=read_shapes(shape),
        fixed_inputs=read_arrays("--fix", fix),
        seed=seed,
    )
    times = executable.profile(**read_arrays("--input", inputs))
    if as_json:
        print_json(times.to_json())
    else:
        times.show()


def _profile_package(path: Path, inputs: Mapping[str, Array], *, as_json: bool) -> None:
    executor = Executor(read_model_package(path))
    secs = run_secs(executor, inputs)
    if as_json:
        print_json({"total_secs": secs})
        return
    steps = executor.package.manifest["steps"]
    rows = {
        "time": f"{format_secs(secs)} a run, the shortest",
        "kernels": f"{len(steps)} calls; profile the .onnx file for the time of each",
        "threads": str(executor.num_threads),
    }
    console.print(facts(rows))
