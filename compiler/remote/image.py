"""Code on a device: linked here for its address there, and written page by page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compiler.executor.elf import ObjectFile
from compiler.executor.error import ArtifactError, PackageError
from compiler.remote.error import RemoteRefusedError
from compiler.remote.session import DeviceRegion, Session

_PAGE_BYTES = 4096
"""Runs of so many zeros are not sent: the memory of a device holds zeros. Chosen."""
_LIMIT_ADDRESS = 1 << 57
"""No user address of Linux is above it, on any architecture."""


@dataclass(frozen=True, slots=True)
class RemoteImage:
    """Code on a device.

    Attributes:
        region: Its memory, which is executable.
        offsets: Where its functions and variables are in it, by name.
    """

    region: DeviceRegion
    offsets: Mapping[str, int]

    def offset(self, name: str) -> int:
        """Return the offset of a function.

        Raises:
            ArtifactError: If there is none of this name.
        """
        if name not in self.offsets:
            raise ArtifactError(f"the object code has no function {name!r}")
        return self.offsets[name]


def load_image(
    session: Session, name: str, code: bytes, variables: Mapping[str, int] | None = None
) -> RemoteImage:
    """Load object code on a device.

    Args:
        session: The session with the device.
        name: The name of the kernel, for messages.
        code: The object.
        variables: Values to store in 64-bit variables of the object before it is loaded.

    Raises:
        ArtifactError: If the code is damaged, for another architecture, or calls a function that
            the device does not have.
        RemoteError: If the device refuses it, or vanished.
    """
    try:
        parsed = ObjectFile(code)
    except PackageError as error:
        raise ArtifactError(f"{name} can't be loaded: {error}") from error
    if parsed.arch != session.facts.arch:
        raise ArtifactError(
            f"{name} was built for {parsed.arch}: the device is {session.facts.arch}"
        )
    addresses = session.resolve(parsed.externals) if parsed.externals else {}
    if missing := [function for function, address in addresses.items() if not address]:
        raise ArtifactError(f"{name} calls {', '.join(missing)}, which the device does not have")
    region = session.reserve(parsed.size_bytes, is_code=True)
    try:
        if not 0 < region.address < _LIMIT_ADDRESS:
            raise RemoteRefusedError(f"the device offers the address {region.address:#x}")
        image = parsed.link(region.address, addresses.__getitem__)
        offsets = {n: address - region.address for n, address in image.addresses.items()}
        content = bytearray(image.content)
        for variable, value in (variables or {}).items():
            content[offsets[variable] : offsets[variable] + 8] = value.to_bytes(8, "little")
        _write_pages(session, region, content)
        session.seal(region, image.code_bytes, image.constant_bytes)
    except PackageError as error:
        session.release(region)
        raise ArtifactError(f"{name} can't be loaded: {error}") from error
    except BaseException:
        session.abandon(region)
        raise
    return RemoteImage(region, offsets)


def _write_pages(session: Session, region: DeviceRegion, content: bytearray) -> None:
    """Write the pages that hold more than zeros, those in a row together."""
    starts = range(0, len(content), _PAGE_BYTES)
    used = [start for start in starts if any(content[start : start + _PAGE_BYTES])]
    while used:
        end = first = used[0]
        while used and used[0] == end:
            end += _PAGE_BYTES
            used.pop(0)
        session.write(region, memoryview(content)[first:end], first)
