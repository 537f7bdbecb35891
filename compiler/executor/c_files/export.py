"""Write a kernel for programs in C: an object, a header, a shared library.

Each object and library also holds the artifact itself, as a zip behind its end, where linkers do
not look: so `Artifact.load` reads it too.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..error import ArtifactError
from ..machine import linux_name
from ..params import ENTRY
from .c_compiler import compiler_names, find_c_compiler
from .c_header import c_header, entry_symbol, pack_name
from .elf_symbols import rename_symbols

if TYPE_CHECKING:
    from ..artifact import Artifact

_LINK_SECS = 60.0
"""Time limit of the linker, which takes a fraction of a second. Chosen for a busy host."""


def save_for_c(artifact: Artifact, name: str) -> None:
    """Write an object, with those that it is linked with, a header or a shared library.

    Args:
        artifact: A kernel for a CPU.
        name: The file, which ends with .o, .h or .so. Beside an object `x.o` are `x_pool.o` if
            the kernel uses threads, and `x_pack.o` if it has constants.

    Raises:
        ArtifactError: If the kernel is not for a CPU, or takes sizes, or there is no linker for a
            library.
        OSError: If a file can't be written.
    """
    path = Path(name)
    if artifact.backend != "cpu":
        raise ArtifactError(
            f"{artifact.name} was built for {artifact.target}: only kernels for CPUs are written"
            f" as {path.suffix}; the suffix .lwk writes the artifact"
        )
    if artifact.is_symbolic:
        raise ArtifactError(
            f"{artifact.name} takes sizes from its arrays: only kernels of fixed shapes are written"
            f" as {path.suffix}; make one by specialize, or write the artifact as .lwk"
        )
    if artifact.functions:
        raise ArtifactError(
            f"{artifact.name} calls registered functions ({', '.join(artifact.functions)}), which"
            f" run in Python: it can't be written as {path.suffix}; write the artifact as .lwk"
        )
    objects = _objects(artifact, path.stem)
    if path.suffix == ".h":
        path.write_text(c_header(artifact, list(objects)), encoding="utf-8")
    elif path.suffix == ".o":
        for object_name, content in objects.items():
            path.with_name(object_name).write_bytes(content)
    else:
        _link(artifact, objects, path)


def _objects(artifact: Artifact, stem: str) -> dict[str, bytes]:
    """Return the objects of a kernel by the names of their files, its own first."""
    symbol = entry_symbol(artifact.name)
    objects = {f"{stem}.o": rename_symbols(artifact.code, {ENTRY: symbol}) + artifact.to_bytes()}
    if artifact.pool:
        objects[f"{stem}_pool.o"] = artifact.pool
    if artifact.packer is not None:
        renamed = {ENTRY: entry_symbol(pack_name(artifact.name))}
        objects[f"{stem}_pack.o"] = rename_symbols(artifact.packer.code, renamed)
    return objects


def _link(artifact: Artifact, objects: Mapping[str, bytes], path: Path) -> None:
    arch = linux_name(artifact.triple.split("-")[0])
    linker = find_c_compiler(arch)
    if linker is None:
        raise ArtifactError(
            f"no linker for {arch} is installed, which writing a .so requires: install"
            f" {compiler_names(arch)[-1]}, or write an object (.o) and link that on another machine"
        )
    with tempfile.TemporaryDirectory() as folder:
        for name, content in objects.items():
            Path(folder, name).write_bytes(content)
        # A name that begins with a minus is no option.
        paths = [f"./{name}" for name in objects]
        command = [linker, "-shared", "-o", "library.so", *paths, "-lm", "-lpthread"]
        environment = {**os.environ, "LC_ALL": "C"}
        try:
            subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, check=True,
                timeout=_LINK_SECS,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError) as error:
            words = getattr(error, "stderr", None) or str(error).encode()
            reason = words.decode(errors="replace").strip()[-500:]
            raise ArtifactError(f"{linker} cannot link {path.name}: {reason}") from error
        path.write_bytes(Path(folder, "library.so").read_bytes() + artifact.to_bytes())
