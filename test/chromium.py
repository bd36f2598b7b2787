"""A tab of a real Chromium, used by mouse and keyboard."""

import shutil
import sys
import time
from contextlib import contextmanager
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
sys.path.append(str(DOCS))
from screenshot import BROWSERS, HIDE, chromium, foreign  # noqa: E402 - a script of docs/

PROGRAM = next(filter(None, map(shutil.which, BROWSERS)), None)
FIND = """(text => {
  const parts = [...document.querySelectorAll('button, label, input, div')];
  const found = parts.filter(e => e.children.length < 3 && e.innerText === text && e.clientWidth);
  const box = found.length ? found[found.length - 1].getBoundingClientRect() : null;
  return box && [box.x + box.width / 2, box.y + box.height / 2, box.width, box.height];
})"""


class Tab:
    """A page in Chromium."""

    def __init__(self, browser, url):
        self._browser, self.url = browser, url

    def size(self, width, height):
        self._browser.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    def value(self, expression):
        found = self._browser.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait_for(self, expression, seconds=60.0):
        """Return the first true value of a JavaScript expression."""
        end = time.monotonic() + seconds
        while not (found := self.value(expression)):
            assert time.monotonic() < end, f"{expression}; {self.value('document.body.innerText')}"
            self._browser.watch(0.1)
        return found

    def box(self, text):
        """Return center and size of the innermost element with this text [px]."""
        return self.wait_for(f"{FIND}({text!r})")

    def click(self, text):
        self.value(HIDE)
        self.click_at(*self.box(text)[:2])

    def click_at(self, x, y):
        self.mouse("mousePressed", x, y)
        self.mouse("mouseReleased", x, y)

    def mouse(self, kind, x, y):
        buttons = 0 if kind == "mouseReleased" else 1
        self._browser.call(
            "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=buttons,
            clickCount=1,
        )  # fmt: skip

    def reload(self):
        self._browser.call("Page.reload")
        self._browser.watch(0.5)

    def outside(self):
        """Return the requests to other hosts."""
        return foreign(self._browser.requested, self.url)


@contextmanager
def tab(url, width=1280, height=800):
    with chromium(PROGRAM, f"{width}x{height}") as browser:
        browser.call("Network.enable")
        browser.call("Page.enable")
        page = Tab(browser, url)
        page.size(width, height)
        browser.call("Page.navigate", url=url)
        yield page
