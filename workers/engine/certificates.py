"""The certificate of a cluster: its holder may run code on the hosts of the workers.

One key pair, made for the cluster and copied to its hosts, signs for all of them: every connection
is encrypted, and both sides prove that they have the key.
"""

from __future__ import annotations

import os
from pathlib import Path

from distributed.security import Security

from workers.engine.engine import CertificateError

CERTIFICATE = "cluster.pem"
KEY = "cluster.key"


def make(folder: Path) -> None:
    """Make a certificate in a folder, unless it has one."""
    if (folder / KEY).exists():
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = Security.temporary()
    (folder / CERTIFICATE).write_text(made.tls_ca_file)
    with open(os.open(folder / KEY, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "w") as key:
        key.write(made.tls_client_key)


def read(folder: Path) -> Security:
    """Return Dask's settings for the certificate in a folder.

    Raises:
        CertificateError: If there is none, or others may read its key.
    """
    certificate, key = folder / CERTIFICATE, folder / KEY
    for path in (certificate, key):
        if not path.is_file():
            raise CertificateError(
                f"no file {path}: `loopwright scheduler --certificates {folder}` creates it; copy "
                "the folder to every host of the cluster"
            )
    # A key of root may be readable for a group, as mounted secrets are: PostgreSQL has this rule.
    forbidden = 0o037 if key.stat().st_uid == 0 else 0o077
    if key.stat().st_mode & forbidden:
        raise CertificateError(f"other users can read {key}: run chmod 600 on it")
    role = {"tls_{}_cert": str(certificate), "tls_{}_key": str(key)}
    files = {
        name.format(party): path
        for party in ("client", "scheduler", "worker")
        for name, path in role.items()
    }
    return Security(require_encryption=True, tls_ca_file=str(certificate), **files)
