import os
import tempfile
import threading
import time
from pathlib import Path

import pytest

from workers.child.device_lock import DeviceLock


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def never() -> bool:
    return False


def test_one_holds_a_device_at_a_time() -> None:
    held: list[str] = []

    def use(name: str) -> None:
        for _ in range(20):
            with DeviceLock("GPU-0").taken(never):
                held.append(name)
                time.sleep(1e-3)
                held.append(name)

    threads = [threading.Thread(target=use, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(held) == 120
    assert held[::2] == held[1::2]


def test_one_that_waits_comes_before_one_that_takes_it_again() -> None:
    order: list[str] = []
    has_begun = threading.Event()

    def wait() -> None:
        has_begun.set()
        with DeviceLock("GPU-0").taken(never):
            order.append("waiting")

    thread = threading.Thread(target=wait)
    lock = DeviceLock("GPU-0")
    with lock.taken(never):
        thread.start()
        has_begun.wait()
        time.sleep(0.1)  # it is in the queue now
    with lock.taken(never):
        order.append("again")
    thread.join()
    assert order == ["waiting", "again"]


def test_devices_do_not_wait_for_each_other() -> None:
    with DeviceLock("GPU-0").taken(never), DeviceLock("GPU-1").taken(never):
        pass


def test_a_wait_can_be_abandoned() -> None:
    with DeviceLock("GPU-0").taken(never), DeviceLock("GPU-0").taken(lambda: True):
        pass


def test_a_file_in_its_place_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "loopwright-GPU-0.lock").symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="loopwright-GPU-0"), DeviceLock("GPU-0").taken(never):
        pass


def test_each_user_may_lock_the_files_whatever_the_umask_of_their_creator(tmp_path: Path) -> None:
    umask = os.umask(0o077)
    try:
        with DeviceLock("GPU-0").taken(never):
            pass
    finally:
        os.umask(umask)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == {"loopwright-GPU-0.queue": 0o644, "loopwright-GPU-0.lock": 0o644}


def test_an_existing_file_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "loopwright-GPU-0.lock"
    file.touch(0o600)
    with DeviceLock("GPU-0").taken(never):
        pass
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_pipe_in_its_place_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "loopwright-GPU-0.lock")
    with DeviceLock("GPU-0").taken(never):
        pass
