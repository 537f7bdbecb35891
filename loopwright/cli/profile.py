"""`loopwright profile`: the time of a model by subgraphs."""

from __future__ import annotations

from loopwright.cli.shared.failure import InputError
from loopwright.cli.shared.model_options import (
    FixOption,
    InputOption,
    ModelArgument,
    SeedOption,
    ShapeOption,
    TrialsOption,
    is_package,
    read_arrays,
    read_shapes,
    read_trials,
    require_file,
)
from loopwright.cli.shared.options import JsonOption, TargetOption
from loopwright.cli.shared.output import print_json
from loopwright.models import compiling


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

    GFLOP/s and the share of the peak count the floating-point operations of the programs. With the
    --trials and the --seed of an earlier `loopwright compile`, its records are used.
    """
    if is_package(str(model)):
        raise InputError(
            f"{model} is one function, whose kernels can't be timed alone: profile the .onnx file"
        )
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
