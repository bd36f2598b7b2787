"""Cost of the page: its frames, the loop with it, and memory over time.

    python benchmarks/page.py [--seconds 20] [--browsers 0 1 2] [--minutes 0] [--chromium]

``arm-dynamics sim --realtime`` without ROS runs with some browsers. A row has the real-time factor,
the missed deadlines of the loop, the processor time of the simulation, and the pictures per second
of each browser. With ``--minutes`` one browser stays open, and each minute has a row with the
memory of the simulation and of the browser's page. Exit code 1 means less than FRAMES pictures per
second, or growth of memory above LEAK. A browser is a WebSocket client, or Chromium with
``--chromium``, which draws in software.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from threading import Event, Thread

from machine import machine

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "test"))

from browser import Client  # noqa: E402 - tests are not an installed package
from chromium import PROGRAM, chromium  # noqa: E402

FRAMES, LEAK = 25.0, 8.0
"""Smallest number of pictures per second, and largest growth of memory [MiB]."""
WITHOUT_ROS = (
    "import sys; sys.modules['rclpy'] = None; from arm_dynamics.cli.start import main; main()"
)
LINE = re.compile(r"t +(\d+\.\d+) s  max error")
LATE = re.compile(r"(\d+) late")
COUNT_FRAMES = "window.frames_drawn = 0; (function f() {window.frames_drawn++;"
COUNT_FRAMES += "requestAnimationFrame(f)})(); 0"


class Run:
    """Simulation in another process."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "output"
        command = [sys.executable, "-c", WITHOUT_ROS, "sim", "--realtime", "--port", "0"]
        with self._file.open("w") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        self.url = self._wait(re.compile(r"shown at (http://\S+)"))[1]
        self._wait(LINE)

    def _wait(self, pattern: re.Pattern[str]) -> re.Match[str]:
        while not (found := pattern.search(self._file.read_text())):
            if self.process.poll() is not None:
                raise SystemExit(self._file.read_text())
            time.sleep(0.1)
        return found

    @property
    def simulated(self) -> float:
        """Simulated time [s] of the last status line."""
        return float(LINE.findall(self._file.read_text())[-1])

    @property
    def late(self) -> int:
        """Missed deadlines up to the last status line."""
        return int((LATE.findall(self._file.read_text()) or ["0"])[-1])

    @property
    def processor(self) -> float:
        """Processor time [s]."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def resident(self) -> float:
        """Memory [MiB]."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


class Watcher:
    """WebSocket client that counts the pictures it receives: messages that move links."""

    def __init__(self, url: str, stack: ExitStack) -> None:
        self._client, self._end, self._count = Client(url), Event(), 0
        thread = Thread(target=self._receive, daemon=True)
        thread.start()
        stack.callback(self._client._socket.close)
        stack.callback(self._end.set)

    def _receive(self) -> None:
        while not self._end.is_set():
            try:
                messages = self._client.receive(1.0)
            except TimeoutError:
                continue
            except Exception:  # closed
                return
            self._count += any(m["type"] == "SetOrientationMessage" for m in messages)

    def frames(self) -> int:
        """Return the number of pictures so far."""
        return self._count

    memory = float("nan")
    """Memory of the page [MiB]; not known."""


class ChromiumWatcher:
    """Chromium that counts its animation frames."""

    def __init__(self, url: str, stack: ExitStack) -> None:
        if PROGRAM is None:
            raise SystemExit("no Chromium found")
        self._browser = stack.enter_context(chromium(PROGRAM, "1280x800"))
        self._browser.call("Page.navigate", url=url)
        self._browser.call("Performance.enable")
        time.sleep(5.0)
        self._value(COUNT_FRAMES)

    def _value(self, expression: str) -> float:
        result = self._browser.call("Runtime.evaluate", expression=expression)
        return float(result["result"]["value"])

    def frames(self) -> int:
        """Return the number of pictures so far."""
        return int(self._value("window.frames_drawn"))

    @property
    def memory(self) -> float:
        """Memory of the page's scripts after a collection [MiB]."""
        self._browser.call("HeapProfiler.collectGarbage")
        metrics = self._browser.call("Performance.getMetrics")["metrics"]
        used = next(m["value"] for m in metrics if m["name"] == "JSHeapUsedSize")
        return float(used) / 2**20


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="of each row")
    parser.add_argument("--browsers", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--minutes", type=int, default=0, help="of the measurement of memory")
    parser.add_argument("--chromium", action="store_true")
    options = parser.parse_args()
    kind = ChromiumWatcher if options.chromium else Watcher
    print(machine(), flush=True)
    failed = False
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        run = Run(Path(folder))
        stack.callback(run.process.wait)
        stack.callback(run.process.kill)
        print("| browsers | real-time factor | late cycles | processor [%] | pictures per second |")
        print("|---|---|---|---|---|")
        for count in options.browsers:
            with ExitStack() as watchers:
                seen = [kind(run.url, watchers) for _ in range(count)]
                time.sleep(2.0)
                began, frames = time.monotonic(), [w.frames() for w in seen]
                before = run.simulated, run.late, run.processor
                time.sleep(options.seconds)
                wall = time.monotonic() - began
                rates = [(w.frames() - n) / wall for w, n in zip(seen, frames, strict=True)]
                fraction = (run.processor - before[2]) / wall
                failed = failed or any(rate < FRAMES for rate in rates)
                print(
                    f"| {count} | {(run.simulated - before[0]) / wall:.2f} | {run.late - before[1]}"
                    f" | {100 * fraction:.0f} | {', '.join(f'{rate:.1f}' for rate in rates)} |",
                    flush=True,
                )
        if options.minutes:
            watcher = kind(run.url, stack)
            print("\n| minute | simulation [MiB] | page [MiB] |\n|---|---|---|")
            grown = []
            for minute in range(options.minutes + 1):
                grown.append(run.resident)
                print(f"| {minute} | {grown[-1]:.1f} | {watcher.memory:.1f} |", flush=True)
                if minute < options.minutes:
                    time.sleep(60.0)
            failed = failed or grown[-1] - grown[min(1, len(grown) - 1)] > LEAK
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
