"""Modules: loaded kernels that are called with arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from compiler.backends.backend import BACKENDS
from compiler.runtime.artifact import Artifact, ArtifactError, describe_kernel
from compiler.runtime.time_calls import Clock, calls_per_sample
from compiler.runtime.timing import Timing
from compiler.target.registry import UnknownKindError
from compiler.target.target import Target


class Module:
    """A kernel in memory: call it with one array a parameter, in order; it writes outputs in place.

    It takes NumPy arrays, and whatever speaks DLPack on its device. `num_threads` says how many
    threads of the host a call uses at most. `Module(artifact)` makes a module of the class that the
    backend of the artifact has; such a class defines `__call__`, `bind` and `close`, and says in
    `languages` what `get_source` returns.

    Args:
        constants: Arrays for the last parameters, which callers do not pass then.
        source: The source code that the kernel was compiled from, if it is known.

    Raises:
        ArtifactError: If the artifact is for a machine that this host is not.
    """

    languages: tuple[str, ...] = ()
    """The formats of its source, first the language of the backend, then "asm" if there is it."""

    def __new__(
        cls, artifact: Artifact, constants: Sequence[Any] = (), source: str | None = None
    ) -> Any:
        """Make a module of the class of the artifact's backend."""
        del constants, source  # `__init__` takes them
        if cls is not Module:
            return object.__new__(cls)
        try:
            return object.__new__(BACKENDS.find(artifact.backend).module_class)
        except UnknownKindError as error:
            raise ArtifactError(f"{artifact.name} can't be loaded here: {error}") from error

    def __init__(
        self, artifact: Artifact, constants: Sequence[Any] = (), source: str | None = None
    ) -> None:
        self.artifact = artifact
        self.params = artifact.params[: len(artifact.params) - len(constants)]
        self.num_threads = artifact.num_threads
        self._constants = tuple(constants)
        self._source = source

    def __repr__(self) -> str:
        signature = describe_kernel(self.artifact.name, self.params)
        return f"<Module {signature} for {self.artifact.target}>"

    @classmethod
    def load(cls, path: str | Path) -> Module:
        """Load an artifact from a file.

        Raises:
            ArtifactError: If the file is no artifact, or not for this host.
            OSError: If it can't be read.
        """
        return cls(Artifact.load(path))

    def save(self, path: str | Path) -> None:
        """Write the kernel to a file that `load` reads, in another process too.

        Raises:
            ArtifactError: If it has constants: a file holds code, and no data.
        """
        if self._constants:
            raise ArtifactError(f"{self.artifact.name} has constants: a file holds no data")
        self.artifact.save(path)

    def __call__(self, *arrays: Any, num_threads: int | None = None) -> None:
        """Run the kernel.

        Args:
            arrays: One a parameter.
            num_threads: How many threads to use at most, if not `self.num_threads`; more than the
                kernel was built for are not used.

        Raises:
            ArgumentError: If an array has the wrong number, shape, dtype or layout, if an output
                is read-only, if an output overlaps another array, or if there are no threads.
        """
        raise NotImplementedError

    def bind(self, *arrays: Any, num_threads: int | None = None) -> Callable[[], None]:
        """Check the arrays once, and return a function that runs the kernel on them.

        One thread at a time may call it. It works on when the module is closed.

        Raises:
            ArgumentError: As a call does.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Unload the code, as soon as no call is under way; a second call does nothing."""
        raise NotImplementedError

    @property
    def clock(self) -> Clock:
        """What times bound functions of this module."""
        return BACKENDS.find(self.artifact.backend).time_calls

    def __getitem__(self, name: str) -> Module:
        """Return the function of a name: this kernel, the only one, by the name of its program.

        Raises:
            KeyError: If it has another name.
        """
        if name != self.artifact.name:
            raise KeyError(f"there is no function {name!r}: the kernel is {self.artifact.name!r}")
        return self

    def time_evaluator(
        self,
        func_name: str | None = None,
        dev: object = None,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: int = 0,
    ) -> Callable[..., Timing]:
        """Return a function that times the kernel on arrays, as TVM spells it.

        Args:
            func_name: The name of the kernel; none is needed.
            dev: Taken for the sake of TVM's users: a kernel has its device.
            number: How many calls a sample is the mean of.
            repeat: How many samples.
            min_repeat_ms: The least time of a sample: as many calls as it takes.

        Raises:
            KeyError: If the kernel has another name.
            ValueError: If there is nothing to count.
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
        """Return what the kernel was compiled from, or to.

        Args:
            fmt: "ll" for LLVM IR, "asm" for assembly; by default the language of the backend.

        Raises:
            ValueError: If there is no such format, or the kernel was loaded from a file, which
                holds machine code only.
        """
        if fmt not in ("", *self.languages):
            expected = " or ".join(f'"{language}"' for language in self.languages)
            raise ValueError(f"there is no source of format {fmt!r}: expected {expected}")
        if self._source is None:
            raise ValueError(
                f"{self.artifact.name} was loaded as machine code, without its source: "
                "build the program to see it"
            )
        if fmt == "asm":
            backend = BACKENDS.find(self.artifact.backend)
            return backend.assembly(self._source, Target(self.artifact.target))
        return self._source

    def export_library(self, path: str | Path) -> None:
        """Write the kernel to a file that `Module.load` reads; see `save`."""
        self.save(path)
