"""Create or complete the project's virtual environment; do nothing if it is up to date.

``setup_env.py --venv .venv --extras ros,viewer``. A record in the environment contains its extras
and whether it is complete. An incomplete or outdated environment is created again. The script uses
only the standard library and syntax of old Pythons, so that it can report the required version.
"""

import argparse
import ast
import hashlib
import json
import os
import platform
import queue
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("setup.py", "setup.cfg")
MIN_PYTHON, MAX_PYTHON, MAX_TESTED_PYTHON = (3, 10), (3, 14), (3, 13)
UNREACHABLE = ("NewConnectionError", "NameResolutionError", "Max retries", "Read timed out")
# Variables of a sourced ROS 2, whose packages pip would treat as installed.
FOREIGN = ("PYTHONPATH", "PYTHONHOME", "AMENT_PREFIX_PATH", "COLCON_PREFIX_PATH")
PIP_TO_UV = {
    "index-url": ("UV_DEFAULT_INDEX", ""),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "cert": ("SSL_CERT_FILE", ""),
}  # and what separates several values


class SetupFailed(Exception):
    """Failure to create the environment; the text contains cause and remedy."""


def main() -> int:
    """Bring the environment up to date; return the exit code."""
    args = _arguments()
    venv = Path(args.venv).absolute()
    extras = sorted(set(args.extras.split(",")))
    try:
        check_python()
        bring_up_to_date(venv, extras, args.constraint)
    except SetupFailed as failure:
        sys.stderr.write(f"\nsetup failed: {failure}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\nsetup interrupted; the next call starts it again\n")
        return 130
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Make the virtual environment of arm_dynamics.")
    parser.add_argument(
        "--venv", default=".venv", help="folder of the environment (default: .venv)"
    )
    parser.add_argument("--extras", default="ros,viewer", help="extras, separated by commas")
    parser.add_argument("--constraint", default="", help="pip constraints file")
    return parser.parse_args()


def check_python() -> None:
    """Raise SetupFailed outside of Python 3.10 to 3.14; name a suitable Python if one exists."""
    if MIN_PYTHON <= sys.version_info[:2] <= MAX_PYTHON:
        if sys.version_info[:2] > MAX_TESTED_PYTHON:
            _report(f"note: Python {platform.python_version()} is not tested; 3.10 to 3.13 are")
        return
    names = ("python3.13", "python3.12", "python3.11", "python3.10")
    found = next(filter(None, map(_working, names)), None)
    raise SetupFailed(
        "{} is Python {}; arm_dynamics needs 3.10 to 3.14.\nGive one by name: {}".format(
            sys.executable,
            platform.python_version(),
            f"PYTHON={found}" if found else "PYTHON=/path/to/python3.13 (none found on PATH)",
        )
    )


def _working(name: str) -> "str | None":
    """Return the path of interpreter ``name`` if it is on PATH and starts."""
    path = shutil.which(name)
    if path and subprocess.call([path, "-c", ""], stderr=subprocess.DEVNULL) == 0:
        return path
    return None


def bring_up_to_date(venv: Path, extras: list, constraint: str) -> None:
    """Create ``venv`` or add missing extras; raise SetupFailed."""
    target = {"fingerprint": fingerprint(venv, constraint), "extras": extras, "complete": True}
    held = read_record(venv)
    if up_to_date(venv, held, target):
        return
    started = time.monotonic()
    if held.get("fingerprint") == target["fingerprint"] and held["complete"]:
        target["extras"] = sorted({*extras, *held["extras"]})
        _report(f"environment {venv}: adding {', '.join(set(extras) - set(held['extras']))}")
    else:
        _report(
            f"environment {venv}: about 250 MB from PyPI, 1.1 GB on disk, some seconds to a minute"
        )
        create(venv)
    write_record(venv, dict(target, complete=False))
    install(venv, target["extras"], constraint)
    write_record(venv, target)
    _report(f"environment ready after {time.monotonic() - started:.0f} s")
    if not wheels_exist():
        _report(
            "note: wheels of ROS 2 exist only for Linux on x86_64. On this machine everything "
            "without ROS works, also `make sim`; the nodes need an installed ROS 2 (see README)."
        )


def fingerprint(venv: Path, constraint: str) -> str:
    """Return a hash of everything that determines the contents of the environment."""
    digest = hashlib.sha256(f"{sys.version}|{sys.base_prefix}|{venv}|{ROOT}".encode())
    for source in (*SOURCES, *filter(None, [constraint])):
        digest.update((ROOT / source).read_bytes())
    return digest.hexdigest()


def read_record(venv: Path) -> dict:
    """Return the record of the environment; empty without a readable one."""
    try:
        return json.loads((venv / "arm_dynamics.json").read_text())
    except (OSError, ValueError):
        return {}


def write_record(venv: Path, record: dict) -> None:
    """Write the record of the environment atomically."""
    partial = venv / "arm_dynamics.json.partial"
    partial.write_text(json.dumps(record))
    partial.replace(venv / "arm_dynamics.json")


def up_to_date(venv: Path, held: dict, target: dict) -> bool:
    """Return whether the environment is complete and contains the extras."""
    return (
        held.get("complete") is True
        and held.get("fingerprint") == target["fingerprint"]
        and set(target["extras"]) <= set(held["extras"])
        and (venv / "bin" / "python").exists()
    )


def create(venv: Path) -> None:
    """Create an empty environment; replace an incomplete or outdated one of this script."""
    if venv.exists() and not (venv / "arm_dynamics.json").exists() and any(venv.iterdir()):
        raise SetupFailed(
            f"{venv} exists and was not created by this script: remove it or select another "
            "folder: make VENV=..."
        )
    shutil.rmtree(str(venv), ignore_errors=True)
    venv.mkdir(parents=True)
    write_record(venv, {"complete": False})
    # An activated environment is the one replaced here: its base interpreter creates it.
    python = getattr(sys, "_base_executable", sys.executable)
    if run([python, "-m", "venv", str(venv)], venv, "1/3 virtual environment"):
        raise SetupFailed(
            f"{python} -m venv failed, see above. On Debian and Ubuntu install the module "
            "with `apt install python3-venv`."
        )


def install(venv: Path, extras: list, constraint: str) -> None:
    """Install the package, editable, with ``extras``: by uv, else by pip; raise SetupFailed."""
    python = str(venv / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--retries", "2"]
    pip += ["--disable-pip-version-check", "--progress-bar", "off"]
    uv = [python, "-m", "uv", "pip", "install", "--python", python]
    uv += ["--index-strategy", "unsafe-best-match"]  # pip's strategy
    package = ["--constraint", constraint] if constraint else []
    package += ["--editable", f"{ROOT}[{','.join(extras)}]"]
    if run([*pip, "uv"], venv, "2/3 uv") == 0:
        if run([*uv, *package], venv, "3/3 packages", uv_settings(python)) == 0:
            return
        _report("uv failed, see above; pip installs the packages")
    if run([*pip, *package], venv, "3/3 packages") == 0:
        return
    log = (venv / "setup.log").read_text(errors="replace")
    if any(sign in log for sign in UNREACHABLE):
        raise SetupFailed(
            "the package index could not be reached: check the network and try "
            f"again. Output of pip: {venv / 'setup.log'}"
        )
    raise SetupFailed(f"pip failed, see above. Output of pip: {venv / 'setup.log'}")


def uv_settings(python: str) -> dict:
    """Return pip's indexes and certificates as environment variables of uv."""
    command = [python, "-m", "pip", "config", "list"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    settings = {}
    lines = done.stdout.splitlines()
    for line in sorted(lines, key=lambda line: line.startswith(":env:")):  # these override files
        name, _, value = line.partition("=")
        variable, separator = PIP_TO_UV.get(name.rpartition(".")[2], ("", ""))
        if variable:
            settings[variable] = separator.join(ast.literal_eval(value).split())
    return settings


def run(command: list, venv: Path, step: str, variables: "dict | None" = None) -> int:
    """Run ``command`` with its output in setup.log and its progress shown; return its exit code."""
    environment = {k: v for k, v in os.environ.items() if k not in FOREIGN}
    environment.update(variables or {})
    process = subprocess.Popen(
        command,
        env=environment,
        cwd=str(ROOT),
        universal_newlines=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
    )
    lines = queue.Queue()
    threading.Thread(target=_read, args=(process.stdout, lines), daemon=True).start()
    try:
        with (venv / "setup.log").open("a") as log:
            last = _follow(lines, log, step)
        code = process.wait()
    except BaseException:
        process.kill()
        raise
    if code:
        sys.stdout.write("\n" + "".join(last))
    return code


def _read(stream: object, lines: queue.Queue) -> None:
    """Put each line into the queue, then None."""
    for line in stream:
        lines.put(line)
    lines.put(None)


def _follow(lines: queue.Queue, log: object, step: str) -> list:
    """Show the elapsed time and the latest line until the end; return the last lines."""
    progress, kept, latest = Progress(step), [], ""
    while True:
        try:
            line = lines.get(timeout=0.5)
        except queue.Empty:
            progress.show(latest)
            continue
        if line is None:
            progress.end()
            return kept
        log.write(line)
        kept = [*kept, line][-20:]
        latest = _readable(line) or latest
        progress.show(latest)


def _readable(line: str) -> str:
    """Return the displayed text of a line of pip, or ""."""
    if line.startswith("Installing collected packages:"):
        return "Installing {} packages".format(line.count(",") + 1)
    return "" if line.startswith("WARNING") else line.strip()


class Progress:
    """Progress: one rewritten line on a terminal, otherwise a line every few seconds."""

    def __init__(self, step: str) -> None:
        self.step, self.started = step, time.monotonic()
        self.terminal = sys.stdout.isatty()
        self.shown = self.started if self.terminal else self.started - 10.0
        self.show("")

    def show(self, text: str) -> None:
        """Show ``text`` and the elapsed time, unless the last call is too recent."""
        now = time.monotonic()
        if now - self.shown < (0.1 if self.terminal else 5.0):
            return
        self.shown = now
        width = shutil.get_terminal_size().columns - 1
        line = f"  [{self.step}] {now - self.started:4.0f} s  {text}"[:width]
        sys.stdout.write(f"\r\033[K{line}" if self.terminal else f"{line}\n")
        sys.stdout.flush()

    def end(self) -> None:
        """Report the end of the step."""
        line = f"  [{self.step}] {time.monotonic() - self.started:4.0f} s  finished"
        sys.stdout.write(f"\r\033[K{line}\n" if self.terminal else f"{line}\n")
        sys.stdout.flush()


def wheels_exist() -> bool:
    """Return whether wheels of ROS 2 exist for this machine."""
    return sys.platform == "linux" and platform.machine() == "x86_64"


def _report(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
