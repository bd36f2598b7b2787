"""Run the commands of an installed wheel: ``run_wheel.py FOLDER``, with the wheel's interpreter.

Fail unless the package is imported from its installation, and audit, simulation, page, plot and
identification work in the empty ``FOLDER``, without ROS and without the repository.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from importlib.metadata import requires
from importlib.util import find_spec
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

import msgspec
import viser
import zstandard
from websockets.sync.client import connect

import arm_dynamics

COMMAND = str(Path(sys.executable).with_name("arm-dynamics"))
ARM = "five_dof"
TIMEOUT = 900.0
"""Time [s] of a command and until the first motion: they compile in the idle time of the tests."""
MIN_FRAMES = 10
"""Required number of poses of moving links."""


def main(folder: Path) -> None:
    """Run all checks; raise SystemExit with the cause of a failure."""
    installed = Path(sys.prefix).resolve()
    if not Path(arm_dynamics.__file__).resolve().is_relative_to(installed):
        sys.exit(f"arm_dynamics = {arm_dynamics.__file__}; expected a path in {installed}")
    if find_spec("rclpy") is not None:
        sys.exit("rclpy is installed; expected an environment without ROS")
    folder.mkdir(parents=True)
    command(folder, "--version")
    command(folder, "audit", ARM, code=None)
    for words, library in ((("plot", "recorded"), "matplotlib"), (("record", "new"), "rosbags")):
        missing = command(folder, *words, code=2)
        if f"{library} is not installed" not in missing or "pip install" not in missing:
            sys.exit(f"{missing!r}; expected the missing library {library} and the remedy")
    page(folder)
    extras = [entry for extra in ("record", "plot") for entry in required(extra)]
    subprocess.run(["uv", "pip", "install", "-q", "--python", sys.executable, *extras], check=True)
    command(folder, "sim", ARM, "--headless", "--motion", "demo", "--duration", "6",
            "--record", "recorded")  # fmt: skip
    command(folder, "plot", "recorded", "--output", "figure.png")
    command(folder, "identify", ARM, "recorded", code=None)
    if not (folder / "figure.png").stat().st_size:
        sys.exit("figure.png is empty")


def required(extra: str) -> list[str]:
    """Return the requirements of an extra of this package."""
    entries = [re.split(r"\s*;\s*", entry) for entry in requires("arm_dynamics") or []]
    return [entry[0] for entry in entries if re.search(f"extra == .{extra}", entry[-1])]


def command(folder: Path, *words: str, code: int | None = 0) -> str:
    """Run ``arm-dynamics``; return its output; exit if its exit code is not ``code``."""
    started = time.monotonic()
    done = subprocess.run(
        [COMMAND, *words], cwd=folder, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=TIMEOUT, check=False,
    )  # fmt: skip
    lines = done.stdout.strip().splitlines() or [""]
    print(f"{' '.join(words)}: exit code {done.returncode}, {time.monotonic() - started:.1f} s:"
          f" {lines[-1]}", flush=True)  # fmt: skip
    if "Traceback" in done.stdout or (code is not None and done.returncode != code):
        sys.exit(done.stdout)
    return done.stdout


def page(folder: Path) -> None:
    """Run ``sim`` with its page; receive the page and the motion of the arm as a browser does."""
    started = time.monotonic()
    output = folder / "sim.log"
    with output.open("w") as log:
        process = subprocess.Popen(
            [COMMAND, "sim", ARM, "--port", "0"], cwd=folder, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        while not (found := re.search(r"http://\S+", output.read_text())):
            if process.poll() is not None or time.monotonic() - started > TIMEOUT:
                sys.exit(f"no page: {output.read_text()}")
            time.sleep(0.1)
        shown = time.monotonic() - started
        html = build_opener(ProxyHandler({})).open(found[0], timeout=30).read()
        if b"<html" not in html.lower():
            sys.exit(f"page = {html[:80]!r}; expected HTML")
        motion(found[0])
    finally:
        process.send_signal(signal.SIGINT)
        code = process.wait(timeout=60)
    print(f"sim: page after {shown:.1f} s, motion after {time.monotonic() - started:.1f} s, exit"
          f" code {code}", flush=True)  # fmt: skip
    if code:
        sys.exit(output.read_text())


def motion(url: str) -> None:
    """Wait until the page receives MIN_FRAMES different poses of a link."""
    poses: set[bytes] = set()
    end = time.monotonic() + TIMEOUT
    protocol = [f"viser-v{viser.__version__}"]
    with connect(
        url.replace("http", "ws"), subprotocols=protocol, max_size=None, proxy=None
    ) as socket:
        camera = {
            "type": "ViewerCameraMessage", "wxyz": (1, 0, 0, 0), "position": (1, 1, 1), "fov": 1.0,
            "near": 0.1, "far": 9.0, "image_height": 100, "image_width": 100,
            "look_at": (0, 0, 0), "up_direction": (0, 0, 1),
        }  # fmt: skip
        socket.send(msgspec.msgpack.encode(camera))
        while len(poses) < MIN_FRAMES:
            if time.monotonic() > end:
                sys.exit(f"different poses on the page = {len(poses)}; expected {MIN_FRAMES}")
            raw = socket.recv(timeout=TIMEOUT)
            size = int.from_bytes(raw[8:16], "little")
            data = zstandard.ZstdDecompressor().decompress(raw[16 : 16 + size])
            for message in msgspec.msgpack.decode(data)["messages"]:
                if message["type"] == "SetOrientationMessage":
                    poses.add(msgspec.msgpack.encode([message["name"], message["wxyz"]]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
