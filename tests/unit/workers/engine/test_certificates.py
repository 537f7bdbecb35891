import os
from pathlib import Path

import pytest

from workers.engine import certificates
from workers.engine.engine import CertificateError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    certificates.make(tmp_path)
    return tmp_path


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o660])
def test_a_key_that_others_can_use_is_refused(folder: Path, mode: int) -> None:
    (folder / certificates.KEY).chmod(mode)
    with pytest.raises(CertificateError, match="other users can read"):
        certificates.read(folder)


@pytest.mark.parametrize("owner", [0, 65534])
def test_a_group_may_read_the_key_of_root_only(folder: Path, owner: int) -> None:
    if os.geteuid() != 0:
        owner = os.geteuid()
    else:
        os.chown(folder / certificates.KEY, owner, 0)
    (folder / certificates.KEY).chmod(0o440)
    if owner == 0:
        certificates.read(folder)
    else:
        with pytest.raises(CertificateError, match="other users can read"):
            certificates.read(folder)
