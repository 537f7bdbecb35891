"""`loopwright inspect`: the result of compiling a program or a model, without running it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from compiler import driver
from compiler.executor.package import OBJECT, WEIGHTS, Package
from compiler.executor.params import Param
from loopwright.cli.shared.failure import InputError
from loopwright.cli.shared.model_options import (
    FixOption,
    ShapeOption,
    is_model,
    is_package,
    read_arrays,
    read_model_package,
    read_shapes,
    require_file,
)
from loopwright.cli.shared.options import JsonOption, TargetOption, read_workload
from loopwright.cli.shared.output import console, facts, print_json, size
from loopwright.extras import load_extra
from loopwright.workload import to_func


def inspect(
    workload: Annotated[
        str,
        typer.Argument(
            help="A script file, an operator such as matmul:512,512,512:float32, a .onnx model or a"
            " .lwm package.",
            metavar="WORKLOAD",
            show_default=False,
        ),
    ],
    *,
    target: TargetOption = "cpu",
    shape: ShapeOption = None,
    fix: FixOption = None,
    source: Annotated[bool, typer.Option("--source", help="Print the generated source.")] = False,
    assembly: Annotated[bool, typer.Option("--assembly", help="Print the assembly.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Compile a program or a model, and show the result; no device is needed.

    Of a model, it shows which operators were fused, the kernels with their schedules, and the
    memory; of a package, what it takes and returns, and what it needs.

    A kernel for a GPU runs in the emulator, which reports races, bank conflicts and other faults
    with their line and thread, and is compared with the oracle. Of a large grid some blocks run.

    The program is compiled as it is written, or by the default schedule of the target.
    """
    if is_model(workload) or is_package(workload):
        if source or assembly:
            raise InputError("--source and --assembly require a program: a model has many kernels")
        _inspect_model(workload, target, shape, fix, as_json=as_json)
        return
    if shape or fix:
        raise InputError("--shape and --fix require a .onnx model")
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


def _inspect_model(
    file: str, target: str, shape: list[str] | None, fix: list[str] | None, *, as_json: bool
) -> None:
    if is_package(file):
        package = read_model_package(Path(file))
        if as_json:
            print_json(dict(package.manifest))
        else:
            console.print(facts(_package_facts(package)))
        return
    require_file(Path(file))
    # A client has no cost model, and need not: it inspects programs and packages.
    compiling = load_extra("loopwright.models.compiling", "loopwright inspect of a model")
    executable = compiling.compile(
        Path(file),
        target=target,
        shapes=read_shapes(shape),
        fixed_inputs=read_arrays("--fix", fix),
    )
    if as_json:
        print_json(executable.inspect().to_json())
    else:
        executable.inspect().show()


def _package_facts(package: Package) -> dict[str, str]:
    kernels, steps = package.manifest["kernels"], package.manifest["steps"]
    return {
        "model": package.name,
        "target": package.manifest["target"],
        "inputs": _arrays(package.inputs),
        "outputs": _arrays(package.outputs),
        "kernels": f"{len(kernels)}, {len(steps)} calls in a run",
        "memory": f"{size(package.arena_bytes)} between kernels,"
        f" {size(package.workspace_bytes)} inside kernels",
        "weights": size(package.files[WEIGHTS].nbytes),
        "code": size(package.files[OBJECT].nbytes),
        "threads": str(package.num_threads),
        "needs": f"{package.arch} {' '.join(package.cpu_flags)}",
        "toolchain": package.manifest["toolchain"],
    }


def _arrays(arrays: Sequence[Param]) -> str:
    return ", ".join(f"{array.name}: {array.dtype}{list(array.shape)}" for array in arrays)
