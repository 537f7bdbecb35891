"""`loopwright export` and `import`: records go from a server to a database and back."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from examples.serving import Server
from tests.public.cli.commands import OPERATOR, TARGET, run


def test_records_go_from_a_server_to_a_database_and_back(
    server: Server, job: str, tmp_path: Path
) -> None:
    file, db = tmp_path / "records.jsonl", f"sqlite:///{tmp_path}/other.db"
    assert run("export", str(file), "--job", job, server=server).exit_code == 0
    added = run("import", str(file), "--db", db, "--json")
    assert added.exit_code == 0, added.stderr
    assert json.loads(added.stdout)["trials"] == 4
    piped = run("export", "-", "--db", db, "--workload", OPERATOR, "--target", TARGET)
    assert _measured_lines(piped.stdout_bytes) == _measured_lines(file.read_bytes())
    sent = run("export", "-", "--job", job, server=server)
    assert _measured_lines(sent.stdout_bytes) == _measured_lines(file.read_bytes())
    again = run("import", "-", "--json", server=server, stdin=piped.stdout_bytes)
    assert again.exit_code == 0, again.stderr
    assert set(json.loads(again.stdout).values()) == {0}
    shown = run("import", str(file), server=server)
    assert "added 0 job(s), 0 trial(s)" in shown.stdout


def _measured_lines(records: bytes) -> list[bytes]:
    """The lines after the header, without the peak of the CPU.

    A worker measures the peak when it is idle, so a second export may hold it and the first not.
    """
    return [re.sub(rb'"peak_flops":[^,}]+', b"", line) for line in records.splitlines()[1:]]


def test_records_may_be_gzipped(server: Server, job: str, tmp_path: Path) -> None:
    plain, packed = tmp_path / "records.jsonl", tmp_path / "records.jsonl.gz"
    for file in (plain, packed):
        assert run("export", str(file), "--job", job, server=server).exit_code == 0
    unpacked = gzip.decompress(packed.read_bytes())
    assert unpacked.splitlines()[1:] == plain.read_bytes().splitlines()[1:]
    for number, stdin in enumerate([None, packed.read_bytes()]):
        db = f"sqlite:///{tmp_path}/{number}.db"
        added = run("import", "-" if stdin else str(packed), "--db", db, "--json", stdin=stdin)
        assert added.exit_code == 0, added.stderr
        assert json.loads(added.stdout)["trials"] == 4
    packed.write_bytes(packed.read_bytes()[:-100])
    refused = run("import", str(packed), server=server)
    assert refused.exit_code == 2
    assert "is gzipped and cannot be unpacked" in " ".join(refused.stderr.split())


def test_an_export_replaces_no_device_or_link(server: Server, job: str, tmp_path: Path) -> None:
    pipe, file, link = tmp_path / "pipe", tmp_path / "file", tmp_path / "link"
    os.mkfifo(pipe)
    refused = run("export", str(pipe), "--job", job, server=server)
    assert refused.exit_code == 2
    assert "not a regular file" in refused.stderr
    assert pipe.is_fifo()
    link.symlink_to(file)
    assert run("export", str(link), "--job", job, server=server).exit_code == 0
    assert link.is_symlink()
    assert file.read_bytes()


def test_a_reader_that_has_enough_ends_an_export_in_silence(server: Server, job: str) -> None:
    ran = subprocess.run(
        f"{sys.executable} -m loopwright export - --job {job} --url {server.url} | head -c 10",
        shell=True,
        capture_output=True,
        check=True,
    )
    assert (len(ran.stdout), ran.stderr) == (10, b"")
