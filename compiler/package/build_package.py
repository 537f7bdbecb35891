"""From a plan to a package: in memory, as a file, as a folder."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from compiler.backends.backend import backend_of
from compiler.backends.cpu.codegen.machine_code import compile_object
from compiler.backends.cpu.codegen.threads.thread_pool import thread_pool
from compiler.executor.cpu_flags import cpu_flags
from compiler.executor.memory import aligned_zeros
from compiler.executor.package import (
    ALIGNMENT,
    FORMAT_VERSION,
    HEADER,
    MANIFEST,
    OBJECT,
    POOL,
    WEIGHTS,
    Package,
    digest_of,
)
from compiler.executor.params import Param
from compiler.package.header import header
from compiler.package.link import compile_plan
from compiler.package.plan import ModelPlan, PlannedKernel

# The identifier that Android's zipalign gives to a field that only aligns what follows it.
_PADDING_FIELD = 0xD935
_FIELD = struct.Struct("<HH")
# A chosen bound below that of zip's 32-bit sizes: headers of larger files have 64-bit sizes.
_LARGE_BYTES = 1 << 30
_DATE = (1980, 1, 1, 0, 0, 0)  # a fixed date, so that equal plans give equal files
_PERMISSIONS = 0o100644 << 16


def build_package(plan: ModelPlan) -> Package:
    """Compile a plan to a package in memory.

    Raises:
        PlanError: If the plan is not legal.
    """
    files = {
        OBJECT: memoryview(compile_plan(plan)),
        HEADER: memoryview(header(plan).encode()),
        WEIGHTS: _weights(plan).data,
    }
    if plan.num_threads > 1:
        pool = thread_pool(plan.target.arch, plan.target.num_cores)
        files[POOL] = memoryview(compile_object(pool, plan.target))
    manifest = _manifest(plan, files)
    return Package.from_files(json.dumps(manifest).encode(), files)


def save_package(package: Package, path: str | Path) -> None:
    """Write a package to a file; an existing one is replaced as a whole.

    Raises:
        OSError: If it can't be written.
    """
    path = Path(path)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as opened:
            _write_zip(opened, _all_files(package))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def save_folder(package: Package, path: str | Path) -> None:
    """Write a package to a new folder, for example to link the model to a program in C.

    Raises:
        OSError: If it exists, or can't be written.
    """
    folder = Path(path)
    folder.mkdir()
    try:
        for name, content in _all_files(package).items():
            (folder / name).write_bytes(content)
    except OSError:
        shutil.rmtree(folder)
        raise


def _all_files(package: Package) -> dict[str, memoryview]:
    """Return all files, the largest last."""
    manifest = json.dumps(package.manifest, indent=1, sort_keys=True).encode()
    last = package.files[WEIGHTS]
    others = {name: content for name, content in package.files.items() if name != WEIGHTS}
    return {MANIFEST: memoryview(manifest), **others, WEIGHTS: last}


def _write_zip(opened: BinaryIO, files: Mapping[str, memoryview]) -> None:
    """Write a zip without compression, each file at a multiple of `ALIGNMENT`."""
    with zipfile.ZipFile(opened, "w", zipfile.ZIP_STORED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, _DATE)
            entry.external_attr = _PERMISSIONS
            entry.file_size, entry.CRC = content.nbytes, 0
            is_large = content.nbytes > _LARGE_BYTES
            start = opened.tell() + len(entry.FileHeader(is_large)) + _FIELD.size
            padding = -start % ALIGNMENT
            entry.extra = _FIELD.pack(_PADDING_FIELD, padding) + bytes(padding)
            with archive.open(entry, "w", force_zip64=is_large) as file:
                file.write(content)


def _weights(plan: ModelPlan) -> NDArray[np.uint8]:
    """Return the weights of a plan, zeros between them."""
    content = aligned_zeros((plan.weights_bytes,), "uint8")
    content.fill(0)
    for placed in plan.weights:
        flat = placed.array.reshape(-1).view(np.uint8)
        content[placed.offset : placed.offset + placed.array.nbytes] = flat
    return content


def _manifest(plan: ModelPlan, files: Mapping[str, memoryview]) -> dict[str, Any]:
    manifest = {
        "format": FORMAT_VERSION,
        "name": plan.name,
        "target": plan.target.name,
        "arch": plan.target.arch,
        "cpu_flags": list(cpu_flags(plan.target.features, plan.target.arch)),
        "toolchain": backend_of(plan.target).toolchain(),
        "inputs": list(map(_described, plan.inputs)),
        "outputs": list(map(_described, plan.outputs)),
        "arena_bytes": plan.arena_bytes,
        "weights_bytes": plan.weights_bytes,
        "workspace_bytes": plan.workspace_bytes,
        "num_threads": plan.num_threads,
        "kernels": [_reported(kernel) for _, kernel in sorted(plan.kernels.items())],
        "steps": [{"kernel": step.kernel, "label": step.label} for step in plan.steps],
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    }
    return {**manifest, "digest": digest_of(manifest)}


def _described(param: Param) -> dict[str, Any]:
    return {"name": param.name, "shape": list(param.shape), "dtype": param.dtype}


def _reported(kernel: PlannedKernel) -> dict[str, Any]:
    fields = ("name", "task", "sketch", "run_secs", "max_error", "workspace_bytes", "num_threads")
    return {field: getattr(kernel, field) for field in fields}
