"""Webhooks from the submission to a receiver."""

from __future__ import annotations

import json
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import datetime, timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from fastapi.testclient import TestClient

from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.store import webhooks
from service.store.database.base import utc_now
from service.store.database.database import Database
from service.webhooks.allowed_addresses import ALLOWED, AllowedAddresses
from service.webhooks.sender import WebhookSender
from tests.integration.service.driving import drive
from tests.patience import PATIENCE_SECS
from tests.service_fixtures import problem
from tests.unit.loopwright.fake_server import Answer, Asked, FakeServer

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="
JOB: dict[str, Any] = {
    "workload": {"operator": "matmul:16,16,16"},
    "max_trials": 8,
    "warm_start": False,
}
PAGE = Path(__file__).parents[4] / "docs" / "webhooks.md"


@pytest.fixture
def receiver() -> Iterator[FakeServer]:
    with closing(FakeServer()) as server:
        yield server


@pytest.fixture
def client(
    database: Database, receiver: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[TestClient]:
    monkeypatch.setenv(ALLOWED, f"public,{receiver.url}")
    app = create_app(Dependencies(database))
    with TestClient(app, base_url="http://test/api/v1", raise_server_exceptions=False) as client:
        yield client


@pytest.fixture
def is_authentic() -> Callable[..., bool]:
    """Return the function of the document, which knows nothing of the service."""
    (program,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(program, names)
    return names["is_authentic"]  # type: ignore[no-any-return]


def hook(receiver: FakeServer) -> dict[str, str]:
    return {"url": f"{receiver.url}/ended", "secret": SECRET}


def submitted(client: TestClient, path: str = "/jobs", **body: Any) -> dict[str, Any]:
    response = client.post(path, json={**JOB, **body} if path == "/jobs" else body)
    assert response.status_code == 201, response.text
    return dict(response.json())


def send(database: Database, *, after_secs: float = 0.0) -> int:
    """Send what is due at a later time."""
    allowed = AllowedAddresses.of_environment()
    by = timedelta(seconds=after_secs)
    return WebhookSender(database, allowed, clock=lambda: utc_now() + by).send_due()


def accept_one(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    with connection:
        answer(connection)


def answer(connection: socket.socket) -> None:
    """Answer a request, then read its rest: closing a socket with unread bytes resets it."""
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
    while connection.recv(65536):
        pass


def event_of(asked: Asked) -> dict[str, Any]:
    return dict(json.loads(asked.body))


@pytest.mark.on_both_databases
def test_the_end_of_a_job_is_sent_once_and_signed(
    client: TestClient,
    database: Database,
    receiver: FakeServer,
    is_authentic: Callable[..., bool],
) -> None:
    job = submitted(client, webhook=hook(receiver), tags=["nightly"])
    assert job["webhook"]["state"] == "waiting"
    assert send(database) == 0
    drive(database)
    pending = client.get(f"/jobs/{job['id']}").json()["webhook"]
    assert pending["state"] == "pending"
    receiver.answers.append(Answer(204))
    assert (send(database), send(database)) == (1, 0)
    (asked,) = receiver.asked
    event = event_of(asked)
    assert (asked.method, asked.path, event["type"]) == ("POST", "/ended", "job.ended")
    (ended,) = event["data"]["jobs"]
    assert event["data"]["id"] == ended["id"] == job["id"]
    assert (ended["state"], ended["num_measured"], ended["tags"]) == ("succeeded", 8, ["nightly"])
    assert is_authentic(SECRET, asked.headers, asked.body)
    assert not is_authentic(SECRET, asked.headers, asked.body + b" ")
    old = str(int(asked.headers["webhook-timestamp"]) - 301)
    assert not is_authentic(SECRET, {**asked.headers, "webhook-timestamp": old}, asked.body)
    delivered = client.get(f"/jobs/{job['id']}").json()["webhook"]
    assert (delivered["state"], delivered["num_attempts"]) == ("delivered", 1)
    assert delivered["event_id"] == pending["event_id"] == asked.headers["webhook-id"]
    answers = client.get(f"/jobs/{job['id']}").text + client.get("/jobs").text
    assert SECRET not in answers
    assert "/ended" not in answers


@pytest.mark.on_both_databases
def test_a_group_sends_one_event_when_its_last_job_has_ended(
    client: TestClient, database: Database, receiver: FakeServer
) -> None:
    tasks = [{"workload": {"operator": f"matmul:16,16,{n}"}} for n in (16, 32)]
    group = submitted(client, "/groups", tasks=tasks, max_trials=32, webhook=hook(receiver))
    first, second = (job["id"] for job in group["jobs"])
    client.post(f"/jobs/{first}/cancel")
    assert send(database) == 0
    client.post(f"/jobs/{second}/cancel")
    receiver.answers.append(Answer(200))
    assert (send(database), send(database)) == (1, 0)
    event = event_of(receiver.asked[0])
    assert (event["type"], event["data"]["id"]) == ("group.ended", group["id"])
    assert [job["id"] for job in event["data"]["jobs"]] == [first, second]
    assert client.get(f"/groups/{group['id']}").json()["webhook"]["state"] == "delivered"


def test_a_resumed_job_sends_another_event(
    client: TestClient, database: Database, receiver: FakeServer
) -> None:
    job = submitted(client, webhook=hook(receiver))["id"]
    for _ in range(2):
        client.post(f"/jobs/{job}/cancel")
        receiver.answers.append(Answer(200))
        assert send(database) == 1
        client.post(f"/jobs/{job}/resume")
    assert len({asked.headers["webhook-id"] for asked in receiver.asked}) == 2


def test_failed_attempts_are_repeated_with_growing_delays_and_then_end(
    client: TestClient, database: Database, receiver: FakeServer
) -> None:
    job = submitted(client, webhook=hook(receiver))["id"]
    client.post(f"/jobs/{job}/cancel")
    statuses = [500, 302, 404]
    receiver.answers += [Answer(s, headers={"Location": receiver.url}) for s in statuses]
    delays, now = [], 0.0
    for _ in statuses:
        assert send(database, after_secs=now) == 1
        shown = client.get(f"/jobs/{job}").json()["webhook"]
        next_at = datetime.fromisoformat(shown["next_attempt_at"])
        delays.append(round((next_at - utc_now()).total_seconds() - now))
        now += delays[-1] + 1
        assert send(database, after_secs=now - 3) == 0
    assert delays == [10, 20, 40]
    assert shown["error"] == "the receiver answered 404"
    assert len({asked.headers["webhook-id"] for asked in receiver.asked}) == 1
    assert len({asked.body for asked in receiver.asked}) == 1
    for number in range(webhooks.MAX_ATTEMPTS - len(statuses)):
        receiver.answers.append(Answer(503))
        assert send(database, after_secs=now + 3601 * number) == 1
    shown = client.get(f"/jobs/{job}").json()["webhook"]
    assert (shown["state"], shown["num_attempts"]) == ("failed", 16)
    assert shown["next_attempt_at"] is None
    assert send(database, after_secs=1e7) == 0


def test_an_event_survives_a_sender_that_is_killed_before_the_answer(
    client: TestClient, database: Database, receiver: FakeServer
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(ALLOWED, url)
            job = submitted(client, webhook={"url": url, "secret": SECRET})["id"]
            client.post(f"/jobs/{job}/cancel")
            code = (
                "from service.store.database.database import open_database\n"
                "from service.webhooks.allowed_addresses import AllowedAddresses\n"
                "from service.webhooks.sender import WebhookSender\n"
                f"database = open_database({database.url!r})\n"
                "WebhookSender(database, AllowedAddresses.of_environment()).send_due()\n"
            )
            sender = subprocess.Popen([sys.executable, "-c", code])
            silent.settimeout(PATIENCE_SECS)
            connection, _ = silent.accept()
            request = connection.recv(65536).decode()
            sender.send_signal(signal.SIGKILL)
            assert sender.wait() == -signal.SIGKILL
            connection.close()
            assert send(database) == 0  # its lease lasts
            receiving = Thread(target=accept_one, args=(silent,))
            receiving.start()
            assert send(database, after_secs=webhooks.LEASE_SECS) == 1
            receiving.join()
    shown = client.get(f"/jobs/{job}").json()["webhook"]
    assert (shown["state"], shown["num_attempts"]) == ("delivered", 2)
    assert f"webhook-id: {shown['event_id']}" in request


def test_the_connection_goes_to_the_address_that_was_checked(
    client: TestClient,
    database: Database,
    receiver: FakeServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    port = receiver.url.rsplit(":", 1)[1]
    url = f"http://hooks.test:{port}"
    monkeypatch.setenv(ALLOWED, url)
    job = submitted(client, webhook={"url": f"{url}/a", "secret": SECRET})["id"]
    client.post(f"/jobs/{job}/cancel")
    answers = [[(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", int(port)))]]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answers.pop())
    receiver.answers.append(Answer(200))
    assert send(database) == 1
    assert receiver.asked[0].headers["host"] == f"hooks.test:{port}"


@pytest.mark.parametrize(
    "webhook",
    [
        {"url": "https://127.0.0.1/", "secret": SECRET},
        {"url": "http://ci.example/", "secret": SECRET},
        {"url": "https://ci.example/ a", "secret": SECRET},
        {"url": "https://ci.example/", "secret": "whsec_c2hvcnQ="},
        {"url": "https://ci.example/", "secret": SECRET.removeprefix("whsec_")},
        {"url": "https://ci.example/"},
    ],
)
def test_an_address_that_is_not_allowed_or_a_weak_secret_is_refused(
    client: TestClient, webhook: dict[str, str]
) -> None:
    refused = problem(client.post("/jobs", json={**JOB, "webhook": webhook}), 422)
    assert refused["errors"][0]["pointer"].startswith("/webhook")
    assert "c2hvcnQ" not in json.dumps(refused)
    assert client.get("/jobs").json()["items"] == []


def test_an_attempt_goes_wrong_if_the_address_is_no_longer_allowed(
    client: TestClient, database: Database, receiver: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = submitted(client, webhook=hook(receiver))["id"]
    client.post(f"/jobs/{job}/cancel")
    monkeypatch.setenv(ALLOWED, "public")
    assert send(database) == 1
    assert receiver.asked == []
    assert "not allowed" in client.get(f"/jobs/{job}").json()["webhook"]["error"]


def test_a_running_sender_sends_by_itself(
    client: TestClient, database: Database, receiver: FakeServer
) -> None:
    sender = WebhookSender(database, AllowedAddresses.of_environment())
    sender.start()
    receiver.answers.append(Answer(200))
    job = submitted(client, webhook=hook(receiver))["id"]
    client.post(f"/jobs/{job}/cancel")
    deadline = time.monotonic() + PATIENCE_SECS
    while client.get(f"/jobs/{job}").json()["webhook"]["state"] != "delivered":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    sender.stop(PATIENCE_SECS)
    assert len(receiver.asked) == 1


def save_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """Write a certificate of a host that signed itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    made = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(utc_now() - timedelta(days=1))
        .not_valid_after(utc_now() + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "certificate.pem").write_bytes(made.public_bytes(pem))
    (folder / "key.pem").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return folder / "certificate.pem", folder / "key.pem"


@pytest.mark.parametrize(("name", "state"), [("localhost", "delivered"), ("ci.test", "pending")])
def test_a_certificate_is_checked_for_the_name_of_the_host(
    client: TestClient,
    database: Database,
    tmp_path: Path,
    name: str,
    state: str,
) -> None:
    certificate, key = save_certificate(tmp_path, name)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with (
        socket.create_server(("127.0.0.1", 0)) as plain,
        pytest.MonkeyPatch.context() as patch,
    ):
        url = f"https://localhost:{plain.getsockname()[1]}"
        patch.setenv(ALLOWED, url)
        patch.setenv("SSL_CERT_FILE", str(certificate))
        job = submitted(client, webhook={"url": url, "secret": SECRET})["id"]
        client.post(f"/jobs/{job}/cancel")
        receiving = Thread(target=accept_tls, args=(plain, context))
        receiving.start()
        assert send(database) == 1
        receiving.join()
    shown = client.get(f"/jobs/{job}").json()["webhook"]
    assert shown["state"] == state
    assert state == "delivered" or "CERTIFICATE_VERIFY_FAILED" in shown["error"]


def accept_tls(listener: socket.socket, context: ssl.SSLContext) -> None:
    connection, _ = listener.accept()
    with suppress(ssl.SSLError), context.wrap_socket(connection, server_side=True) as encrypted:
        answer(encrypted)
