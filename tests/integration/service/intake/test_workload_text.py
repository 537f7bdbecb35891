"""Workloads as texts over HTTP."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from service.common.errors import UnprocessableError
from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.intake.workload_text import read_here
from service.store.database.database import Database
from service.wire.requests import Workload
from tests.service_fixtures import problem

SCRIPT = """
@T.prim_func
def double(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("B"):
            vi = T.axis.spatial(16, i)
            B[vi] = A[vi] * T.float32(2)
"""


@pytest.fixture
def client(database: Database) -> Iterator[TestClient]:
    app = create_app(Dependencies(database))
    with TestClient(app, base_url="http://test/api/v1", raise_server_exceptions=False) as client:
        yield client


def test_a_script_is_a_workload_too(client: TestClient) -> None:
    response = client.post("/jobs", json={"workload": {"script": SCRIPT}, "max_trials": 1})
    assert response.status_code == 201
    assert response.json()["workload_name"] == "double"


def test_a_function_and_those_that_it_calls_are_the_workload_that_is_written_out(
    client: TestClient,
) -> None:
    main = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    Module.double(A, B)
"""
    module = "@I.ir_module\nclass Module:" + textwrap.indent(SCRIPT + main, "    ")
    whole, parts = (
        client.post("/workloads/check", json={"workload": {"script": text}}).json()
        for text in (SCRIPT, module)
    )
    assert parts["key"] == whole["key"]
    assert parts["script"] == whole["script"].replace("def double", "def main")
    job = client.post("/jobs", json={"workload": {"script": module}, "trials": 1}).json()
    assert job["workload_key"] == whole["key"]
    wrong = {"script": module.replace("Module.double(A, B)", "Module.double(A)")}
    refused = problem(client.post("/jobs", json={"workload": wrong, "trials": 1}), 422)
    assert "main passes 1 argument(s) to double, which takes 2: A, B" in refused["detail"]
    assert (refused["errors"][0]["line"], "^" in refused["detail"]) == (12, True)


PLAIN = """
@T.prim_func
def double(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float32")):
    for i in range(1024):
        B[i] = A[i] * T.float32(2)
"""
BOUND = PLAIN.replace("range(1024)", 'T.thread_binding(1024, thread="threadIdx.x")')


def test_plain_loops_are_a_workload_unless_no_blocks_can_be_derived(client: TestClient) -> None:
    check = client.post("/workloads/check", json={"workload": {"script": PLAIN}, "space": True})
    assert check.json()["space"]["num_schedules"] > 1
    task = {"workload": {"script": PLAIN}, "max_trials": 1}
    assert client.post("/jobs", json=task).status_code == 201

    refused = {"workload": {"script": BOUND}}
    for path, body in (
        ("/jobs", {**refused, "max_trials": 1}),
        ("/groups", {"tasks": [refused], "max_trials": 16}),
        ("/workloads/check", refused),
    ):
        answer = problem(client.post(path, json=body), 422)
        assert "function double can't be tuned: Schedule: double has no blocks" in answer["detail"]
        assert "none can be derived: loop i is bound to threadIdx.x" in answer["detail"]
        assert answer["errors"][0]["pointer"].endswith("/workload/script")
    # What is stored may be looked up.
    assert client.post("/schedules/best", json=refused).status_code == 404


@pytest.mark.on_both_databases
def test_programs_of_one_structure_are_one_workload(client: TestClient) -> None:
    renamed = SCRIPT.replace("double", "twice").replace("vi", "x")
    keys = {
        client.post("/jobs", json={"workload": {"script": text}, "max_trials": 1}).json()[
            "workload_key"
        ]
        for text in (SCRIPT, renamed)
    }
    assert len(keys) == 1


def test_a_wrong_script_is_shown_with_its_place(client: TestClient) -> None:
    wrong = SCRIPT.replace("A[vi]", "A[vi")
    refused = problem(
        client.post("/jobs", json={"workload": {"script": wrong}, "max_trials": 1}), 422
    )
    (flaw,) = refused["errors"]
    assert flaw["pointer"] == "/workload/script"
    assert (flaw["line"], flaw["column"] > 0) == (7, True)
    assert "B[vi] = A[vi * T.float32(2)" in refused["detail"]
    assert "^" in refused["detail"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("A[vi] *", "A[vi + 1] *", "A"),
        ("A[vi] *", "Z[vi] *", "Z"),
        ("float32", "float31", "float31"),
        ("(16,)", "(0,)", "0"),
        ("(16,)", "(10 ** 30,)", ""),
    ],
)
def test_a_script_that_means_nothing_is_refused(
    client: TestClient, old: str, new: str, expected: str
) -> None:
    wrong = SCRIPT.replace(old, new)
    refused = problem(
        client.post("/jobs", json={"workload": {"script": wrong}, "max_trials": 1}), 422
    )
    assert expected in refused["detail"]
    assert refused["errors"][0]["line"] >= 2
    assert client.get("/jobs").json()["items"] == []


def test_a_script_is_never_executed(client: TestClient, tmp_path: Path) -> None:
    trap = tmp_path / "executed"
    for line in (f"open({str(trap)!r}, 'w')", f"__import__('pathlib').Path({str(trap)!r}).touch()"):
        for wrong in (line + SCRIPT, SCRIPT + line, SCRIPT.replace("A[vi]", line)):
            workload = {"script": wrong}
            problem(client.post("/jobs", json={"workload": workload, "max_trials": 1}), 422)
    assert not trap.exists()


@pytest.mark.parametrize("route", ["/jobs", "/workloads/check", "/schedules/best"])
def test_a_symbolic_program_is_refused_with_the_way_to_make_it_static(
    client: TestClient, route: str
) -> None:
    symbolic = SCRIPT.replace("(16,)", '("n",)')
    assert symbolic != SCRIPT
    request = {"workload": {"script": symbolic}}
    if route == "/jobs":
        request |= {"max_trials": 1}  # type: ignore[dict-item]
    detail = problem(client.post(route, json=request), 422)["detail"]
    assert "is symbolic" in detail
    assert "write numbers instead of n, or tune ranges of sizes by POST /shapes" in detail


CALLS = {
    "T.evaluate(T.call_extern('int32', 'system', A.data, B.data))": "system",
    "T.call_packed('os.system', A, B)": "os.system",
    "T.call_packed('blas.matmul', A, A, B)": "blas.matmul",
}


def _calling(call: str) -> str:
    return f"""
@T.prim_func
def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
    with T.block("call"):
        T.reads(A[0:16, 0:16])
        T.writes(B[0:16, 0:16])
        {call}
"""


@pytest.mark.parametrize(
    ("route", "more"), [("/jobs", {"max_trials": 1}), ("/workloads/check", {})]
)
@pytest.mark.parametrize("call", CALLS)
def test_no_function_is_called_that_the_owner_does_not_allow(
    client: TestClient, call: str, route: str, more: dict[str, int]
) -> None:
    body = {"workload": {"script": _calling(call)}, **more}
    refused = problem(client.post(route, json=body), 422)
    reason = f"function main calls {CALLS[call]!r}: programs of others call only the functions"
    assert refused["errors"][0]["detail"].startswith(reason)


def test_a_model_calls_no_function_that_the_owner_does_not_allow(client: TestClient) -> None:
    loops = textwrap.indent(_calling("T.call_packed('os.system', A, B)"), "    ")
    text = f"""
@I.ir_module
class Module:
{loops.replace("def main", "def loops")}
    @R.function
    def main(x: R.Tensor((16, 16), "float32")):
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.loops, (x,), out_sinfo=R.Tensor((16, 16), "float32"))
            R.output(y)
        return y
"""
    body = {"name": "m", "max_trials": 16, "model": {"graph": text}}
    refused = problem(client.post("/models", json=body), 422)
    assert "calls 'os.system': programs of others call only" in refused["detail"]


def test_the_owner_allows_functions_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOPWRIGHT_ALLOWED_FUNCTIONS", "my.sort, blas.matmul")
    script = _calling("T.call_packed('blas.matmul', A, A, B)")
    assert "blas.matmul" in read_here(Workload(script=script)).script
    with pytest.raises(UnprocessableError, match=r"calls 'os\.system'"):
        read_here(Workload(script=script.replace("blas.matmul", "os.system")))
