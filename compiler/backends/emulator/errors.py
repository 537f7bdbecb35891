"""The errors of the emulator. Faults of a kernel are values of its report, never exceptions."""

from __future__ import annotations


class EmulatorError(Exception):
    """The emulator cannot run this code: it is unknown to it, or the launch does not fit it."""


class UnsupportedInstructionError(EmulatorError):
    """The emulator does not implement an instruction."""

    def __init__(self, text: str, ptx_line: int) -> None:
        super().__init__(f"line {ptx_line} of the PTX: the emulator does not implement {text!r}")


class StopEmulation(EmulatorError):  # noqa: N818 - a signal inside the emulator, not an error
    """No thread can run on: the report holds the fault."""
