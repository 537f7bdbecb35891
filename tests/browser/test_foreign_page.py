"""A page of another origin, in a real browser, against a service that needs no token."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from uuid import UUID

import httpx2
import pytest
from playwright.sync_api import Browser

from examples.serving import Server
from tests.integration.service.recorded import NUM_TRIALS, SPECS, TARGETS, History, file_of
from tests.patience import PATIENCE_SECS

FORGED = file_of([(History(UUID(int=13), SPECS[0], TARGETS[0], 1), NUM_TRIALS, True)]).decode()

# Every way to send something that needs no leave from the server asked, and one that does.
ATTACK = """async ({url, job, records}) => {
  const sent = [];
  const send = async (name, path, options) => {
    try {
      const answer = await fetch(url + path, options);
      sent.push(`${name} ${answer.type} ${answer.status}`);
    } catch (error) {
      sent.push(`${name} blocked`);
    }
  };
  const simple = {method: "POST", mode: "no-cors"};
  await send("import", "/api/v1/import", {...simple, body: records});
  await send("form", "/api/v1/jobs", {...simple, body: new URLSearchParams({a: "1"})});
  await send("cancel", `/api/v1/jobs/${job}/cancel`, simple);
  await send("beacon", "/api/v1/jobs", {...simple, keepalive: true, body: "{}"});
  const json = {"Content-Type": "application/json"};
  await send("json", "/api/v1/jobs", {method: "POST", headers: json, body: "{}"});
  await send("read", "/api/v1/jobs", {});
  return sent;
}"""


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>a foreign page</title>")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def foreign_port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Page) as pages:
        thread = threading.Thread(target=pages.serve_forever)
        thread.start()
        yield pages.server_port
        pages.shutdown()
        thread.join()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])  # of the same site, and of another
def test_a_foreign_page_changes_and_reads_nothing(
    browser: Browser, server: Server, foreign_port: int, host: str
) -> None:
    with httpx2.Client(base_url=f"{server.url}/api/v1", timeout=PATIENCE_SECS) as http:
        job = http.post(
            "/jobs", json={"workload": {"operator": "matmul:48,48,48"}, "max_trials": 5000}
        )
        before = http.get("/jobs", params={"limit": 500}).json()["items"]
        page = browser.new_page()
        page.goto(f"http://{host}:{foreign_port}/")
        given = {"url": server.url, "job": job.json()["id"], "records": FORGED}
        sent = page.evaluate(ATTACK, given)
        page.close()
        # All were sent but the one with a preflight; of no answer the page sees anything.
        assert sent == [
            f"{name} blocked" for name in ("import", "form", "cancel", "beacon", "json", "read")
        ]
        after = http.get("/jobs", params={"limit": 500}).json()["items"]
        assert [one["id"] for one in after] == [one["id"] for one in before]
        assert http.get(f"/jobs/{job.json()['id']}").json()["state"] in {"queued", "running"}
        http.post(f"/jobs/{job.json()['id']}/cancel").raise_for_status()
