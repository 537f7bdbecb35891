"""Mutations of requests: of the method, the address, headers, the body, its type and its length."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from tests.fuzz_requests.known_requests import Request

Mutation = Callable[[Random, Request], Request]

METHODS = (
    b"GET POST PUT PATCH DELETE HEAD OPTIONS TRACE CONNECT PROPFIND PRI QUERY get G@T \xff"
).split()
PIECES: Sequence[bytes] = (
    b"%00", b"%ff", b"%2e%2e%2f", b"../", b"//", b"%", b"%zz", b"\xe2\x80\xa8", b"?", b"&", b"=",
    b"#", b";", b"*", b"'", b'"', b"\\", b" ", b"\t", b"\x00", b"%0d%0aX: y", b"a" * 3000,
    b"-1", b"0", b"9" * 40, b"1e999", b"NaN", b"true", b"%F0%9F%98%80", b"[]", b"{}",
    b"00000000-0000-0000-0000-000000000000",
)  # fmt: skip
HEADERS: Sequence[tuple[bytes, Sequence[bytes]]] = (
    (b"Content-Type", (b"text/plain", b"application/json; charset=utf-16", b"", b"a/b/c;;=")),
    (b"Content-Encoding", (b"gzip", b"br", b"identity", b"gzip, gzip")),
    (b"Accept-Encoding", (b"gzip", b"*;q=0", b"\xff")),
    (b"Authorization", (b"Bearer", b"Bearer  ", b"Basic eDp5", b"Bearer \xff", b"Bearer lw_x")),
    (b"If-None-Match", (b"*", b'W/"a", "b"', b'"' * 500, b",,,", b"\xff")),
    (b"If-Modified-Since", (b"yesterday",)),
    (b"Last-Event-ID", (b"0", b"now", b"-1", b"9" * 30, b"\xb2", b"1.5")),
    (b"Idempotency-Key", (b"key", b"", b"k" * 2000, b"\xe4\xb6", b"\x7f")),
    (b"X-Request-ID", (b"id", b"a b", b"i" * 200, b"\xff")),
    (b"Range", (b"bytes=0-10", b"bytes=-", b"bytes=5-1", b"lines=1-", b"bytes=0-1,3-4,6-")),
    (b"Expect", (b"100-continue", b"200-ok")),
    (b"Origin", (b"null", b"https://evil.example", b"http://127.0.0.1", b"http://[")),
    (b"Sec-Fetch-Site", (b"cross-site", b"same-origin", b"", b"\xff")),
    (b"Access-Control-Request-Method", (b"POST",)),
    (b"Host", (b"", b"evil.example", b"a" * 300, b"[::1", b"\xff")),
    (b"Cookie", (b"a=b; " * 100,)),
    (b"X-Forwarded-For", (b"1.2.3.4",)),
    (b"Upgrade", (b"websocket", b"h2c")),
    (b"", (b"no name",)),
    (b"X y", (b"a name with a space",)),
    (b"X-Many", (b"v" * 8000, b"v\x00w", b"v\rw", b"\x80\x81")),
)
EXTREMES: Sequence[Any] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, -(2**63) - 1, 10**400, 0.5, -0.0, 1e308,
    float("inf"), float("nan"), "", " ", "\0", "\ud800", "a" * 5000, "matmul:0,0,0",
    "matmul:9999999999,1,1", "matmul:-1,1,1", "cpu -mcpu=znver3 -num-cores=0", "cpu " * 300,
    "nearest", [], {}, [[]], {"": None}, [None] * 50, {"operator": "relu:64", "script": "x"},
    "relu:64:float99", "def", "@T.prim_func\ndef f(): pass", "é" * 100, "-1", "2026-01-01",
)  # fmt: skip


def mutated(rng: Random, known: Sequence[Request]) -> Request:
    """Return one of the requests with one to four mutations."""
    request = rng.choice(known)
    for _ in range(rng.choice((1, 1, 2, 3, 4))):
        request = rng.choice(MUTATIONS)(rng, request)
    return request


def other_method(rng: Random, request: Request) -> Request:
    """Ask by another method."""
    return replace(request, method=rng.choice(METHODS))


def other_address(rng: Random, request: Request) -> Request:
    """Put something into the address, take something out, or ask for a part of it twice."""
    target = request.target
    at = rng.randrange(len(target) + 1)
    match rng.randrange(5):
        case 0:
            target = target[:at] + rng.choice(PIECES) + target[at:]
        case 1:
            target = target[:at] + target[at + rng.randrange(1, 9) :]
        case 2:
            path, _, query = target.partition(b"?")
            target = path + b"?" + b"&".join([query] * rng.randrange(2, 6))
        case 3:
            path, _, query = target.partition(b"?")
            pairs = query.split(b"&") if query else [b"limit=1"]
            place = rng.randrange(len(pairs))
            name = pairs[place].partition(b"=")[0]
            pairs[place] = name + b"=" + rng.choice(PIECES)
            target = path + b"?" + b"&".join(pairs)
        case _:
            target = rng.choice((b"*", b"", b"http://a/livez", b"//x//", b"/" + b"a/" * 900, b"/%"))
    return replace(request, target=target)


def other_header(rng: Random, request: Request) -> Request:
    """Add a header, or several times the same one."""
    name, values = rng.choice(HEADERS)
    for _ in range(rng.choice((1, 1, 1, 2, 30))):
        request = request.with_header(name, rng.choice(values))
    return request


def without_header(rng: Random, request: Request) -> Request:
    """Leave out a header."""
    left = list(request.headers)
    if left:
        name, _ = left.pop(rng.randrange(len(left)))
        # Without its length a body is the beginning of another request.
        is_lie = name in {b"Content-Length", b"Connection"}
        return replace(request, headers=tuple(left), lies=request.lies or is_lie)
    return request


def other_length(rng: Random, request: Request) -> Request:
    """Announce another length, in another way."""
    length = rng.choice((b"0", b"1", b"-1", b"1e3", b"+5", b"9" * 25, b"10000000000", b"", b"5, 5"))
    headers = [pair for pair in request.headers if pair[0] != b"Content-Length"]
    headers.append((b"Content-Length", length))
    if rng.random() < 0.3:
        headers.append((b"Transfer-Encoding", rng.choice((b"chunked", b"gzip", b"chunked, x"))))
    return replace(request, headers=tuple(headers), lies=True)


def in_chunks(rng: Random, request: Request) -> Request:
    """Send the body in chunks, whose lengths may be wrong."""
    sizes = [rng.randrange(1, 400) for _ in range(5)]
    body, rest = b"", request.body
    is_lie = rng.random() < 0.3
    for size in sizes:
        piece, rest = rest[:size], rest[size:]
        said = rng.choice((b"-1", b"zz", b"ffffffffffffffff")) if is_lie else b"%x" % len(piece)
        if piece:
            body += said + b"\r\n" + piece + b"\r\n"
    body += (b"%x\r\n%s\r\n" % (len(rest), rest)) if rest else b""
    headers = [pair for pair in request.headers if pair[0] != b"Content-Length"]
    headers.append((b"Transfer-Encoding", b"chunked"))
    return replace(
        request, headers=tuple(headers), body=body + b"0\r\n\r\n", lies=request.lies or is_lie
    )


def other_bytes(rng: Random, request: Request) -> Request:
    """Change, leave out, repeat or add bytes of the body."""
    body = bytearray(request.body)
    for _ in range(rng.choice((1, 2, 5, 20))):
        at = rng.randrange(len(body) + 1)
        match rng.randrange(4):
            case 0:
                body[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                del body[at : at + rng.randrange(1, 20)]
            case 2:
                body[at:at] = body[at : at + rng.randrange(1, 60)]
            case _:
                body[at:at] = rng.choice(PIECES)
    return request.with_body(bytes(body))


def other_json(rng: Random, request: Request) -> Request:
    """Change, leave out or add a value of the body, wherever it is."""
    try:
        value = json.loads(request.body.splitlines()[0])
        for _ in range(rng.choice((1, 1, 2, 4))):
            value = _changed(rng, value)
        text = json.dumps(value)
    except (ValueError, IndexError, RecursionError):
        return other_bytes(rng, request)
    rest = request.body.splitlines(keepends=True)[1:]
    first = text.encode() + (b"\n" if rest else b"")
    return request.with_body(first + b"".join(rest))


def other_script(rng: Random, request: Request) -> Request:
    """Change the text of a program, by characters, words and lines."""
    try:
        value = json.loads(request.body)
        words = value["workload"]["script"].split(" ")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return other_json(rng, request)
    for _ in range(rng.choice((1, 2, 4))):
        at, other = rng.randrange(len(words)), rng.randrange(len(words))
        match rng.randrange(4):
            case 0:
                words[at] = words[other]
            case 1:
                words[at] = ""
            case 2:
                words[at:at] = words[other : other + 5]
            case _:
                words[at] += rng.choice(("\n", ")", "(", "**9**9", "'", "64", "T.axis", "\0", "é"))
    value["workload"]["script"] = " ".join(words)
    return request.with_body(json.dumps(value).encode())


def other_encoding(rng: Random, request: Request) -> Request:
    """Encode or compress the body otherwise."""
    text = request.body.decode("utf-8", "replace")
    encodings: Sequence[Callable[[], bytes]] = (
        lambda: text.encode("utf-16"),
        lambda: text.encode("utf-32"),
        lambda: b"\xef\xbb\xbf" + request.body,
        lambda: gzip.compress(request.body),
        lambda: zlib.compress(b"\0" * (1 << 20)),
        lambda: b"[" * 20_000,
        lambda: b'{"a":' * 20_000,
        lambda: b" " * 60_000 + request.body,
    )
    return request.with_body(rng.choice(encodings)())


def other_version(rng: Random, request: Request) -> Request:
    """Speak another version of HTTP, or none."""
    versions = (b"HTTP/1.0", b"HTTP/2.0", b"HTTP/0.9", b"HTTP/9.9", b"ICY", b"")
    return replace(request, version=rng.choice(versions), lies=True)


def cut_off(rng: Random, request: Request) -> Request:
    """End before the end."""
    wire = request.wire()
    head = wire[: rng.randrange(1, len(wire))]
    method, _, rest = head.partition(b" ")
    return replace(request, method=method, target=rest, headers=(), body=b"", lies=True)


MUTATIONS: Sequence[Mutation] = (
    other_method, other_address, other_address, other_header, other_header, without_header,
    other_length, in_chunks, other_bytes, other_bytes, other_json, other_json, other_json,
    other_script, other_script, other_encoding, other_version, cut_off,
)  # fmt: skip


def _changed(rng: Random, value: Any) -> Any:
    """Return a JSON value with a change at some place in it."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        name = rng.choice(list(value))
        match rng.randrange(6):
            case 0:
                return {other: value[other] for other in value if other != name}
            case 1:
                return {**value, rng.choice(("extra", "", "__proto__", "\ud800")): value[name]}
            case _:
                return {**value, name: _changed(rng, value[name])}
    if isinstance(value, list) and value and rng.random() < 0.7:
        place = rng.randrange(len(value))
        changed = _changed(rng, value[place])
        return [*value[:place], changed, *value[place + rng.randrange(2) :]]
    return rng.choice((*EXTREMES, [value], {"a": value}, str(value), [value] * 3))
