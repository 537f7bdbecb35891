"""The dashboard: its files, and its page at every address without a route."""

from __future__ import annotations

import shlex
from importlib.resources import files
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

BUILT = Path(str(files("service"))) / "dashboard"
HOW_TO_BUILD = f"make -C {shlex.quote(str(BUILT.parents[1]))} dashboard"
"""The command that builds the pages of a source tree; an installed package has them."""

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_ASSETS = "/assets/"
_API = "/api"
_ICON = "/icon.svg"
_ROBOTS = "User-agent: *\nDisallow: /\n"
_ADVICE = {
    "/healthz": "the probes are /livez and /readyz",
    "/health": "the probes are /livez and /readyz, and /api/v1/health shows the state of each part",
    "/ping": "the probes are /livez and /readyz",
    "/docs": "/api/v1/openapi.json and docs/rest.md describe the API",
    "/redoc": "/api/v1/openapi.json and docs/rest.md describe the API",
    "/openapi.json": "/api/v1/openapi.json describes the API",
    "/swagger.json": "/api/v1/openapi.json describes the API",
}
"""Addresses that other services have, and the equivalent addresses here."""
_MISSING = """<!doctype html><html lang="en"><title>Loopwright</title>
<h1>The dashboard was not built</h1>
<p>The API works. To see the dashboard, run <code>make dashboard</code> in the source tree that the
server runs from, and reload this page.</p>"""


def is_built(built: Path = BUILT) -> bool:
    """Return whether the dashboard was built."""
    return (built / "index.html").exists()


class Pages:
    """Answers requests without a route, as the default of a router.

    Args:
        built: The output folder of the dashboard's build.
    """

    def __init__(self, built: Path = BUILT) -> None:
        self._built = built
        self._files = _files(built)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it with 404."""
        path = scope.get("path", "")
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
            raise HTTPException(404)
        await self._answer(path)(scope, receive, send)

    def _answer(self, path: str) -> Response:
        if path == "/robots.txt":
            return PlainTextResponse(_ROBOTS)
        if path == "/favicon.ico":
            path = _ICON
        if path in _ADVICE:
            raise HTTPException(404, f"there is nothing at {path}: {_ADVICE[path]}")
        if path not in self._files and (path.startswith(_ASSETS) or not self._files):
            self._files = _files(self._built)  # the pages may have been built since the start
        file = self._files.get(path)
        if file is None and _is_no_page(path):
            raise HTTPException(404)
        # The page routes its own addresses.
        file = file or self._files.get("/index.html")
        if file is None:
            return HTMLResponse(_MISSING, 503, headers=_HEADERS)
        return FileResponse(file, headers=_HEADERS | _caching(path))


def _files(built: Path) -> dict[str, Path]:
    """Return the files by address: no other address can reach a file."""
    return {f"/{file.relative_to(built).as_posix()}": file for file in built.rglob("*.*")}


def _is_no_page(path: str) -> bool:
    """Return whether an address cannot be a page: it has the form of a file name."""
    if path == _API or path.startswith((f"{_API}/", _ASSETS)):
        return True
    return "." in path.rpartition("/")[2]


def _caching(path: str) -> dict[str, str]:
    # File names in assets/ contain a hash of the content.
    is_hashed = path.startswith(_ASSETS)
    return {
        "Cache-Control": "public, max-age=31536000, immutable" if is_hashed else "no-cache",
    }
