"""`loopwright import`: files that are refused."""

from __future__ import annotations

from pathlib import Path

from examples.serving import Server
from tests.public.cli.commands import run


def test_a_wrong_file_is_refused_with_its_line(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "wrong.jsonl"
    file.write_text('{"kind": "job"}\n')
    for where in (("--db", f"sqlite:///{tmp_path}/x.db"), ("--url", server.url)):
        ran = run("import", str(file), *where)
        assert ran.exit_code == 2
        assert "line 1: " in ran.stderr
