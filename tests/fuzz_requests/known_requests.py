"""Requests that the API answers, to be mutated: each route, in the words of a client."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from service.models.submit import submit_model
from service.store.database.database import Database
from service.wire.requests import ModelCreate, ModelSource
from tests.integration.service.recorded import NUM_TRIALS, SPECS, TARGETS, History, file_of
from tests.integration.service.tuned import SPEC, task_of, tuned

TOKEN = "s3cret"
SCRIPT = """@T.prim_func
def scaled(A: T.Buffer((64, 32), "float32"), B: T.Buffer((64, 32), "float32")):
    for i, j in T.grid(64, 32):
        with T.block("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
"""


# No part of this server sends it: the address may exist or not.
WEBHOOK = {"url": "https://hooks.example/tuned", "secret": f"whsec_{32 * 'A'}"}
WINDOW = "22:00-06:00 Europe/Berlin"

GRAPH = """@R.function
def f(x: R.Tensor((8, 32), "float32")) -> R.Tensor((8, 32), "float32"):
    with R.dataflow():
        y: R.Tensor((8, 32), "float32") = R.nn.relu(x)
        R.output(y)
    return y
"""


@dataclass(frozen=True)
class Request:
    """A request as it goes over the wire; `lies` if its length or its end is not as it says."""

    method: bytes
    target: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()
    body: bytes = b""
    version: bytes = b"HTTP/1.1"
    lies: bool = False

    def with_header(self, name: bytes, value: bytes) -> Request:
        """Return the same request with one more header."""
        return replace(self, headers=(*self.headers, (name, value)))

    def with_body(self, body: bytes) -> Request:
        """Return the same request with another body, and its length."""
        length = str(len(body)).encode()
        headers = tuple(
            (name, length if name == b"Content-Length" else value) for name, value in self.headers
        )
        # In chunks, the lengths of its pieces stay what they were.
        is_in_chunks = any(name == b"Transfer-Encoding" for name, _ in headers)
        return replace(self, body=body, headers=headers, lies=self.lies or is_in_chunks)

    def wire(self) -> bytes:
        """Return what is sent."""
        head = b"%s %s %s\r\n" % (self.method, self.target, self.version)
        lines = b"".join(b"%s: %s\r\n" % pair for pair in self.headers)
        return head + lines + b"\r\n" + self.body


def known_requests(database: Database) -> list[Request]:
    """Fill a database with what the requests ask for, and return them."""
    job, _ = tuned(database, SPEC)
    source = ModelSource(graph=GRAPH)
    model = submit_model(database, ModelCreate(name="m", model=source, max_trials=16))[0].id
    model_body = {"model": {"graph": GRAPH}, "max_trials": 16}
    known: dict[str, Any] = {"workload": {"operator": SPEC}, "target": "cpu -num-cores=1"}
    script = {"workload": {"script": SCRIPT}, "target": "cpu"}
    tasks = [{"workload": known["workload"], "weight": 2.0}, {"workload": script["workload"]}]
    key = task_of(SPEC).workload_key
    records = file_of([(History(UUID(int=9), SPECS[0], TARGETS[0], 1), NUM_TRIALS, True)])
    posts: list[tuple[str, Any]] = [
        ("/jobs", {**known, "max_trials": 16, "seed": 3, "priority": 1, "strategy": "random"}),
        ("/jobs", {**script, "max_trials": 16, "max_secs": 2.5, "plateau": 64, "rules": []}),
        ("/jobs", {**known, "max_trials": 16, "webhook": WEBHOOK, "window": WINDOW}),
        ("/jobs", {**known, "max_trials": 16, "name": "a", "note": "b", "tags": ["c"]}),
        ("/groups", {"tasks": tasks, "max_trials": 64, "target": "cpu"}),
        ("/groups", {"tasks": tasks, "max_trials": 64, "webhook": WEBHOOK, "window": WINDOW}),
        ("/models", {"name": "m", "model": {"graph": GRAPH}, "max_trials": 16, "target": "cpu"}),
        ("/models", {**model_body, "webhook": WEBHOOK, "window": WINDOW}),
        ("/schedules/best", {**known, "nearest": True, "enqueue": False}),
        ("/schedules/best", {**script, "enqueue": True}),
        ("/artifacts", script),
        ("/workloads/check", {**script, "space": True}),
        ("/workloads/check", {"workload": {"operator": "conv2d:1,8,14,14,8,3,1,1"}}),
        ("/tokens", {"name": "ci", "scopes": ["read", "submit"]}),
        (f"/jobs/{job}/cancel", None),
        (f"/jobs/{job}/stop", None),
        (f"/jobs/{job}/resume", None),
        (f"/groups/{UUID(int=7)}/cancel", None),
        (f"/groups/{UUID(int=7)}/stop", None),
    ]
    gets = [
        "/caller",
        "/jobs?state=queued&state=running&operator=matmul&tag=c&sort=-created_at&limit=20",
        f"/jobs/{job}",
        f"/jobs/{job}/trials?outcome=ok&sort=best_secs&limit=5&from_number=0&to_number=9",
        f"/jobs/{job}/trials/1",
        f"/jobs/{job}/curve?points=100",
        f"/jobs/{job}/columns?points=100&from_number=1",
        f"/jobs/{job}/selection?from_relative_speed=0.5&sort=-predicted&limit=5",
        f"/jobs/{job}/summary",
        f"/jobs/{job}/decisions",
        f"/jobs/{job}/events",
        f"/groups/{UUID(int=7)}",
        "/models?text=m&target=cpu&owner=ci&sort=name&limit=2",
        f"/models/{UUID(int=7)}",
        f"/models/{model}",
        f"/models/{model}/package",
        "/schedules?text=512+x+512&sort=-speedup&limit=3",
        f"/schedules/best?workload_key={key}&target=cpu%20-num-cores%3D1",
        f"/schedules/best?workload_key={key}&target=cpu&nearest=true",
        "/cost-models?label=cpu/znver3",
        "/workers?state=idle",
        "/workloads?text=mat&sort=name&limit=2",
        f"/workloads/{key}",
        "/targets?sort=name",
        f"/export?job={job}",
        "/health",
        "/tokens?revoked=false",
        "/openapi.json",
    ]
    found = [_json("POST", f"/api/v1{path}", body) for path, body in posts]
    found.append(_json("PATCH", f"/api/v1/jobs/{job}", {"max_trials": 32, "priority": 2}))
    found.append(_json("PATCH", f"/api/v1/jobs/{job}", {"window": WINDOW, "tags": ["c", "d"]}))
    found.append(_json("DELETE", f"/api/v1/tokens/{UUID(int=5)}", None))
    found.append(_sent("POST", "/api/v1/import", records, b"application/x-ndjson"))
    found.append(_sent("PUT", "/api/v1/cache/k1", b"\0bytes", b"application/octet-stream"))
    found += [_sent(m, "/api/v1/cache/k1", b"", None) for m in ("GET", "HEAD", "DELETE")]
    found += [_json("GET", f"/api/v1{path}", None) for path in gets]
    found += [
        _json("GET", path, None) for path in ("/livez", "/readyz", "/metrics", "/", "/jobs/1")
    ]
    return found


def _json(method: str, path: str, body: Any) -> Request:
    if body is None:
        return _sent(method, path, b"", None)
    return _sent(method, path, json.dumps(body).encode(), b"application/json")


def _sent(method: str, path: str, body: bytes, kind: bytes | None) -> Request:
    headers = [
        (b"Host", b"127.0.0.1"),
        (b"Connection", b"close"),
        (b"Authorization", b"Bearer " + TOKEN.encode()),
    ]
    if kind is not None:
        headers += [(b"Content-Type", kind), (b"Content-Length", str(len(body)).encode())]
    return Request(method.encode(), path.encode(), tuple(headers), body)
