"""The kernels of a module of several functions, each under the name of its function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from compiler.backends.module import Module
from compiler.executor.kernel_file import kernels_to_bytes
from compiler.runtime.timing import Timing

MAIN = "main"


class KernelSet:
    """Several kernels in memory: `kernels["name"]` is one of them, a `Module`.

    Called itself, it runs the kernel `main`.
    """

    def __init__(self, kernels: Mapping[str, Module]) -> None:
        self._kernels = dict(kernels)

    def __repr__(self) -> str:
        return f"<KernelSet of {', '.join(self._kernels)}>"

    def __getitem__(self, name: str) -> Module:
        """Return the kernel of a name.

        Raises:
            KeyError: If there is none.
        """
        if name not in self._kernels:
            names = ", ".join(self._kernels)
            raise KeyError(f"no function {name!r} in the module: expected one of {names}")
        return self._kernels[name]

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the kernels, in the order of the module."""
        return iter(self._kernels)

    def __len__(self) -> int:
        """Return the number of kernels."""
        return len(self._kernels)

    def __call__(self, *arrays: Any, num_threads: int | None = None) -> None:
        """Run the kernel `main`; see `Module`.

        Raises:
            KeyError: If no kernel has that name.
            ArgumentError: If the arrays do not fit it.
        """
        self[MAIN](*arrays, num_threads=num_threads)

    def time_evaluator(
        self, func_name: str = MAIN, *args: Any, **options: Any
    ) -> Callable[..., Timing]:
        """Return a function that times one of the kernels; see `Module.time_evaluator`.

        Raises:
            KeyError: If no kernel has that name.
            ValueError: If there is nothing to count.
        """
        return self[func_name].time_evaluator(func_name, *args, **options)

    def save(self, path: str | Path) -> None:
        """Write all kernels to one file, which `lw.load_kernels` loads."""
        artifacts = [kernel.artifact for kernel in self._kernels.values()]
        Path(path).write_bytes(kernels_to_bytes(artifacts))

    export_library = save

    def close(self) -> None:
        """Unload the code of all kernels, as soon as no call is under way."""
        for kernel in self._kernels.values():
            kernel.close()
