"""A viser server that keeps to this machine: no share tunnel, no foreign web page."""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Iterator
from importlib import import_module
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from arm_dynamics.errors import ConfigError, InvalidValue
from arm_dynamics.viewer.guard import guard_inputs
from arm_dynamics.viewer.headers import served_with_headers
from arm_dynamics.viewer.urdf import MISSING

LOG = logging.getLogger(__name__)


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
