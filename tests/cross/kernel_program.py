"""Kernels in one program in C, built for any CPU from their object files and headers.

The program reads the arrays of a kernel from its standard input, calls the kernel, and writes the
arrays to its output. Bytes beyond the end of each array must stay as they were.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from compiler.executor.artifact import Artifact
from tests.cross.tools import CrossTools, run, strict

Arrays: TypeAlias = Mapping[str, NDArray[Any]]

_HEAD = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { MARGIN = 4096 };
static void *reserve(size_t size)
{
    size_t room = (size + 4095) / 4096 * 4096 + MARGIN;
    void *memory = aligned_alloc(4096, room);
    if (memory == NULL) exit(4);
    return memset(memory, 0x7f, room);
}
static void *take(size_t size)
{
    void *memory = reserve(size);
    if (fread(memory, 1, size, stdin) != size) exit(2);
    return memory;
}
static void give(const unsigned char *memory, size_t size)
{
    for (size_t k = 0; k < MARGIN; k++)
        if (memory[size + k] != 0x7f) exit(3);
    if (fwrite(memory, 1, size, stdout) != size) exit(5);
}
"""


class KernelProgram:
    """Runs kernels for a CPU.

    Args:
        artifacts: The kernels, without constants.
        tools: Builds and runs programs for the CPU.
        folder: An empty folder.
    """

    def __init__(self, artifacts: Sequence[Artifact], tools: CrossTools, folder: Path) -> None:
        self._tools, self._folder = tools, folder
        objects = []
        for number, artifact in enumerate(artifacts):
            named = replace(artifact, name=f"k{number}")
            for suffix in (".o", ".h"):
                named.save(folder / f"k{number}{suffix}")
            objects.append(f"k{number}.o")
        (folder / "main.c").write_text("\n".join(_main(artifacts)))
        (folder / "objects").write_text("\n".join(objects))
        options = ("-static", "main.c", "@objects", "-lm", "-o", "program")
        run(tools.compiler, *strict(options), folder=folder)

    def call(self, number: int, arrays: Arrays) -> dict[str, NDArray[Any]]:
        """Return the arrays of a kernel after a call."""
        given = b"".join(array.tobytes() for array in arrays.values())
        command = (*self._tools.runner, "./program", str(number))
        output = run(*command, folder=self._folder, given=given)
        results, start = {}, 0
        for name, array in arrays.items():
            results[name] = np.frombuffer(output, array.dtype, array.size, start).reshape(
                array.shape
            )
            start += array.nbytes
        return results


def _main(artifacts: Sequence[Artifact]) -> Iterator[str]:
    for number in range(len(artifacts)):
        yield f'#include "k{number}.h"'
    yield _HEAD
    for number, artifact in enumerate(artifacts):
        sizes = [param.size_bytes for param in artifact.params]
        yield f"static void call{number}(void)"
        yield "{"
        yield f"    void *a[] = {{{', '.join(f'take({size})' for size in sizes)}}};"
        arguments = ", ".join(f"a[{position}]" for position in range(len(sizes)))
        memory = f"reserve(K{number}_WORKSPACE_BYTES)"
        yield f"    k{number}_run({arguments}, {memory}, 1, NULL);"
        for position, size in enumerate(sizes):
            yield f"    give(a[{position}], {size});"
        yield "}"
    yield "int main(int argc, char **argv)"
    yield "{"
    yield "    if (argc != 2) return 1;"
    yield "    switch (atoi(argv[1])) {"
    for number in range(len(artifacts)):
        yield f"    case {number}: call{number}(); return 0;"
    yield "    default: return 1;"
    yield "    }"
    yield "}"
    yield ""
