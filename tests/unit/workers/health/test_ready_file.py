import os
from pathlib import Path

from workers.health.ready_file import ReadyFile


def test_a_file_of_an_earlier_process_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "ready"
    path.touch()
    ReadyFile(path)
    assert not path.exists()


def test_a_renewal_makes_the_file_new(tmp_path: Path) -> None:
    path = tmp_path / "ready"
    ready = ReadyFile(path)
    ready.renew()
    os.utime(path, (0, 0))
    ready.renew()
    assert path.stat().st_mtime > 1e9
    ready.remove()
    assert not path.exists()


def test_without_a_path_there_is_no_file(tmp_path: Path) -> None:
    ready = ReadyFile(None)
    ready.renew()
    ready.remove()
    assert list(tmp_path.iterdir()) == []
