"""Relocations: write the distance or the address of what code refers to into the code.

They are those of the psABI of x86-64, of the ELF ABIs of Arm (AArch64 and 32 bits), and of RISC-V's
psABI, as far as LLVM writes them for position-independent kernels.

A function of the system may be at any distance, so calls go to a stub behind the code: a jump, and
the address.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from .error import PackageError


class Patch(NamedTuple):
    """One place that refers to something.

    Attributes:
        content: The image.
        offset: Where the reference is in the image.
        at: Its address.
        target: The address that it refers to.
        slot: The address of a word that holds an address; 0 if there are none.
        distances: Of RISC-V, the distance that each instruction `auipc` adds to the address of its
            own: other instructions add the rest of it.
    """

    content: bytearray
    offset: int
    at: int
    target: int
    slot: int
    distances: dict[int, int]

    @property
    def distance(self) -> int:
        """Return the distance from the reference to what it refers to."""
        return self.target - self.at

    def load(self, form: str) -> int:
        """Return the number at the place."""
        return int(struct.unpack_from(form, self.content, self.offset)[0])

    def store(self, form: str, value: int) -> None:
        """Write a number."""
        struct.pack_into(form, self.content, self.offset, value)

    def set_bits(self, value: int, shift: int) -> None:
        """Set bits of an instruction that are 0 in the object."""
        self.store("<I", self.load("<I") | value << shift)

    def set_page(self, target: int) -> None:
        """Set the distance in pages of 4 KiB of an instruction `adrp`."""
        pages = (target >> 12) - (self.at >> 12)
        if not -(1 << 20) <= pages < 1 << 20:
            raise OverflowError(f"{pages} pages are too far")
        self.set_bits(pages & 3, 29)
        self.set_bits((pages >> 2) & 0x7FFFF, 5)


class LinkedMachine(NamedTuple):
    """How an architecture refers to addresses.

    Attributes:
        arch: Its name, Linux's.
        jump: The instructions of a stub, which jump to the address behind them.
        word: The form of an address, for `struct`.
        patch: Relocates one place, by the number of the relocation.
        is_late: Returns whether relocations of a number need those of the others done.
    """

    arch: str
    jump: bytes
    word: str
    patch: Callable[[Patch, int], None]
    is_late: Callable[[int], bool] = lambda _: False

    def stub(self, address: int) -> bytes:
        """Return a stub."""
        return self.jump + struct.pack(self.word, address)

    @property
    def stub_bytes(self) -> int:
        """Return the size of a stub."""
        return len(self.jump) + struct.calcsize(self.word)


def _patch_x86_64(patch: Patch, kind: int) -> None:
    match kind:
        case 1:  # R_X86_64_64
            patch.store("<Q", patch.target)
        case 2 | 4:  # R_X86_64_PC32, R_X86_64_PLT32
            patch.store("<i", patch.distance)
        case 24:  # R_X86_64_PC64
            patch.store("<q", patch.distance)
        case 9 | 41 | 42 if patch.slot:  # R_X86_64_GOTPCREL, and what a linker may relax
            patch.store("<i", patch.slot - patch.at)
        case _:
            raise PackageError(f"relocation {kind} of x86-64 is not supported")


# The size of the access of R_AARCH64_ADD_ABS_LO12_NC and R_AARCH64_LDST*_ABS_LO12_NC, as its
# logarithm: the field of the instruction counts such units.
_LOW_12_BITS = {277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4}


def _patch_aarch64(patch: Patch, kind: int) -> None:
    match kind:
        case 257:  # R_AARCH64_ABS64
            patch.store("<Q", patch.target)
        case 260:  # R_AARCH64_PREL64
            patch.store("<q", patch.distance)
        case 261:  # R_AARCH64_PREL32
            patch.store("<i", patch.distance)
        case 282 | 283 if (
            -(1 << 27) <= patch.distance < 1 << 27
        ):  # R_AARCH64_JUMP26, R_AARCH64_CALL26
            patch.set_bits((patch.distance >> 2) & 0x3FFFFFF, 0)
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


def _patch_armv7(patch: Patch, kind: int) -> None:
    # The place holds a number that is added to the address.
    match kind:
        case 40:  # R_ARM_V4BX marks an instruction
            pass
        case 2 | 38:  # R_ARM_ABS32, R_ARM_TARGET1
            patch.store("<I", (patch.target + patch.load("<i")) & 0xFFFFFFFF)
        case 3:  # R_ARM_REL32
            patch.store("<i", patch.distance + patch.load("<i"))
        case 96 if patch.slot:  # R_ARM_GOT_PREL
            patch.store("<i", patch.slot - patch.at + patch.load("<i"))
        case 27 | 28 | 29:  # R_ARM_PLT32, R_ARM_CALL, R_ARM_JUMP24
            word = patch.load("<I")
            distance = patch.distance + (_signed(word, 24) << 2)
            _check_range(distance, 26)
            patch.store("<I", word & 0xFF000000 | (distance >> 2) & 0xFFFFFF)
        case 45 | 46:  # R_ARM_MOVW_PREL_NC, R_ARM_MOVT_PREL
            word = patch.load("<I")
            distance = patch.distance + _signed((word >> 4 & 0xF000) | (word & 0xFFF), 16)
            half = (distance if kind == 45 else distance >> 16) & 0xFFFF
            patch.store("<I", word & 0xFFF0F000 | (half & 0xF000) << 4 | half & 0xFFF)
        case _:
            raise PackageError(f"relocation {kind} of 32-bit ARM is not supported")


_PCREL_LOW = (24, 25)  # R_RISCV_PCREL_LO12_I, R_RISCV_PCREL_LO12_S


def _patch_riscv64(patch: Patch, kind: int) -> None:
    match kind:
        case 51:  # R_RISCV_RELAX permits a linker to shorten the code
            pass
        case 2:  # R_RISCV_64
            patch.store("<Q", patch.target)
        case 57:  # R_RISCV_32_PCREL
            patch.store("<i", patch.distance)
        case 35 | 39:  # R_RISCV_ADD32, R_RISCV_SUB32
            sign = 1 if kind == 35 else -1
            patch.store("<I", (patch.load("<I") + sign * patch.target) & 0xFFFFFFFF)
        case _ if kind in _JUMPS:
            form, width, bits_of = _JUMPS[kind]
            _check_range(patch.distance, width)
            patch.store(form, patch.load(form) | bits_of(patch.distance))
        case 18 | 19:  # R_RISCV_CALL, R_RISCV_CALL_PLT: auipc and jalr
            patch.set_bits(_high(patch.distance), 12)
            (low,) = struct.unpack_from("<I", patch.content, patch.offset + 4)
            low |= (patch.distance & 0xFFF) << 20
            struct.pack_into("<I", patch.content, patch.offset + 4, low)
        case 20 if patch.slot:  # R_RISCV_GOT_HI20
            patch.distances[patch.at] = patch.slot - patch.at
            patch.set_bits(_high(patch.slot - patch.at), 12)
        case 23:  # R_RISCV_PCREL_HI20
            patch.distances[patch.at] = patch.distance
            patch.set_bits(_high(patch.distance), 12)
        case _ if kind in _PCREL_LOW:
            low = patch.distances[patch.target] & 0xFFF
            is_load = kind == _PCREL_LOW[0]
            patch.set_bits(low << 20 if is_load else (low >> 5) << 25 | (low & 0x1F) << 7, 0)
        case _:
            raise PackageError(f"relocation {kind} of RISC-V is not supported")


def _high(distance: int) -> int:
    """Return the upper 20 bits of a distance; instructions add the signed lower 12 bits."""
    _check_range(distance + 0x800, 32)
    return (distance + 0x800) >> 12 & 0xFFFFF


# The bits of a distance in the instructions of RISC-V: B, J, CB and CJ of its manual.


def _branch(n: int) -> int:
    return (n >> 12 & 1) << 31 | (n >> 5 & 0x3F) << 25 | (n >> 1 & 0xF) << 8 | (n >> 11 & 1) << 7


def _jump(n: int) -> int:
    outer = (n >> 20 & 1) << 31 | (n >> 1 & 0x3FF) << 21
    return outer | (n >> 11 & 1) << 20 | (n >> 12 & 0xFF) << 12


def _short_branch(n: int) -> int:
    upper = (n >> 8 & 1) << 12 | (n >> 3 & 3) << 10
    return upper | (n >> 6 & 3) << 5 | (n >> 1 & 3) << 3 | (n >> 5 & 1) << 2


def _short_jump(n: int) -> int:
    upper = (n >> 11 & 1) << 12 | (n >> 4 & 1) << 11 | (n >> 8 & 3) << 9 | (n >> 10 & 1) << 8
    return upper | (n >> 6 & 1) << 7 | (n >> 7 & 1) << 6 | (n >> 1 & 7) << 3 | (n >> 5 & 1) << 2


_JUMPS: dict[int, tuple[str, int, Callable[[int], int]]] = {
    16: ("<I", 13, _branch),  # R_RISCV_BRANCH
    17: ("<I", 21, _jump),  # R_RISCV_JAL
    44: ("<H", 9, _short_branch),  # R_RISCV_RVC_BRANCH
    45: ("<H", 12, _short_jump),  # R_RISCV_RVC_JUMP
}


def _signed(bits: int, width: int) -> int:
    """Return the signed number in the lowest bits of a word."""
    value = bits & ((1 << width) - 1)
    return value - (1 << width) if value >> (width - 1) else value


def _check_range(distance: int, bits: int) -> None:
    if not -(1 << (bits - 1)) <= distance < 1 << (bits - 1):
        raise OverflowError(f"a distance of {distance} bytes is too far")


MACHINES = {
    # jmp *2(%rip)
    62: LinkedMachine("x86_64", bytes.fromhex("ff2502000000 9090"), "<Q", _patch_x86_64),
    # ldr x16, #8; br x16
    183: LinkedMachine("aarch64", bytes.fromhex("50000058 00021fd6"), "<Q", _patch_aarch64),
    # ldr pc, [pc, #-4]
    40: LinkedMachine("armv7l", bytes.fromhex("04f01fe5"), "<I", _patch_armv7),
    # auipc t1, 0; ld t1, 16(t1); jr t1; nop
    243: LinkedMachine(
        "riscv64",
        bytes.fromhex("17030000 03330301 67000300 13000000"),
        "<Q",
        _patch_riscv64,
        _PCREL_LOW.__contains__,
    ),
}
"""The architectures, by ELF's numbers of them."""
