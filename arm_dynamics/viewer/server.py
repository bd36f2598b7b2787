"""Protected viser server of the page.

Its HTTP headers restrict framing, loading and scripts. Oversized messages close the connection,
invalid values of controls are ignored with a warning. Public tunnels and connections from pages of
other hosts are rejected. Updates of other threads never lose their wake-up.
"""

from __future__ import annotations

import asyncio
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
    # One self-contained file, which unpacks itself, and draws and decodes in its workers.
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
"""Largest message of a browser [byte]; a camera pose has about 300."""
CONNECTIONS = logging.getLogger("websockets.server.arm_dynamics")
"""Log of connections, without the traceback of each one that ends before its request: browsers
open connections in advance."""
CONNECTIONS.addFilter(lambda record: record.msg != "opening handshake failed")
HOST = re.compile(r"[A-Za-z0-9.-]+(:\d+)?|\[[0-9A-Fa-f:.]+\](:\d+)?")


def policy(host: str | None) -> str:
    """Return the Content-Security-Policy of a page that was requested from ``host``."""
    sockets = f" ws://{host} wss://{host}" if host and HOST.fullmatch(host) else ""
    return "; ".join((*POLICY, f"connect-src 'self' data: blob:{sockets}"))


@contextmanager
def served_with_headers() -> Iterator[None]:
    """Add headers, MAX_MESSAGE_SIZE and CONNECTIONS to a viser server started in the context.

    viser has no parameters for them, so its call of ``websockets`` is replaced during this time.
    """
    module: Any = import_module("websockets.asyncio.server")
    serve = module.serve

    def add_headers(_connection: Any, request: Any, response: Any) -> None:
        for name, value in FIXED.items():
            response.headers[name] = value
        response.headers["Content-Security-Policy"] = policy(request.headers.get("Host"))

    def bounded(*arguments: Any, **options: Any) -> Any:
        limits = {"process_response": add_headers, "max_size": MAX_MESSAGE_SIZE}
        return serve(*arguments, **{**options, **limits, "logger": CONNECTIONS})

    module.serve = bounded
    try:
        yield
    finally:
        module.serve = serve


class LoopEvent(asyncio.Event):
    """Event that is set in the thread of its event loop only.

    viser sets the event of a new message in the thread of the update and in that of the loop. The
    first may fall between a waiter's look at the value and its entry in the list of waiters: the
    event is then set, no later ``set`` wakes the waiter, and the page is frozen.
    """

    def set(self) -> None:
        """Wake all waiters; without effect in a thread that runs no event loop."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        super().set()


def use_loop_events() -> None:
    """Let the message buffers of viser, also those of later connections, wait for a LoopEvent."""
    base: Any = import_module("viser.infra._async_message_buffer").AsyncMessageBuffer
    infra: Any = import_module("viser.infra._infra")

    def initialize(self: Any, *arguments: Any, **options: Any) -> None:
        base.__init__(self, *arguments, **options, message_event=LoopEvent())

    infra.AsyncMessageBuffer = type("MessageBuffer", (base,), {"__init__": initialize})


LOG = logging.getLogger(__name__)
MAX_TEXT_LENGTH = 100
"""Largest number of characters of a text field."""


def guard_inputs(server: Any) -> None:
    """Pass only valid updates of controls to viser, as checked by ``fault``.

    Without this check a browser could set any attribute of a control to any value.
    """
    update: Any = import_module("viser._messages").GuiUpdateMessage
    gui, interface = server.gui, server.gui._websock_interface
    (handle,) = interface._incoming_handlers[update]

    async def checked(client: Any, message: Any) -> None:
        control = gui._gui_input_handle_from_uuid.get(message.uuid)
        if control is None:
            return  # a control of a dialog, which has a separate handler, or a removed one
        problem = fault(control._impl, message.updates)
        if problem:
            LOG.warning("value of a browser rejected: %s", problem)
        else:
            await handle(client, message)

    interface.unregister_handler(update, handle)
    interface.register_handler(update, checked)


def fault(control: Any, updates: Any) -> str:
    """Return why ``updates`` of a viser control are invalid; "" if they are valid.

    A number must be finite, a text at most MAX_TEXT_LENGTH characters long, an option one of those
    of the control. A number beyond the range of a slider is valid: reading it clamps it.
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
    """Start a viser server.

    Parameters
    ----------
    title : str
        Title of the page.
    host : str
        Address to which the server is bound.
    port : int
        Port; the next free one if it is busy, 0 for any.

    Returns
    -------
    viser.ViserServer
        The running server; ``get_port()`` returns the port in use.

    Raises
    ------
    ConfigError
        If viser is missing.
    InvalidValue
        If the host or port cannot be bound.

    """
    try:
        viser = import_module("viser")
    except ImportError as error:
        raise ConfigError(MISSING) from error
    _check_address(host, port)

    def reject_tunnel(_server: Any, verbose: bool = True) -> None:
        LOG.warning("request of a browser for a public address rejected")

    # Any browser can request a public tunnel; viser's handler calls this method.
    private = type("PrivateServer", (viser.ViserServer,), {"request_share_url": reject_tunnel})
    use_loop_events()
    with quiet(), served_with_headers():
        server = private(host=host, port=port, label=title, verbose=False)
    server.gui.configure_theme(
        dark_mode=True, show_logo=False, show_share_button=False, control_width="large"
    )
    server.gui.main_panel.dock_right()
    guard_inputs(server)
    _reject_foreign_pages(server, host)
    if port not in (0, server.get_port()):
        LOG.warning("port %d is busy, the page is on port %d", port, server.get_port())
    return server


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress viser's banners on the terminal: the caller prints the address."""
    console = import_module("rich").get_console()
    before, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = before


def is_loopback(host: str) -> bool:
    """Return whether ``host`` is the loopback of this machine."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def may_connect(origin: str | None, requested_host: str | None, bound_host: str) -> bool:
    """Return whether a page from ``origin`` may open a connection.

    Only a page of this server may: its origin has the host and port of the request. A server on
    the loopback also requires a loopback name, because a foreign name can resolve to 127.0.0.1.
    Programs other than browsers send no origin.
    """
    if origin is None:
        return True
    page = urlsplit(origin)
    if page.netloc != requested_host:
        return False
    return not is_loopback(bound_host) or is_loopback(page.hostname or "")


def _check_address(host: str, port: int) -> None:
    """Raise InvalidValue for an address that cannot be bound, on which viser would never return."""
    if not 0 <= port <= 65535:
        raise InvalidValue(f"port = {port}; expected 0 (any free port) to 65535")
    try:
        with socket.create_server((host, 0)):
            pass
    except OSError as error:
        raise InvalidValue(
            f"host = '{host}' ({error}); expected 127.0.0.1 or an address of this machine"
        ) from error


def _reject_foreign_pages(server: Any, host: str) -> None:
    """Close each connection whose page was not served by this server."""
    connections = server._websock_server

    async def check(client: Any) -> None:
        connection = connections._live_connections[client.client_id]
        headers = connection.request.headers
        origin = headers.get("Origin")
        if not may_connect(origin, headers.get("Host"), host):
            LOG.warning("connection of a web page from %s rejected", origin)
            await connection.close(1008, "pages from other hosts are rejected")

    connections.on_client_connect(check)
    connections.disconnect_all_clients()  # clients that connected before this check
