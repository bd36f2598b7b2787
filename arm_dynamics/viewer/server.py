"""Protected viser server of the page.

Requests under a foreign host name, from pages of other hosts, and without the token of a page with
controls get the status 403. HTTP headers restrict framing, loading and scripts. Oversized messages
close the connection, invalid values of controls are ignored with a warning. Public tunnels are
rejected. Updates of other threads never lose their wake-up.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from importlib import import_module
from ipaddress import ip_address
from math import isfinite
from secrets import compare_digest
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
)
FRAMES = {False: "'none'", True: "http://localhost:* http://127.0.0.1:* vscode-webview:"}
"""Pages that may frame this one: none, or those of notebooks on this machine."""
MAX_MESSAGE_SIZE = 64 * 1024
"""Largest message of a browser [byte]; a camera pose has about 300."""
CONNECTIONS = logging.getLogger("websockets.server.arm_dynamics")
"""Log of connections, without the traceback of each one that ends before its request: browsers
open connections in advance."""
CONNECTIONS.addFilter(lambda record: record.msg != "opening handshake failed")
HOST = re.compile(r"[A-Za-z0-9.-]+(:\d+)?|\[[0-9A-Fa-f:.]+\](:\d+)?")


def policy(host: str | None, *, embedded: bool = False) -> str:
    """Return the Content-Security-Policy of a page that was requested from ``host``."""
    sockets = f" ws://{host} wss://{host}" if host and HOST.fullmatch(host) else ""
    frames = f"frame-ancestors {FRAMES[embedded]}"
    return "; ".join((*POLICY, frames, f"connect-src 'self' data: blob:{sockets}"))


@contextmanager
def served_with_checks(host: str, token: str, *, embedded: bool) -> Iterator[None]:
    """Add checks of requests, headers and limits to a viser server started in the context.

    viser has no parameters for them, so its call of ``websockets`` is replaced during this time.
    """
    module: Any = import_module("websockets.asyncio.server")
    serve, logged = module.serve, set[str]()

    def add_headers(_connection: Any, request: Any, response: Any) -> None:
        for name, value in FIXED.items():
            response.headers[name] = value
        if embedded:
            del response.headers["X-Frame-Options"]  # which cannot name several hosts
        response.headers["Content-Security-Policy"] = policy(
            request.headers.get("Host"), embedded=embedded
        )

    def bounded(*arguments: Any, **options: Any) -> Any:
        serve_file = options["process_request"]

        def check(connection: Any, request: Any) -> Any:
            reason = rejection(request.headers, request.path, host, token)
            if reason:
                if reason not in logged and len(logged) < MAX_LOGGED:
                    logged.add(reason)
                    LOG.warning("request rejected: %s", reason)
                return connection.respond(HTTPStatus.FORBIDDEN, f"403: {reason}\n")
            if token:
                request.path = "/"
            return serve_file(connection, request)

        limits = {"process_response": add_headers, "max_size": MAX_MESSAGE_SIZE}
        checked = {**options, **limits, "process_request": check, "logger": CONNECTIONS}
        return serve(*arguments, **checked)

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


POSES = {
    "TransformControlsUpdateMessage": ("wxyz", "position"),
    "SceneNodeDragMessage": ("start_position", "end_position"),
}
"""Messages of a browser about the scene, with their vectors."""


def guard_scene(server: Any) -> None:
    """Pass only finite poses of handles and drags to viser; reject uploads of files."""
    messages: Any = import_module("viser._messages")
    interface = server.scene._websock_interface

    def guarded(handler: Any, names: tuple[str, ...]) -> Any:
        async def checked(client: Any, message: Any) -> None:
            numbers = [number for name in names for number in getattr(message, name)]
            if all(isinstance(x, int | float) and isfinite(x) for x in numbers):
                await handler(client, message)
            else:
                LOG.warning("pose of a browser rejected: expected numbers that are finite")

        return checked

    for name, vectors in POSES.items():
        kind = getattr(messages, name)
        for handler in tuple(interface._incoming_handlers[kind]):
            interface.unregister_handler(kind, handler)
            interface.register_handler(kind, guarded(handler, vectors))
    interface.unregister_handler(messages.FileTransferStartUpload)


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


def open_server(
    title: str, host: str, port: int, token: str = "", *, embedded: bool = False
) -> Any:
    """Start a viser server.

    Parameters
    ----------
    title : str
        Title of the page.
    host : str
        Address to which the server is bound.
    port : int
        Port; the next free one if it is busy, 0 for any.
    token : str
        Path of the page and of its connections; "" for a page without controls, at "/".
    embedded : bool
        Whether notebooks on this machine may frame the page.

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
    with quiet(), served_with_checks(host, token, embedded=embedded):
        server = private(host=host, port=port, label=title, verbose=False)
    configure_panel(server, dark=True)
    server.gui.main_panel.dock_right()
    guard_inputs(server)
    guard_scene(server)
    if port not in (0, server.get_port()):
        LOG.warning("port %d is busy, the page is on port %d", port, server.get_port())
    return server


def configure_panel(server: Any, *, dark: bool) -> None:
    """Set the theme of the panel, without links to other sites."""
    server.gui.configure_theme(
        dark_mode=dark, show_logo=False, show_share_button=False, control_width="large"
    )


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
    """Return whether a page from ``origin`` may send a request for ``requested_host``.

    Only a page of this server may: its origin has the host and port of the request. A server on
    the loopback also requires a loopback name, because a foreign name can resolve to 127.0.0.1.
    Programs other than browsers, and users who open an address, send no origin.
    """
    if not requested_host or not HOST.fullmatch(requested_host):
        return False
    if is_loopback(bound_host) and not is_loopback(urlsplit(f"//{requested_host}").hostname or ""):
        return False
    return origin is None or urlsplit(origin).netloc == requested_host


MAX_LOGGED = 20
"""Largest number of different reasons of rejected requests in the log."""


def rejection(headers: Any, path: str, bound_host: str, token: str) -> str:
    """Return why a request is rejected; "" if it is served.

    Parameters
    ----------
    headers : mapping of str to str
        HTTP headers of the request.
    path : str
        Path of the request.
    bound_host : str
        Address to which the server is bound.
    token : str
        Token of a page with controls, else "".

    """
    origin, host = headers.get("Origin"), headers.get("Host")
    if not may_connect(origin, host, bound_host):
        source = f"host {host}" if origin is None else f"web page from {origin}"
        return f"{source}: pages from other hosts are rejected"
    given = path.partition("?")[0].strip("/")
    if token and not compare_digest(given.encode(), token.encode()):
        return "wrong token: this page can move the arm; open the whole address that was printed"
    return ""


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
