"""A mistake is answered with what was asked, what is wrong and what to do."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import loopwright
from compiler.te.elements import FUNCTIONS
from examples.serving import Server

# Mistakes that a type checker would find are made, too.
lw: Any = loopwright
te: Any = loopwright.te
numpy: Any = np
maths: Any = math

A = te.placeholder((4, 4), name="A")
FUNC = lw.ops.from_spec("relu:8")
Act = Callable[[Any], object]


@pytest.fixture
def no_answer() -> Iterator[loopwright.Client]:
    """Yield a client that asks nothing: these mistakes are found before."""
    with lw.Client("http://127.0.0.1:9", attempts=1) as client:
        yield client


UNKNOWN: list[tuple[str, str, Act]] = [
    ("trails", "max_trials", lambda c: c.tune("relu:8", trails=2)),
    ("trails", "max_trials", lambda c: c.tune(["relu:8", "relu:9"], trails=64)),
    ("nearst", "nearest", lambda c: c.best("relu:8", nearst=True)),
    ("fallbak", "fallback", lambda c: c.kernel("relu:8", fallbak=False)),
    ("stat", "state", lambda c: list(c.jobs(stat="running"))),
    ("timeout", "timeout_secs", lambda c: c.job(JOB).wait(timeout=3)),
    ("tokn", "token", lambda _: lw.Client(tokn="x")),
    ("trails", "max_trials", lambda _: lw.tune("relu:8", trails=2)),
    ("taget", "target", lambda _: lw.build(FUNC, taget="cpu")),
    ("rule", "rules", lambda _: lw.design_space(FUNC, rule=["x"])),
    ("nme", "name", lambda _: te.placeholder((4,), nme="A")),
    ("nme", "name", lambda _: te.compute((4,), lambda i: A[i, 0], nme="B")),
    ("dtyp", "dtype", lambda _: lw.ops.matmul(8, 8, 8, dtyp="float32")),
    ("buffer_indx", "buffer_index", lambda _: lw.Schedule(FUNC).set_scope("B", buffer_indx=0)),
]
JOB = "00000000-0000-0000-0000-000000000001"


@pytest.mark.parametrize(("given", "meant", "act"), UNKNOWN)
def test_an_unknown_argument_suggests_the_nearest(
    no_answer: loopwright.Client, given: str, meant: str, act: Act
) -> None:
    words = f"got an unexpected keyword argument '{given}': did you mean '{meant}'?"
    with pytest.raises(TypeError) as caught:
        act(no_answer)
    assert words in str(caught.value)


WRONG: list[tuple[type[Exception], str, Act]] = [
    (ValueError, "'123' is not the id of a job: expected one such as", lambda c: c.job("123")),
    (ValueError, "'123' is not the id of a group", lambda c: c.group("123")),
    (ValueError, "'abc' is not the id of a job", lambda c: c.trials(["abc"])),
    (
        ValueError,
        "unknown state 'runing': did you mean 'running'",
        lambda c: list(c.jobs(state="runing")),
    ),
    (TypeError, "weights requires several workloads", lambda c: c.tune("relu:8", weights=[1])),
    (
        TypeError,
        "expected a list of names, such as ['packed']",
        lambda c: c.tune("relu:8", rules="packed"),
    ),
    (TypeError, "expected a list of names", lambda _: lw.tune("relu:8", rules="packed")),
    (lw.InvalidRequestError, "max_trials is 0", lambda c: c.tune("relu:8", max_trials=0)),
    (lw.TargetError, "such as 'cpu', not None", lambda c: c.tune("relu:8", target=None)),
    (lw.TargetError, "not 3", lambda _: lw.build(FUNC, 3)),
    (
        lw.OperatorError,
        "unknown operator 'foo': expected one such as matmul:m,n,k",
        lambda _: lw.tune("foo:1,2"),
    ),
    (
        lw.OperatorError,
        "did you mean matmul? It is written matmul:m,n,k",
        lambda _: lw.tune("matmull:1,2"),
    ),
    (TypeError, "lw.parse makes one of the text", lambda _: lw.build("relu:8")),
    (AttributeError, "did you mean 'tune'", lambda _: lw.tunne),
    (TypeError, "expected a PrimFunc to lower, not a str", lambda _: lw.lower("relu:8")),
    (TypeError, "such as (0, 8), got 8", lambda _: te.reduce_axis(8)),
    (TypeError, "None for no warm start", lambda _: lw.tune("relu:8", warm_start=False)),
    (
        lw.BuildError,
        "X: not a parameter; it reads A",
        lambda _: lw.build(FUNC, const_params={"X": np.zeros(3)}),
    ),
    (lw.InvalidAddressError, "a text, not 8080", lambda _: lw.Client(8080)),
    (
        lw.ScheduleError,
        "as get_block and get_loops return them",
        lambda _: lw.Schedule(FUNC).reorder(1, 2),
    ),
    (
        lw.InvalidAddressError,
        "did you mean 'http://localhost:8080'?",
        lambda _: lw.Client("localhost:8080"),
    ),
    (TypeError, "use te.exp", lambda _: te.compute((4,), lambda i: numpy.exp(A[i, 0]))),
    (TypeError, "use te.max", lambda _: te.compute((4,), lambda i: numpy.maximum(A[i, 0], 0))),
    (TypeError, "such as te.exp", lambda _: te.compute((4,), lambda i: maths.exp(A[i, 0]))),
    (TypeError, "use te.exp, on elements such as A[i, j]", lambda _: numpy.exp(A)),
    (TypeError, "take an element of it, such as A[i, j]", lambda _: te.exp(A)),
    (TypeError, "operators work on elements, not on whole tensors", lambda _: A + A),
    (
        TypeError,
        "axes made by te.reduce_axis",
        lambda _: te.compute((4,), lambda i: te.sum(A[i, 0], axis=1)),
    ),
]


@pytest.mark.parametrize(("kind", "words", "act"), WRONG, ids=[words for _, words, _ in WRONG])
def test_a_mistake_says_what_is_wrong_and_what_to_do(
    no_answer: loopwright.Client, kind: type[Exception], words: str, act: Act
) -> None:
    with pytest.raises(kind) as caught:
        act(no_answer)
    assert words in str(caught.value)


def test_a_number_of_numpy_is_a_number() -> None:
    half = np.float32(0.5)
    B = te.compute((4,), lambda i: half * A[i, 0] + A[i, 1] * half - np.int64(1), name="B")
    func = te.create_prim_func([A, B])
    a = np.arange(16, dtype="float32").reshape(4, 4)
    b = np.empty(4, "float32")
    lw.build(func)(a, b)
    np.testing.assert_array_equal(b, 0.5 * a[:, 0] + 0.5 * a[:, 1] - 1)


def test_each_function_that_is_named_instead_of_numpys_exists() -> None:
    for theirs, ours in FUNCTIONS.items():
        assert isinstance(getattr(np, theirs), np.ufunc), theirs
        assert callable(getattr(te, ours)), ours


@pytest.mark.parametrize(
    "act",
    [
        lambda c: c.health(),
        lambda c: c.tune("relu:8"),
        lambda c: list(c.jobs()),
        lambda c: c.kernel("relu:8"),
        lambda c: c.job(JOB).read(),
    ],
)
def test_a_closed_client_says_that_it_was_closed(act: Act) -> None:
    with lw.Client("http://127.0.0.1:9", attempts=1) as client:
        pass
    with pytest.raises(lw.ClientClosedError, match=r"http://127\.0\.0\.1:9 is closed: create anot"):
        act(client)


def test_the_wrong_protocol_is_answered_with_the_other(server: Server) -> None:
    secure = server.url.replace("http:", "https:")
    with (
        lw.Client(secure, attempts=1) as client,
        pytest.raises(lw.ServerUnreachableError) as caught,
    ):
        client.health()
    assert str(caught.value).endswith(f"try {server.url}")


def test_the_address_of_the_api_is_that_of_its_server(server: Server) -> None:
    with lw.Client(f"{server.url}/api/v1/") as client:
        assert (client.url, client.health().status) == (server.url, "ok")


@pytest.mark.parametrize(
    ("returned", "words"),
    [("draft", "so return [draft]"), ("None", "returned None: expected a list of drafts")],
)
def test_a_rule_that_returns_no_list_says_what_to_return(returned: str, words: str) -> None:
    rule: Any = eval(f"lambda draft: {returned}")
    rule.__name__ = "mine"
    lw.schedule_rule(rule)
    try:
        with pytest.raises(lw.ScheduleRuleError) as caught:
            lw.design_space(FUNC)
    finally:
        lw.remove_schedule_rule("mine")
    assert "mine" in str(caught.value)
    assert words in str(caught.value)
