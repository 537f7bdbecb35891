"""Kernels that crash, remotes that vanish, clients that are not allowed: typed errors, and no more.

The device stays usable: a runner that listens serves the next client.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from compiler.backends.cpu.codegen.machine_code import compile_object
from compiler.remote.protocol import DeviceFailure, Kind, encode, read_frame
from loopwright import rpc
from loopwright.errors import InvalidAddressError
from tests.integration.compiler.remote.runners import runner_here
from tests.targets import here
from workers.engine import certificates

TOKEN = "a token of sixteen or more"
FAULTS = {
    "a wild write": "store i64 7, ptr inttoptr (i64 4096 to ptr)\n ret void",
    "an illegal instruction": "call void @llvm.trap()\n ret void",
    "an array's end": """%at = load ptr, ptr %args
 %beyond = getelementptr i8, ptr %at, i64 4096
 store i8 1, ptr %beyond
 ret void""",
}
ENDLESS = "br label %again\nagain:\n br label %again"


def _faulty(body: str) -> lw.Artifact:
    """Return a kernel of one array whose code is replaced."""
    text = f"declare void @llvm.trap()\ndefine void @lw_kernel(ptr %args) {{\nentry:\n {body}\n}}\n"
    kernel = lw.compile_kernel(lw.ops.relu(8), here())
    return replace(kernel, code=compile_object(text, here()))


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a runner that listens."""
    token = tmp_path_factory.mktemp("runner") / "token"
    token.write_text(f"{TOKEN}\n")
    command = [*runner_here(), "--listen", "0", "--token-file", str(token), "--memory", "16"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"tcp://{process.stdout.readline().split()[-1]}"
        process.terminate()


def _works(remote: rpc.Remote) -> None:
    relu = remote.load_module(lw.compile_kernel(lw.ops.relu(8), here()))
    x, y = remote.array(np.arange(-4, 4, dtype="float32")), remote.empty((8,))
    relu(x, y)
    np.testing.assert_array_equal(y.numpy(), np.maximum(np.arange(-4, 4), 0))


def _num_files() -> int:
    gc.collect()  # other tests left files to it
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("body", FAULTS.values(), ids=FAULTS.keys())
def test_a_kernel_that_crashes_ends_its_session_alone(address: str, body: str) -> None:
    before = _num_files()
    with rpc.connect(address, TOKEN) as remote:
        module = remote.load_module(_faulty(body))
        x, y = remote.empty((8,)), remote.empty((8,))
        with pytest.raises(rpc.RemoteFaultError, match="the kernel was ended by signal"):
            module(x, y)
        with pytest.raises(rpc.RemoteGoneError, match="the session is over: the kernel was ended"):
            y.numpy()
    assert _num_files() == before
    with rpc.connect(address, TOKEN) as remote:
        _works(remote)


def test_a_kernel_that_never_ends_passes_its_deadline(address: str) -> None:
    with rpc.connect(address, TOKEN) as remote:
        module = remote.load_module(_faulty(ENDLESS))
        with pytest.raises(rpc.RemoteFaultError, match="the deadline passed"):
            module(remote.empty((8,)), remote.empty((8,)), deadline_secs=0.3)
    with rpc.connect(address, TOKEN) as remote:
        _works(remote)


def test_a_client_without_the_token_is_refused(address: str) -> None:
    for token in ("", "wrong", TOKEN[:-1], f"{TOKEN}x", TOKEN * 2):
        with pytest.raises(rpc.RemoteRefusedError, match="the token is wrong"):
            rpc.connect(address, token)
    with rpc.connect(address, TOKEN) as remote:
        _works(remote)


def test_requests_before_the_token_are_refused(address: str) -> None:
    host, port = address.removeprefix("tcp://").split(":")
    with closing(socket.create_connection((host, int(port)))) as client:
        client.sendall(encode(Kind.RESERVE, 1, struct.pack("<QI", 8, 0)))
        header, body = read_frame(client.recv(4096))
    assert (header.kind, body[:4]) == (Kind.FAILED, b"\3\0\0\0")


def test_a_client_of_another_version_is_refused(address: str) -> None:
    host, port = address.removeprefix("tcp://").split(":")
    with closing(socket.create_connection((host, int(port)))) as client:
        client.sendall(encode(Kind.HELLO, 1, struct.pack("<I", 2) + TOKEN.encode()))
        header, body = read_frame(client.recv(4096))
        assert (header.kind, body[0]) == (Kind.FAILED, DeviceFailure.WRONG_VERSION)
        assert client.recv(1) == b""
    with rpc.connect(address, TOKEN) as remote:
        _works(remote)


def test_one_client_at_a_time_uses_the_device(address: str) -> None:
    with rpc.connect(address, TOKEN) as remote:
        with pytest.raises(rpc.RemoteRefusedError, match="another session uses the device"):
            rpc.connect(address, TOKEN)
        _works(remote)


def test_memory_beyond_the_limit_is_refused_and_comes_back(address: str) -> None:
    with rpc.connect(address, TOKEN) as remote:
        with pytest.raises(rpc.RemoteRefusedError, match="no memory is left under the limit"):
            remote.empty((17 << 20,), "uint8")
        for _ in range(6):
            remote.array(np.ones(5 << 20, "uint8"))
        held = [remote.empty((5 << 20,), "uint8") for _ in range(2)]
        with pytest.raises(rpc.RemoteRefusedError):
            remote.empty((7 << 20,), "uint8")
        held.clear()
        _works(remote)


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_remote_that_vanishes_is_an_error(signal_number: int, tmp_path: Path) -> None:
    before = _num_files()
    pid_file = tmp_path / "pid"
    script = f"echo $$ > {pid_file}; exec {runner_here()[-1]}"
    remote = rpc.connect(["sh", "-c", script])
    array = remote.array(np.zeros(100))
    os.kill(int(pid_file.read_text()), signal_number)
    if signal_number == signal.SIGSTOP:
        remote.session.reply_secs = 0.2
    with pytest.raises(rpc.RemoteGoneError, match=r"closed the connection|ended|answer in time"):
        array.numpy()
    with pytest.raises(rpc.RemoteGoneError, match="the session is over"):
        remote.empty((1,))
    remote.close()
    del array
    assert _num_files() == before


def test_a_program_that_is_no_runner_is_quoted() -> None:
    with pytest.raises(rpc.RemoteGoneError, match=r"exit code 5.*: no such board"):
        rpc.connect(["sh", "-c", "echo no such board >&2; exit 5"])
    with pytest.raises(rpc.RemoteGoneError, match="answered with no frame"):
        rpc.connect(["sh", "-c", "echo Welcome to the board, dear user; cat"])
    with pytest.raises(rpc.RemoteGoneError, match="/no/such/runner can't be started"):
        rpc.connect(["/no/such/runner"])


def test_no_runner_at_an_address_is_an_error() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(rpc.RemoteGoneError, match=r"no connection to 127\.0\.0\.1"):
        rpc.connect(f"tcp://127.0.0.1:{port}", TOKEN)


def _serve_tls(listener: ssl.SSLSocket, target: tuple[str, int]) -> None:
    """Pass the bytes of one client to a runner, as a proxy with TLS does."""
    client, _ = listener.accept()
    with closing(client), closing(socket.create_connection(target)) as server:
        back = threading.Thread(target=_copy, args=(server, client))
        back.start()
        _copy(client, server)
        server.shutdown(socket.SHUT_RDWR)
        back.join()


def _refuse_one(listener: ssl.SSLSocket) -> None:
    with pytest.raises(ssl.SSLError):
        listener.accept()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    while content := source.recv(1 << 16):
        sink.sendall(content)


def test_a_proxy_with_the_certificates_of_a_cluster_stands_before_it(
    address: str, tmp_path: Path
) -> None:
    folder, other = tmp_path / "cluster", tmp_path / "other"
    certificates.make(folder)
    certificates.make(other)
    host, port = address.removeprefix("tcp://").split(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(folder / "cluster.pem", folder / "cluster.key")
    context.load_verify_locations(folder / "cluster.pem")
    with closing(socket.create_server(("127.0.0.1", 0))) as plain:
        listener = context.wrap_socket(plain, server_side=True)
        url = f"tls://127.0.0.1:{listener.getsockname()[1]}"
        proxy = threading.Thread(target=_serve_tls, args=(listener, (host, int(port))))
        proxy.start()
        with rpc.connect(url, TOKEN, certificates=folder) as remote:
            _works(remote)
        proxy.join()
        refusing = threading.Thread(target=_refuse_one, args=(listener,))
        refusing.start()
        with pytest.raises(rpc.RemoteGoneError):
            rpc.connect(url, TOKEN, certificates=other)
        refusing.join()
        listener.close()
    with pytest.raises(InvalidAddressError, match="holds no certificate"):
        rpc.connect(url, TOKEN, certificates=tmp_path)
