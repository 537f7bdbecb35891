"""Modules: loaded kernels that are called with arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from compiler.backends.backend import BACKENDS
from compiler.executor.artifact import Artifact
from compiler.executor.error import ArtifactError
from compiler.executor.kernel import require_constants
from compiler.executor.params import describe_kernel
from compiler.runtime.time_calls import Clock, calls_per_sample
from compiler.runtime.timing import Timing
from compiler.target.registry import UnknownKindError
from compiler.target.target import Target


class Module:
    """A kernel in memory: call it with one array a parameter, in order; it writes outputs in place.

    It takes NumPy arrays, and any array that supports DLPack on its device. `num_threads` is the
    maximum number of host threads that a call uses. `Module(artifact)` makes a module of the class
    of the artifact's backend. Such a class defines `__call__`, `bind` and `close`, and lists in
    `languages` the formats of `get_source`.

    Args:
        artifact: The kernel.
        const_params: An array for each constant parameter of the artifact, by name. They are packed
            now, and calls omit them. Later changes of these arrays do not matter.
        source: The source code that the kernel was compiled from, if it is known.

    Raises:
        ArtifactError: If this host can't run the artifact.
        ArgumentError: If a constant is missing, is not a constant of this kernel, or does not have
            the shape and the type of its parameter.
    """

    languages: tuple[str, ...] = ()
    """The formats of its source: the backend's language, then that of its assembly, if any."""

    def __new__(
        cls,
        artifact: Artifact,
        const_params: Mapping[str, Any] | None = None,
        source: str | None = None,
    ) -> Any:
        """Make a module of the class of the artifact's backend."""
        del const_params, source  # used by `__init__`
        if cls is not Module:
            return object.__new__(cls)
        try:
            return object.__new__(BACKENDS.find(artifact.backend).module_class)
        except UnknownKindError as error:
            raise ArtifactError(f"{artifact.name} can't be loaded here: {error}") from error

    def __init__(
        self,
        artifact: Artifact,
        const_params: Mapping[str, Any] | None = None,
        source: str | None = None,
    ) -> None:
        self.artifact = artifact
        self.params = artifact.arguments
        self.num_threads = artifact.num_threads
        require_constants(artifact, const_params or {})
        self._source = source

    def __repr__(self) -> str:
        signature = describe_kernel(self.artifact.name, self.params)
        return f"<Module {signature} for {self.artifact.target}>"

    @classmethod
    def load(cls, path: str | Path, const_params: Mapping[str, Any] | None = None) -> Module:
        """Load an artifact from a file.

        Args:
            path: The file.
            const_params: An array for each constant parameter, by name.

        Raises:
            ArtifactError: If the file is not an artifact, or this host can't run it.
            ArgumentError: If the constants do not fit the kernel.
            OSError: If it can't be read.
        """
        return cls(Artifact.load(path), const_params)

    def save(self, path: str | Path) -> None:
        """Write the kernel to a file that `load` reads, also in another process.

        The file has the code, and not the values of constants: `load` takes them again.
        """
        self.artifact.save(path)

    def __call__(self, *arrays: Any, num_threads: int | None = None) -> None:
        """Run the kernel.

        Args:
            arrays: One a parameter.
            num_threads: The maximum number of threads, by default `self.num_threads`. It uses no
                more than the kernel was built for.

        Raises:
            ArgumentError: If an array has the wrong number, shape, dtype or layout, if an output
                is read-only, if an output overlaps another array, or if there are no threads.
        """
        raise NotImplementedError

    def bind(self, *arrays: Any, num_threads: int | None = None) -> Callable[[], None]:
        """Check the arrays once, and return a function that runs the kernel on them.

        Only one thread at a time may call it. It still works after the module is closed.

        Raises:
            ArgumentError: As a call does.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Unload the code as soon as no call is in progress; a second call does nothing."""
        raise NotImplementedError

    @property
    def clock(self) -> Clock:
        """Return the clock for bound functions of this module."""
        return BACKENDS.find(self.artifact.backend).time_calls

    def __getitem__(self, name: str) -> Module:
        """Return the kernel, the only function, by the name of its program, as TVM's modules do.

        Raises:
            KeyError: If it has another name.
        """
        if name != self.artifact.name:
            raise KeyError(f"unknown function {name!r}: expected the kernel {self.artifact.name!r}")
        return self

    def time_evaluator(
        self,
        func_name: str | None = None,
        dev: object = None,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: int = 0,
    ) -> Callable[..., Timing]:
        """Return a function that times the kernel on arrays, with TVM's signature.

        Args:
            func_name: The name of the kernel; optional.
            dev: Ignored; it exists for compatibility with TVM.
            number: The number of calls in a sample, which is their mean.
            repeat: The number of samples.
            min_repeat_ms: The minimum time of a sample, in milliseconds; it raises the number of
                calls.

        Raises:
            KeyError: If the kernel has another name.
            ValueError: If `number` or `repeat` is less than 1.
        """
        del dev
        if func_name is not None:
            self[func_name]
        if number < 1 or repeat < 1:
            raise ValueError(f"number is {number}, repeat is {repeat}: expected 1 or more")

        def evaluate(*arrays: Any) -> Timing:
            run = self.bind(*arrays)
            run()
            threads, clock = self.num_threads, self.clock
            least = calls_per_sample(run, threads, min_repeat_ms / 1e3, clock)
            calls = max(number, least if min_repeat_ms else 1)
            return Timing(tuple(clock(run, threads, calls) for _ in range(repeat)))

        return evaluate

    def get_source(self, fmt: str = "") -> str:
        """Return the source code or the assembly of the kernel.

        Args:
            fmt: One of `languages`: "ll" for LLVM IR, "asm" for its assembly, "cu" for CUDA C++,
                "ptx" for its PTX. By default the language of the backend.

        Raises:
            ValueError: If the format does not exist, or the kernel was loaded from a file, which
                holds machine code only.
        """
        if fmt not in ("", *self.languages):
            expected = " or ".join(f'"{language}"' for language in self.languages)
            raise ValueError(f"unknown source format {fmt!r}: expected {expected}")
        if self._source is None:
            raise ValueError(
                f"{self.artifact.name} was loaded as machine code, without its source: "
                "build the program to see it"
            )
        if fmt in self.languages[1:]:
            backend = BACKENDS.find(self.artifact.backend)
            return backend.assembly(self._source, Target(self.artifact.target))
        return self._source

    def export_library(self, path: str | Path) -> None:
        """Write the kernel to a file that `Module.load` reads; see `save`."""
        self.save(path)
