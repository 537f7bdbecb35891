"""What this machine is."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler.executor.machine import is_emulated


@pytest.mark.parametrize(
    ("name", "told", "real", "expected"),
    [
        ("python3", "/usr/bin/python3", "/usr/bin/python3", False),
        ("qemu-aarch64", "/usr/bin/python3", "/usr/bin/qemu-aarch64", True),
        ("python3", "/usr/bin/python3", "/usr/libexec/qemu-binfmt/aarch64", True),
        ("qemu-arm", "/usr/bin/python3", "/usr/bin/python3", True),
    ],
)
def test_an_emulator_is_known_by_its_name_or_its_program(
    tmp_path: Path, name: str, told: str, real: str, expected: bool
) -> None:
    for folder, program in (("self", told), ("thread-self", real)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "exe").symlink_to(program)
    (tmp_path / "self" / "comm").write_text(f"{name}\n")
    assert is_emulated(str(tmp_path)) is expected


def test_a_system_without_such_files_is_no_emulator(tmp_path: Path) -> None:
    assert not is_emulated(str(tmp_path))
