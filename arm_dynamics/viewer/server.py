"""HTTP headers of the page: who may frame it, and what it may load and run; size of messages.

Messages of a browser: one that no control of the page sends is ignored, with a warning.

A viser server that keeps to this machine: no share tunnel, no foreign web page.
"""

from __future__ import annotations

import contextlib
import logging
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from ipaddress import ip_address
from math import isfinite
from typing import Any
from urllib.parse import urlsplit

from arm_dynamics.core.errors import ConfigError, InvalidValue
from arm_dynamics.viewer.drawing import MISSING

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
MAX_MESSAGE_SIZE = 64 * 1024
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
        return serve(
            *arguments, **{**options, "process_response": _add, "max_size": MAX_MESSAGE_SIZE}
        )

    module.serve = bounded
    try:
        yield
    finally:
        module.serve = serve


def _add(_connection: Any, request: Any, response: Any) -> None:
    for name, value in FIXED.items():
        response.headers[name] = value
    response.headers["Content-Security-Policy"] = policy(request.headers.get("Host"))


LOG = logging.getLogger(__name__)
MAX_TEXT_LENGTH = 100
"""Characters of a text field."""


def guard_inputs(server: Any) -> None:
    """Let viser have those updates of its inputs only that ``fault`` finds nothing wrong with.

    viser itself sets whatever attribute of a control a browser names to whatever value it sends.
    """
    update: Any = import_module("viser._messages").GuiUpdateMessage
    gui, interface = server.gui, server.gui._websock_interface
    (handle,) = interface._incoming_handlers[update]

    async def checked(client: Any, message: Any) -> None:
        known = gui._gui_input_handle_from_uuid.get(message.uuid)
        if known is None:
            return  # one of a dialog, which has a handler of its own, or no longer there
        found = fault(known._impl, message.updates)
        if found:
            LOG.warning("a browser sent a value that is rejected: %s", found)
        else:
            await handle(client, message)

    interface.unregister_handler(update, handle)
    interface.register_handler(update, checked)


def fault(control: Any, updates: Any) -> str:
    """Return what is wrong with ``updates`` of viser's ``control``; "" for nothing.

    Numbers must be finite; a text is at most LONGEST characters; an option is one of those
    offered. A number beyond a slider's range passes, and is clamped where it is read.
    """
    if not isinstance(updates, dict) or set(updates) != {"value"}:
        return "expected the value of a control and nothing else"
    value, present = updates["value"], control.value
    options = getattr(control.props, "options", None)
    if options is not None and value not in options:
        return "not one of the options"
    if isinstance(present, tuple):
        if not isinstance(value, list | tuple) or len(value) != len(present):
            return f"expected {len(present)} values"
        return next(filter(None, map(_fault, value, present)), "")
    return _fault(value, present)


def _fault(value: Any, present: Any) -> str:
    if isinstance(present, bool):
        return "" if isinstance(value, bool) else "expected true or false"
    if isinstance(present, int | float):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return "" if number and isfinite(value) else "expected a finite number"
    if isinstance(present, str):
        text = isinstance(value, str) and len(value) <= MAX_TEXT_LENGTH
        return "" if text else f"expected a text of at most {MAX_TEXT_LENGTH} characters"
    return "this control has no value to set"


def open_server(title: str, host: str, port: int) -> Any:
    """Return a running viser server bound to ``host``; its ``get_port()`` is the true port.

    viser takes the next free port when ``port`` is busy. Raises ConfigError without viser,
    InvalidValue for a host or port that cannot be bound.
    """
    try:
        viser = import_module("viser")
    except ImportError as error:
        raise ConfigError(MISSING) from error
    _check_address(host, port)
    # Any browser may ask for a public tunnel; the handler looks the method up here.
    private = type("PrivateServer", (viser.ViserServer,), {"request_share_url": _refuse_share})
    with quiet(), served_with_headers():
        server = private(host=host, port=port, label=title, verbose=False)
    server.gui.configure_theme(
        dark_mode=True, show_logo=False, show_share_button=False, control_width="large"
    )
    server.gui.main_panel.dock_right()
    guard_inputs(server)
    _refuse_foreign_pages(server, host)
    if port not in (0, server.get_port()):
        LOG.warning("port %d is busy, the page is on port %d", port, server.get_port())
    return server


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep viser's banners off the terminal: the caller prints the address itself."""
    console = import_module("rich").get_console()
    before, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = before


def is_loopback(host: str) -> bool:
    """Tell whether ``host`` names this machine's loopback."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def may_connect(origin: str | None, asked_host: str | None, bound_host: str) -> bool:
    """Return whether a page from ``origin`` may open a connection.

    Only the page that this server served: same host and port, as the browser was asked for. A
    server on the loopback accepts no other name of the host, or a foreign name that resolves to
    127.0.0.1 would do. Programs other than browsers send no origin.
    """
    if origin is None:
        return True
    page = urlsplit(origin)
    if page.netloc != asked_host:
        return False
    return not is_loopback(bound_host) or is_loopback(page.hostname or "")


def _check_address(host: str, port: int) -> None:
    # viser would wait for ever on an address that cannot be bound.
    if not 0 <= port <= 65535:
        raise InvalidValue(f"port = {port}: 0 (any free port) to 65535 is allowed")
    try:
        with socket.create_server((host, 0)):
            pass
    except OSError as error:
        raise InvalidValue(
            f"host = '{host}': cannot be bound ({error}); use 127.0.0.1 or this machine's address"
        ) from error


def _refuse_share(_server: Any, verbose: bool = True) -> None:
    LOG.warning("a browser asked for a public share address: refused")


def _refuse_foreign_pages(server: Any, host: str) -> None:
    connections = server._websock_server

    async def check(client: Any) -> None:
        connection = connections._live_connections[client.client_id]
        headers = connection.request.headers
        origin = headers.get("Origin")
        if not may_connect(origin, headers.get("Host"), host):
            LOG.warning("a web page from %s tried to connect: refused", origin)
            await connection.close(1008, "pages from other hosts are refused")

    connections.on_client_connect(check)
    connections.disconnect_all_clients()  # whoever came before the check was there
