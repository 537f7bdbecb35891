"""Write `src/api/schema.d.ts`, the types of the REST API, from the service as it is.

With `--check` nothing is written, and the exit status tells whether the file is as it should be.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from npm import SOURCE, environment

from service.http.app import create_app
from service.http.dependencies import Dependencies
from service.store.database.database import open_database

SCHEMA = SOURCE / "src" / "api" / "schema.d.ts"
_COMMAND = Path(SOURCE, "node_modules", ".bin", "openapi-typescript")


def generate() -> str:
    """Return the types of the API."""
    with tempfile.TemporaryDirectory() as folder:
        database = open_database(f"sqlite:///{folder}/empty.db")
        document = Path(folder, "openapi.json")
        document.write_text(
            json.dumps(create_app(Dependencies(database)).openapi()), encoding="utf-8"
        )
        database.close()
        made = Path(folder, "schema.d.ts")
        subprocess.run(
            [_COMMAND, document, "--default-non-nullable=false", "--output", made],
            env=environment(),
            check=True,
            stdout=subprocess.DEVNULL,
        )
        return made.read_text(encoding="utf-8")


if __name__ == "__main__":
    text = generate()
    if "--check" not in sys.argv:
        SCHEMA.write_text(text, encoding="utf-8")
    elif SCHEMA.read_text(encoding="utf-8") != text:
        sys.exit(f"error: {SCHEMA} is not what the API says: run python {sys.argv[0]}")
