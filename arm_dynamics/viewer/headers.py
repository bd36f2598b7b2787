"""HTTP headers of the page: who may frame it, and what it may load and run; size of messages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

FIXED = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
POLICY = (
    "default-src 'none'",
    # One self-contained file: it unpacks itself, and draws and decodes in workers of its own.
    "script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval' blob:",
    "script-src-attr 'none'",
    "worker-src 'self' blob:",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data: blob:",
    "font-src 'self' data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
)
LARGEST = 64 * 1024
"""Bytes of a browser's message; a camera's place takes some 300."""
HOST = re.compile(r"[A-Za-z0-9.-]+(:\d+)?|\[[0-9A-Fa-f:.]+\](:\d+)?")


def policy(host: str | None) -> str:
    """Return the Content-Security-Policy of a page that was requested from ``host``."""
    sockets = f" ws://{host} wss://{host}" if host and HOST.fullmatch(host) else ""
    return "; ".join((*POLICY, f"connect-src 'self' data: blob:{sockets}"))


@contextmanager
def served_with_headers() -> Iterator[None]:
    """Have a viser server that starts in the body answer with these headers.

    It closes connections that send messages above LARGEST. viser names no place for either: its
    call of ``websockets`` gets them here.
    """
    module: Any = import_module("websockets.asyncio.server")
    serve = module.serve

    def bounded(*arguments: Any, **options: Any) -> Any:
        return serve(*arguments, **{**options, "process_response": _add, "max_size": LARGEST})

    module.serve = bounded
    try:
        yield
    finally:
        module.serve = serve


def _add(_connection: Any, request: Any, response: Any) -> None:
    for name, value in FIXED.items():
        response.headers[name] = value
    response.headers["Content-Security-Policy"] = policy(request.headers.get("Host"))
