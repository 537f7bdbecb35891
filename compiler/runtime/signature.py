"""Signatures of artifacts: loading an artifact runs machine code.

A server may sign its artifacts with a private key; a client with the public key loads no others.
The signature covers the workload, the choice of the schedule and the bytes, so that no artifact can
be replaced by that of another workload.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)

_PREFIX = "ed25519:"
_KEY_BYTES = 32


class KeyFileError(ValueError):
    """A key cannot be read or written."""


class SignatureMismatchError(ValueError):
    """An artifact has no signature, or a signature by another key."""


@dataclass(frozen=True)
class SigningKey:
    """The key of a server."""

    _key: Ed25519PrivateKey

    @classmethod
    def create(cls, path: Path) -> Self:
        """Generate a key, and write it to a file that only its owner may read.

        Raises:
            KeyFileError: If the file exists, or cannot be written.
        """
        key = Ed25519PrivateKey.generate()
        content = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        try:
            with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "wb") as file:
                file.write(content)
        except OSError as error:
            raise KeyFileError(f"cannot write the key {path}: {error.strerror}") from error
        return cls(key)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a key that `create` wrote.

        Raises:
            KeyFileError: If it is not a key, or others may read it.
        """
        try:
            content, mode = path.read_bytes(), path.stat().st_mode
        except OSError as error:
            raise KeyFileError(
                f"cannot read the key {path}: {error.strerror}; `loopwright key {path}` makes one"
            ) from error
        if mode & 0o077:
            raise KeyFileError(f"others may read the key {path}: chmod 600 it")
        try:
            key = serialization.load_pem_private_key(content, None)
        except (ValueError, TypeError) as error:
            raise KeyFileError(f"{path} is no key: `loopwright key` makes one") from error
        if not isinstance(key, Ed25519PrivateKey):
            raise KeyFileError(f"{path} is no Ed25519 key: `loopwright key` makes one")
        return cls(key)

    @property
    def public(self) -> str:
        """The public key as text, for clients."""
        return _PREFIX + base64.b64encode(self._key.public_key().public_bytes_raw()).decode()

    def sign(self, workload_key: str, schedule: str, content: bytes) -> str:
        """Return the signature of an artifact."""
        return base64.b64encode(self._key.sign(_signed(workload_key, schedule, content))).decode()


@dataclass(frozen=True)
class PublicKey:
    """The key that a client verifies a server's artifacts with."""

    _key: Ed25519PublicKey

    @classmethod
    def read(cls, text: str) -> Self:
        """Read the text of a public key, or a file with one.

        Raises:
            KeyFileError: If it is not a key.
        """
        key_text = text.strip()
        if not key_text.startswith(_PREFIX):
            try:
                key_text = Path(key_text).read_text().strip()
            except (OSError, UnicodeDecodeError) as error:
                raise KeyFileError(
                    f"expected a public key such as {_PREFIX}..., or a file with one, not {text!r}"
                ) from error
        try:
            raw = base64.b64decode(key_text.removeprefix(_PREFIX), validate=True)
            if not key_text.startswith(_PREFIX) or len(raw) != _KEY_BYTES:
                raise ValueError
            return cls(Ed25519PublicKey.from_public_bytes(raw))
        except (binascii.Error, ValueError):
            raise KeyFileError(
                f"expected a public key, {_PREFIX} and 44 characters, not {key_text[:60]!r}"
            ) from None

    def verify(self, signature: str, workload_key: str, schedule: str, content: bytes) -> None:
        """Check the signature of an artifact.

        Raises:
            SignatureMismatchError: If there is no signature, or it does not fit.
        """
        if not signature:
            raise SignatureMismatchError(
                "the kernel is not signed, and this client accepts signed kernels only: start the "
                "server with --signing-key"
            )
        try:
            self._key.verify(
                base64.b64decode(signature, validate=True),
                _signed(workload_key, schedule, content),
            )
        except (binascii.Error, ValueError, InvalidSignature):
            raise SignatureMismatchError(
                "the signature of the kernel does not fit: it was changed on the way, is another "
                "workload's, or the server has another key than this client expects"
            ) from None


def _signed(workload_key: str, schedule: str, content: bytes) -> bytes:
    digest = hashlib.sha256(content).hexdigest()
    return f"loopwright artifact 1\n{workload_key}\n{schedule}\n{digest}\n".encode()
