"""Kernels that a service signs, and what a client that knows its key accepts."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

import loopwright as lw
from compiler.ir.analysis.structural import structural_hash
from compiler.runtime.signature import KeyFileError, PublicKey, SigningKey
from loopwright.cli.main import app
from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.store.database.database import Database
from tests.service_fixtures import database as database
from tests.unit.loopwright.conftest import fake as fake
from tests.unit.loopwright.fake_server import Answer, FakeServer

OPERATOR, OTHER = "relu:16:float32", "relu:32:float32"


@pytest.fixture(scope="module")
def content() -> bytes:
    return lw.build(lw.ops.from_spec(OPERATOR), "cpu").artifact.to_bytes()


@pytest.fixture
def key(tmp_path: Path) -> SigningKey:
    return SigningKey.create(tmp_path / "key.pem")


@pytest.fixture
def client(fake: FakeServer, key: SigningKey, tmp_path: Path) -> Iterator[lw.Client]:
    with lw.Client(fake.url, cache=tmp_path / "cache", public_key=key.public) as opened:
        yield opened


def answer(
    content: bytes, key: SigningKey | None, operator: str = OPERATOR, schedule: str = "best"
) -> Answer:
    headers = {"ETag": '"1"', "Loopwright-Schedule": "best"}
    if key is not None:
        workload = structural_hash(lw.ops.from_spec(operator))
        headers["Loopwright-Signature"] = key.sign(workload, schedule, content)
    return Answer(body=content, headers=headers)


def test_a_signed_kernel_is_loaded_and_kept(
    fake: FakeServer, client: lw.Client, key: SigningKey, content: bytes
) -> None:
    fake.answers = [answer(content, key), Answer(304, headers={"ETag": '"1"'})]
    assert client.kernel(OPERATOR).source is lw.KernelSource.SERVER
    assert client.kernel(OPERATOR).source is lw.KernelSource.CACHE


def test_what_is_not_signed_by_the_key_is_refused(
    fake: FakeServer, client: lw.Client, key: SigningKey, content: bytes, tmp_path: Path
) -> None:
    signed = answer(content, key)
    wrong = {
        "is not signed": answer(content, None),
        "was changed on the way": Answer(body=content + b"x", headers=signed.headers),
        "another workload's": answer(content, key, OTHER),
        "the signature": answer(content, key, schedule="default"),
        "another key": answer(content, SigningKey.create(tmp_path / "other.pem")),
    }
    for message, found in wrong.items():
        fake.answers = [found]
        with pytest.raises(lw.SignatureError, match=message):
            client.kernel(OPERATOR)


def test_a_kernel_that_was_kept_unsigned_is_fetched_anew(
    fake: FakeServer, key: SigningKey, content: bytes, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    fake.answers = [answer(content, None), answer(content, key)]
    with lw.Client(fake.url, cache=cache) as trusting:
        assert trusting.kernel(OPERATOR).source is lw.KernelSource.SERVER
    with lw.Client(fake.url, cache=cache, public_key=key.public) as client:
        assert client.kernel(OPERATOR).source is lw.KernelSource.SERVER


def test_a_service_signs_what_a_client_verifies(database: Database, key: SigningKey) -> None:
    query = {"workload": {"operator": OPERATOR}}
    workload = structural_hash(lw.ops.from_spec(OPERATOR))
    with TestClient(create_app(Dependencies(database, signer=key))) as client:
        found = client.post("/api/v1/artifacts?fallback=true", json=query)
    assert found.status_code == 200
    PublicKey.read(key.public).verify(
        found.headers["loopwright-signature"], workload, "default", found.content
    )


def test_the_command_makes_a_key_once_and_shows_its_public_key(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    first, second = (CliRunner().invoke(app, ["key", str(path)]) for _ in range(2))
    assert first.stdout == second.stdout
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (tmp_path / "public").write_text(first.stdout)
    assert PublicKey.read(str(tmp_path / "public")) == PublicKey.read(first.stdout)
    path.chmod(0o644)
    assert "chmod 600" in CliRunner().invoke(app, ["key", str(path)]).output


@pytest.mark.parametrize("text", ["ed25519:", "ed25519:AAAA", "no such file", "ed25519:!"])
def test_what_is_no_public_key_is_refused(text: str) -> None:
    with pytest.raises(KeyFileError, match="expected a public key"):
        PublicKey.read(text)
    with pytest.raises(lw.SignatureError, match="expected a public key"):
        lw.Client("http://127.0.0.1:1", public_key=text)
