"""A device that is reached by a channel: arrays and kernels there."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from compiler.executor.artifact import Artifact
from compiler.executor.cpu_flags import cpu_flags
from compiler.executor.error import ArgumentError, ArtifactError
from compiler.executor.machine import device_flags, linux_name
from compiler.executor.named_type import named_type
from compiler.remote.arrays import RemoteArray
from compiler.remote.channel import Channel
from compiler.remote.image import RemoteImage
from compiler.remote.module import RemoteModule, load_pool
from compiler.remote.protocol import DeviceFacts
from compiler.remote.session import Session
from compiler.runtime.nd import Device

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class Remote:
    """A session with a device; `lw.rpc.connect` makes one.

    It may be used from several threads, whose requests take turns. It is a context manager, which
    ends the session. After a `RemoteGoneError` or a `RemoteFaultError` the session is over: connect
    again.

    Args:
        channel: How frames reach the device.
        token: What the device requires; empty if nothing.
        name: Its name, for messages.

    Raises:
        RemoteError: If the device refuses the session, or vanished.
    """

    def __init__(self, channel: Channel, token: str = "", name: str = "a device") -> None:
        self.name = name
        self.session = Session(channel, token)
        self._uploads: dict[str, Artifact] = {}
        self._symbols: dict[str, int] = {}
        self._pool: RemoteImage | None = None
        facts = self.facts
        self._flags = device_flags(facts.arch, facts.features, facts.vector_bits)

    def __repr__(self) -> str:
        emulated = ", emulated" if self.is_emulated else ""
        return f"<Remote {self.name}: {self.facts.arch}{emulated}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def facts(self) -> DeviceFacts:
        """Return what the device says of itself."""
        return self.session.facts

    @property
    def is_emulated(self) -> bool:
        """Return whether it is an emulator, which reports no times."""
        return self.facts.is_emulated

    def upload(self, artifact: Artifact | str | os.PathLike[str], name: str | None = None) -> str:
        """Take an artifact, or a file of one, for `load_module`.

        Args:
            artifact: The artifact; or a file of `Artifact.save`, also an object or a library.
            name: Its name for `load_module`, by default that of the file or of the kernel.

        Returns:
            The name.

        Raises:
            ArtifactError: If the file is no artifact, or the device can't run it.
            OSError: If the file can't be read.
        """
        if isinstance(artifact, Artifact):
            loaded, default = artifact, artifact.name
        else:
            path = os.fspath(artifact)
            loaded, default = Artifact.load(path), os.path.basename(path)
        self.check_machine(loaded)
        self._uploads[name or default] = loaded
        return name or default

    def load_module(
        self, artifact: Artifact | str, const_params: Mapping[str, Any] | None = None
    ) -> RemoteModule:
        """Load a kernel on the device.

        Args:
            artifact: The kernel, or the name of one that was uploaded.
            const_params: An array of this host for each constant parameter, by name.

        Raises:
            KeyError: If nothing of this name was uploaded.
            ArtifactError: If the device can't run it.
            ArgumentError: If it is no artifact, or the constants do not fit the kernel.
            RemoteError: If the device refuses it, or vanished.
        """
        if isinstance(artifact, str):
            if artifact not in self._uploads:
                names = ", ".join(sorted(self._uploads)) or "nothing"
                raise KeyError(f"{artifact!r} was not uploaded: {names} was")
            artifact = self._uploads[artifact]
        if not isinstance(artifact, Artifact):
            raise ArgumentError(
                f"{named_type(artifact)} is no kernel for a device: expected an artifact of"
                " lw.compile_kernel, or the name of an upload"
            )
        return RemoteModule(self, artifact, const_params)

    def array(self, values: ArrayLike) -> RemoteArray:
        """Return a copy of values in the memory of the device.

        Raises:
            RemoteError: If the device has no memory left, or vanished.
        """
        array = np.asarray(values)
        return self.empty(array.shape, array.dtype.name).copyfrom(array)

    def empty(self, shape: Sequence[int], dtype: str = "float32") -> RemoteArray:
        """Return an array in the memory of the device, which holds zeros.

        Raises:
            RemoteError: If the device has no memory left, or vanished.
        """
        return RemoteArray(self.session, shape, dtype)

    def cpu(self, index: int = 0) -> RemoteDevice:
        """Return its CPU, for `lw.nd.array(values, remote.cpu())`.

        Raises:
            ValueError: If `index` is not 0.
        """
        if index != 0:
            raise ValueError(f"there is no cpu({index}): the only CPU is cpu(0)")
        return RemoteDevice("cpu", index, self)

    def check_machine(self, artifact: Artifact) -> None:
        """Refuse code that the device can't run; of an emulated CPU only the architecture is known.

        Raises:
            ArtifactError: If it can't.
        """
        arch = linux_name(artifact.triple.split("-")[0])
        if arch != self.facts.arch:
            raise ArtifactError(
                f"{artifact.name} was built for {arch}: the device is {self.facts.arch}"
            )
        needed = cpu_flags(artifact.features, arch)
        missing = [flag for flag in needed if flag not in self._flags]
        if missing and not self.is_emulated:
            raise ArtifactError(
                f"{artifact.name} was built for a CPU with {', '.join(missing)}: {self.name} has"
                f" none of that; build it for the CPU of the device, {self.facts.arch}"
            )

    def address_of(self, function: str) -> int:
        """Return the address of a function of the device; 0 if it does not have it."""
        if function not in self._symbols:
            self._symbols |= self.session.resolve([function])
        return self._symbols[function]

    def pool(self, artifact: Artifact) -> RemoteImage:
        """Return the pool of threads of the session, that of its first kernel with threads."""
        if self._pool is None:
            self._pool = load_pool(self.session, artifact)
        return self._pool

    def close(self) -> None:
        """End the session, and release what the device holds; a second call does nothing."""
        self.session.close()


@dataclass(frozen=True, slots=True)
class RemoteDevice(Device):
    """The CPU of a device, which holds arrays."""

    remote: Remote = field(repr=False, compare=False)

    def array(self, values: ArrayLike) -> RemoteArray:
        """Return a copy of values in the memory of the device."""
        return self.remote.array(values)

    def empty(self, shape: Sequence[int], dtype: str) -> RemoteArray:
        """Return an array in the memory of the device."""
        return self.remote.empty(shape, dtype)
