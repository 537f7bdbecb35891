"""Record the demo's jobs again: `python -m benchmarks.service.record_demo`.

Run it on an otherwise idle machine. The jobs of `service/demo/records.jsonl.xz` run again on a
server of their own, with the same workloads, budgets and seeds, and replace those records.
"""

from __future__ import annotations

import json
import lzma
import sys
import tempfile
from pathlib import Path
from typing import Any

import loopwright as lw
from examples.serving import serving

RECORDS = Path(__file__).parents[2] / "service" / "demo" / "records.jsonl.xz"
TARGET = "cpu -num-cores=1"


def read_lines(packed: bytes, kind: str) -> list[dict[str, Any]]:
    """Return the recorded lines of one kind."""
    lines = (json.loads(line) for line in lzma.decompress(packed).splitlines())
    return [line for line in lines if line["kind"] == kind]


def main() -> None:
    """Run the recorded jobs again, and store their measurements."""
    packed = RECORDS.read_bytes()
    scripts = {line["key"]: line["script"] for line in read_lines(packed, "workload")}
    with serving() as server, lw.Client(server.url) as client, tempfile.TemporaryDirectory() as d:
        for job in read_lines(packed, "job"):
            func = lw.parse(scripts[job["workload_key"]])
            budget = {name: job[name] for name in ("trials", "seed", "strategy")}
            best = client.tune(func, target=TARGET, **budget).wait()
            sys.stdout.write(f"{func.name}: {best}\n")
        exported = Path(d, "records.jsonl")
        client.export_records(exported)
        RECORDS.write_bytes(lzma.compress(exported.read_bytes(), preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    main()
