"""Take a picture of a page with a locally installed Chromium.

    python docs/screenshot.py URL OUT.png [--seconds 8] [--size 1280x800]

Wait until the page is drawn, write the picture and list the requests of the page to other hosts.
Exit code 1 means that Chromium is missing or that such a request occurred.
"""

from __future__ import annotations

import argparse
import base64
import itertools
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

from websockets.sync.client import ClientConnection, connect

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
OPTIONS = (
    "--headless=new", "--no-sandbox", "--enable-unsafe-swiftshader", "--use-angle=swiftshader",
    "--remote-debugging-port=0", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run", "--hide-scrollbars",
)  # fmt: skip
# Notifications, for example about software rendering, are hidden.
HIDE = "document.querySelectorAll('[class*=Notification-root]').forEach(e => e.remove())"


class Browser:
    """Page of a running Chromium, controlled with its debugging protocol."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._ids = itertools.count()
        self.requested: set[str] = set()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send one command and return its result."""
        number = next(self._ids)
        self._connection.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            message = json.loads(self._connection.recv(timeout=60))
            if message.get("id") == number:
                return dict(message.get("result", {}))
            self._note(message)

    def watch(self, seconds: float) -> None:
        """Let the page run for ``seconds``."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            try:
                self._note(json.loads(self._connection.recv(timeout=left)))
            except TimeoutError:
                return

    def _note(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        url = params.get("url") or params.get("request", {}).get("url", "")
        if message.get("method", "").startswith("Network.") and url:
            self.requested.add(url)


@contextmanager
def chromium(program: str, size: str) -> Iterator[Browser]:
    """Run a fresh Chromium with an empty profile, and yield its first page."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        window = f"--window-size={size.replace('x', ',')}"
        command = [program, *OPTIONS, window, f"--user-data-dir={profile}", "about:blank"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            with connect(_debugger(Path(profile)), max_size=None, proxy=None) as connection:
                yield Browser(connection)
        finally:
            process.terminate()
            process.wait(10)


def _debugger(profile: Path) -> str:
    note = profile / "DevToolsActivePort"
    for _ in range(300):
        if note.exists() and note.read_text():
            port = note.read_text().split()[0]
            with urlopen(f"http://127.0.0.1:{port}/json/list") as answer:
                pages = [t for t in json.load(answer) if t["type"] == "page"]
            if pages:
                return str(pages[0]["webSocketDebuggerUrl"])
        time.sleep(0.1)
    raise TimeoutError("chromium did not start within 30 s")


def foreign(requested: set[str], url: str) -> list[str]:
    """Return the requested addresses that are not on the host and port of ``url``."""
    home = urlsplit(url).netloc
    inner = ("data", "blob", "about")
    return sorted(
        r for r in requested if urlsplit(r).scheme not in inner and urlsplit(r).netloc != home
    )


def take(program: str, url: str, out: Path, seconds: float, size: str) -> list[str]:
    """Write a picture of ``url`` to ``out``; return the requested foreign addresses."""
    width, height = map(int, size.split("x"))
    with chromium(program, size) as browser:
        browser.call("Network.enable")
        browser.call("Page.enable")
        browser.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        failure = browser.call("Page.navigate", url=url).get("errorText")
        if failure:
            raise SystemExit(f"{url}: {failure}")
        browser.watch(seconds)
        browser.call("Runtime.evaluate", expression=HIDE)
        picture = browser.call("Page.captureScreenshot", format="png")
        out.write_bytes(base64.b64decode(picture["data"]))
        return foreign(browser.requested, url)


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("url")
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=8.0, help="to wait before the picture")
    parser.add_argument("--size", default="1280x800", help="of the window, in pixels")
    args = parser.parse_args()
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        print(f"no Chromium found ({', '.join(BROWSERS)}): install one, for example "
              "'apt-get install chromium'", file=sys.stderr)  # fmt: skip
        return 1
    outside = take(program, args.url, args.out, args.seconds, args.size)
    for address in outside:
        print(f"request to another host: {address}", file=sys.stderr)
    print(f"{args.out}: {args.out.stat().st_size} bytes, {len(outside)} outside requests")
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
