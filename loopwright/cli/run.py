"""`loopwright run`: a compiled model on arrays of files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from compiler.executor.executor import Executor
from loopwright.cli.shared.failure import InputError
from loopwright.cli.shared.model_options import (
    Array,
    InputOption,
    PackageArgument,
    named_files,
    read_arrays,
    read_model_package,
)
from loopwright.cli.shared.options import JsonOption
from loopwright.cli.shared.output import console, facts, print_json

SHOWN = 8
"""Elements of a result that are shown. Chosen for a terminal."""


def run(
    package: PackageArgument,
    *,
    inputs: InputOption = None,
    output: Annotated[
        list[str] | None,
        typer.Option(
            "--output",
            metavar="NAME=FILE",
            help="Write a result to a .npy file; may be repeated. Results are shown otherwise.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run a compiled model on .npy files, and show or write its results.

    A package holds machine code: run only packages from sources that you trust.
    """
    files = named_files("--output", output)
    executor = Executor(read_model_package(package))
    _check_outputs(executor, files)
    results = executor.run(read_arrays("--input", inputs))
    for name, file in files.items():
        try:
            with file.open("wb") as opened:
                np.save(opened, results[name])
        except OSError as error:
            raise InputError(f"{file} cannot be written: {error.strerror}") from error
    if as_json:
        print_json({name: _described(array) for name, array in results.items()})
    else:
        console.print(facts({name: _in_words(array) for name, array in results.items()}))


def _check_outputs(executor: Executor, files: Mapping[str, Path]) -> None:
    names = [array.name for array in executor.outputs]
    for name, file in files.items():
        if name not in names:
            raise InputError(f"--output {name}={file}: the results are {', '.join(names)}")
        if not file.absolute().parent.is_dir():
            raise InputError(f"{file} cannot be written: the folder does not exist")


def _described(array: Array) -> dict[str, Any]:
    flat = array.reshape(-1)
    return {
        "shape": list(array.shape),
        "dtype": str(array.dtype),
        "first_elements": flat[:SHOWN].tolist(),
    }


def _in_words(array: Array) -> str:
    first = ", ".join(f"{element:.6g}" for element in array.reshape(-1)[:SHOWN].tolist())
    more = ", ..." if array.size > SHOWN else ""
    return f"{array.dtype}{list(array.shape)}: {first}{more}"
