"""Signed artifacts: what is accepted, and each way to tamper."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler.runtime.signature import KeyFileError, PublicKey, SignatureMismatchError, SigningKey


@pytest.fixture
def key(tmp_path: Path) -> SigningKey:
    return SigningKey.create(tmp_path / "key.pem")


def test_a_signature_fits_what_was_signed(key: SigningKey) -> None:
    signature = key.sign("workload", "schedule", b"code")
    PublicKey.read(key.public).verify(signature, "workload", "schedule", b"code")


@pytest.mark.parametrize(
    "signed",
    [
        ("other", "schedule", b"code"),
        ("workload", "other", b"code"),
        ("workload", "schedule", b"evil"),
    ],
)
def test_a_signature_fits_nothing_else(key: SigningKey, signed: tuple[str, str, bytes]) -> None:
    signature = key.sign(*signed)
    with pytest.raises(SignatureMismatchError, match="does not fit"):
        PublicKey.read(key.public).verify(signature, "workload", "schedule", b"code")


def test_another_key_signs_in_vain(key: SigningKey, tmp_path: Path) -> None:
    other = SigningKey.create(tmp_path / "other.pem")
    with pytest.raises(SignatureMismatchError, match="does not fit"):
        PublicKey.read(key.public).verify(other.sign("w", "s", b""), "w", "s", b"")


def test_no_signature_is_its_own_error(key: SigningKey) -> None:
    with pytest.raises(SignatureMismatchError, match="not signed"):
        PublicKey.read(key.public).verify("", "w", "s", b"")
    with pytest.raises(SignatureMismatchError, match="does not fit"):
        PublicKey.read(key.public).verify("?!", "w", "s", b"")


def test_a_key_is_read_back_by_its_owner_only(key: SigningKey, tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    assert path.stat().st_mode & 0o777 == 0o600
    assert SigningKey.read(path).public == key.public
    path.chmod(0o644)
    with pytest.raises(KeyFileError, match="chmod 600"):
        SigningKey.read(path)


def test_a_key_is_not_overwritten(key: SigningKey, tmp_path: Path) -> None:
    before = (tmp_path / "key.pem").read_bytes()
    with pytest.raises(KeyFileError, match="cannot write the key"):
        SigningKey.create(tmp_path / "key.pem")
    assert (tmp_path / "key.pem").read_bytes() == before
    assert key.public


def test_a_public_key_may_be_in_a_file(key: SigningKey, tmp_path: Path) -> None:
    path = tmp_path / "key.pub"
    path.write_text(key.public + "\n")
    PublicKey.read(str(path)).verify(key.sign("w", "s", b""), "w", "s", b"")


@pytest.mark.parametrize("text", ["", "ed25519:", "ed25519:AAAA", "ed25519:??", "/none/such"])
def test_a_text_that_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(KeyFileError, match="expected a public key"):
        PublicKey.read(text)


def test_a_file_that_is_no_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match="loopwright key"):
        SigningKey.read(tmp_path / "missing")
    path = tmp_path / "text"
    path.write_text("hello")
    path.chmod(0o600)
    with pytest.raises(KeyFileError, match="is no key"):
        SigningKey.read(path)
