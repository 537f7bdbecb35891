"""Link a relocatable object: place its sections, and resolve what they refer to.

This is the part of a linker that the objects of a model require. They are position independent,
have no constructors and no thread-local variables, and call few functions of the C library. The
relocations are those of the psABI of x86-64 and of AArch64 (ELF for the Arm 64-bit Architecture).

The image is three parts, each of whole pages: code, constants, variables. Behind the code is one
stub for each external function, 16 bytes: a jump, and at byte 8 the address. So functions may be
at any distance.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from .error import PackageError

PAGE_BYTES = 1 << 16  # the largest page of Linux on AArch64
_STUB_BYTES = 16
_ADDRESS_IN_STUB = 8
_MACHINES = {62: "x86_64", 183: "aarch64"}
_STUBS = {
    "x86_64": bytes.fromhex("ff2502000000 9090"),  # jmp *2(%rip)
    "aarch64": bytes.fromhex("50000058 00021fd6"),  # ldr x16, #8; br x16
}
_SYMBOL_TABLE, _RELOCATIONS, _NO_BITS = 2, 4, 8  # sh_type
_WRITE, _ALLOCATE, _EXECUTE, _THREAD_LOCAL = 1, 2, 4, 0x400  # sh_flags
_UNDEFINED = 0  # st_shndx
_LOCAL = 0  # the binding in st_info
# More than any model has; a guard against sizes that only a damaged file states.
_LIMIT_BYTES = 64 << 20

# Python raises these for numbers that are no offsets in the file.
_MALFORMED = (struct.error, LookupError, OverflowError, ValueError)


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    kind: int
    flags: int
    start: int
    size: int
    link: int
    info: int
    alignment: int


@dataclass(frozen=True, slots=True)
class _Symbol:
    name: str
    is_global: bool
    section: int
    value: int


@dataclass(frozen=True, slots=True)
class Image:
    """A linked object.

    Attributes:
        content: The bytes to place at the base address.
        code_bytes, constant_bytes: The sizes of the first two parts, in whole pages.
        addresses: The addresses of the functions that it exports, by name.
    """

    content: bytes
    code_bytes: int
    constant_bytes: int
    addresses: dict[str, int]


@dataclass(frozen=True, slots=True)
class _Patch:
    """One place that refers to something.

    Attributes:
        content: The image.
        offset: Where the reference is in the image.
        at: Its address.
        target: The address that it refers to.
        slot: The address of eight bytes that hold an address; 0 if there are none.
    """

    content: bytearray
    offset: int
    at: int
    target: int
    slot: int

    def store(self, form: str, value: int) -> None:
        """Write a number."""
        struct.pack_into(form, self.content, self.offset, value)

    def set_bits(self, value: int, shift: int) -> None:
        """Set bits of an instruction that are 0 in the object."""
        (word,) = struct.unpack_from("<I", self.content, self.offset)
        self.store("<I", word | value << shift)

    def set_page(self, target: int) -> None:
        """Set the distance in pages of 4 KiB of an instruction `adrp`."""
        pages = (target >> 12) - (self.at >> 12)
        if not -(1 << 20) <= pages < 1 << 20:
            raise OverflowError(f"{pages} pages are too far")
        self.set_bits(pages & 3, 29)
        self.set_bits((pages >> 2) & 0x7FFFF, 5)


class ObjectFile:
    """A relocatable object.

    Attributes:
        arch: The architecture by Linux's name.
            size_bytes: The size of the image.

    Raises:
        PackageError: If it is none, or needs more than this linker offers.
    """

    def __init__(self, content: bytes) -> None:
        try:
            self._parse(bytes(content))
        except PackageError:
            raise
        except _MALFORMED as error:
            raise PackageError(f"malformed object code: {error}") from error

    def _parse(self, content: bytes) -> None:
        magic, kind, machine = struct.unpack_from("<6s10xHH", content)
        if magic != b"\x7fELF\x02\x01" or kind != 1 or machine not in _MACHINES:
            raise PackageError("the object code is no relocatable ELF file of a known architecture")
        self.arch = _MACHINES[machine]
        self._content = content
        self._sections = self._read_sections()
        self._symbols = self._read_symbols()
        self._places, self._ends = self._place_sections()
        names = [s.name for s in self._symbols if s.section == _UNDEFINED and s.name]
        self.externals = tuple(dict.fromkeys(names))
        self._stubs = {name: self._ends[0] + _STUB_BYTES * i for i, name in enumerate(names)}
        self._code_bytes = _up(self._ends[0] + _STUB_BYTES * len(names), PAGE_BYTES)
        self._constant_bytes = _up(self._ends[1], PAGE_BYTES)
        self.size_bytes = self._code_bytes + self._constant_bytes + _up(self._ends[2], PAGE_BYTES)
        if self.size_bytes > _LIMIT_BYTES:
            raise PackageError(f"the object code has {self.size_bytes} bytes")

    def _read_sections(self) -> list[_Section]:
        start, size, count, names = struct.unpack_from("<40xQ10xHHH", self._content)
        rows = [
            struct.unpack_from("<IIQQQQIIQQ", self._content, start + size * i) for i in range(count)
        ]
        strings = rows[names][4] if rows else 0
        sections = []
        for name, kind, flags, _, at, length, link, info, alignment, _ in rows:
            if flags & _THREAD_LOCAL:
                raise PackageError("the object code has thread-local variables")
            if kind != _NO_BITS and at + length > len(self._content):
                raise PackageError("the object code is cut off")
            text = self._text(strings + name)
            sections.append(_Section(text, kind, flags, at, length, link, info, alignment or 1))
        return sections

    def _read_symbols(self) -> list[_Symbol]:
        symbols = []
        for table in self._sections:
            if table.kind == _SYMBOL_TABLE:
                strings = self._sections[table.link].start
                for at in range(table.start, table.start + table.size, 24):
                    name, info, section, value = struct.unpack_from("<IBxHQ", self._content, at)
                    text = self._text(strings + name)
                    symbols.append(_Symbol(text, info >> 4 != _LOCAL, section, value))
        return symbols

    def _text(self, start: int) -> str:
        return self._content[start : self._content.index(b"\0", start)].decode()

    def _place_sections(self) -> tuple[dict[int, tuple[int, int]], list[int]]:
        """Return the part and the offset of each section in it, and the sizes of the parts."""
        places, ends = {}, [0, 0, 0]
        for number, section in enumerate(self._sections):
            if not section.flags & _ALLOCATE or section.name == ".eh_frame":
                continue
            part = 0 if section.flags & _EXECUTE else 2 if section.flags & _WRITE else 1
            start = _up(ends[part], section.alignment)
            places[number] = (part, start)
            ends[part] = start + section.size
        ends[0] = _up(ends[0], _STUB_BYTES)
        return places, ends

    def link(self, base: int, resolve: Callable[[str], int]) -> Image:
        """Return the image for a base address, a multiple of `PAGE_BYTES`.

        Args:
            base: The address that it will run at.
            resolve: Returns the address of an external function.

        Raises:
            PackageError: If a relocation is not supported.
        """
        content = bytearray(self.size_bytes)
        offsets = {number: self._offset(number) for number in self._places}
        for number, offset in offsets.items():
            section = self._sections[number]
            if section.kind != _NO_BITS:
                data = self._content[section.start : section.start + section.size]
                content[offset : offset + len(data)] = data
        for name, offset in self._stubs.items():
            stub = _STUBS[self.arch] + struct.pack("<Q", resolve(name))
            content[offset : offset + _STUB_BYTES] = stub
        try:
            for table in self._sections:
                if table.kind == _RELOCATIONS and table.info in offsets:
                    self._relocate(content, table, offsets, base)
        except PackageError:
            raise
        except _MALFORMED as error:
            raise PackageError(f"malformed relocations: {error}") from error
        exported = [s for s in self._symbols if s.is_global and s.section in offsets]
        addresses = {s.name: base + offsets[s.section] + s.value for s in exported}
        return Image(bytes(content), self._code_bytes, self._constant_bytes, addresses)

    def _offset(self, number: int) -> int:
        part, start = self._places[number]
        return (0, self._code_bytes, self._code_bytes + self._constant_bytes)[part] + start

    def _relocate(
        self, content: bytearray, table: _Section, offsets: dict[int, int], base: int
    ) -> None:
        patch = _patch_x86_64 if self.arch == "x86_64" else _patch_aarch64
        for row in range(table.start, table.start + table.size, 24):
            position, kind, number, addend = struct.unpack_from("<QIIq", self._content, row)
            symbol = self._symbols[number]
            slot = 0
            if symbol.section == _UNDEFINED:
                target = base + self._stubs[symbol.name]
                slot = target + _ADDRESS_IN_STUB + addend
            elif symbol.section in offsets:
                target = base + offsets[symbol.section] + symbol.value
            else:
                raise PackageError(f"the object code refers to {symbol.name!r}, which is not in it")
            offset = offsets[table.info] + position
            patch(_Patch(content, offset, base + offset, target + addend, slot), kind)


def _patch_x86_64(patch: _Patch, kind: int) -> None:
    match kind:
        case 1:  # R_X86_64_64
            patch.store("<Q", patch.target)
        case 2 | 4:  # R_X86_64_PC32, R_X86_64_PLT32
            patch.store("<i", patch.target - patch.at)
        case 24:  # R_X86_64_PC64
            patch.store("<q", patch.target - patch.at)
        case 9 | 41 | 42 if patch.slot:  # R_X86_64_GOTPCREL, and what a linker may relax
            patch.store("<i", patch.slot - patch.at)
        case _:
            raise PackageError(f"relocation {kind} of x86-64 is not supported")


# The size of the access of R_AARCH64_ADD_ABS_LO12_NC and R_AARCH64_LDST*_ABS_LO12_NC, as its
# logarithm: the field of the instruction counts such units.
_LOW_12_BITS = {277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4}


def _patch_aarch64(patch: _Patch, kind: int) -> None:
    distance = patch.target - patch.at
    match kind:
        case 257:  # R_AARCH64_ABS64
            patch.store("<Q", patch.target)
        case 260:  # R_AARCH64_PREL64
            patch.store("<q", distance)
        case 261:  # R_AARCH64_PREL32
            patch.store("<i", distance)
        case 282 | 283 if -(1 << 27) <= distance < 1 << 27:  # R_AARCH64_JUMP26, R_AARCH64_CALL26
            patch.set_bits((distance >> 2) & 0x3FFFFFF, 0)
        case 275:  # R_AARCH64_ADR_PREL_PG_HI21
            patch.set_page(patch.target)
        case 311 if patch.slot:  # R_AARCH64_ADR_GOT_PAGE
            patch.set_page(patch.slot)
        case 312 if patch.slot:  # R_AARCH64_LD64_GOT_LO12_NC
            patch.set_bits((patch.slot & 0xFFF) >> 3, 10)
        case _ if kind in _LOW_12_BITS:
            patch.set_bits((patch.target & 0xFFF) >> _LOW_12_BITS[kind], 10)
        case _:
            raise PackageError(f"relocation {kind} of AArch64 is not supported")


def _up(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment
