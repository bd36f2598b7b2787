"""Build control_msgs and controller_manager_msgs, which have no wheels, for this Python; once.

    .venv/bin/python test/interfaces/build.py

``make test`` runs it. If ROS 2 itself contains control_msgs, nothing is built.
"""

import hashlib
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
PREFIX = Path(sys.prefix)
MARK = PREFIX / "share/control_msgs/built_from"
"""Hash of the definitions of the environment's packages."""
BUILD_HOST = r"/opt/python/cp\d+-cp\d+/"
"""Python of the wheels' build machine, still named in their CMake files."""


def main() -> int:
    """Build unless it is built already; return the exit code."""
    if find_spec("rclpy") is None:
        return report("no ROS 2 in this environment: control_msgs is not built")
    if exists_elsewhere():
        return report("control_msgs is part of the installed ROS 2")
    if MARK.exists() and MARK.read_text() == fingerprint():
        return 0
    started = time.monotonic()
    report("building control_msgs and controller_manager_msgs for the tests: a minute")
    try:
        run(sys.executable, "-m", "pip", "install", "--quiet", "-r", str(HERE / "requirements.txt"))
        name_this_python()
        build()
    except subprocess.CalledProcessError as error:
        print(error.stdout)
        report(f"control_msgs could not be built: '{error.cmd[0]}' failed, see above; it needs a"
            " C++ compiler, make and the headers of this Python")  # fmt: skip
        return 1
    MARK.write_text(fingerprint())
    return report(f"control_msgs built in {time.monotonic() - started:.0f} s")


def exists_elsewhere() -> bool:
    """Return whether a control_msgs exists that was not built here."""
    spec = find_spec("control_msgs")  # the folder next to this file has no origin
    return spec is not None and spec.origin is not None and not MARK.exists()


def fingerprint() -> str:
    """Return a hash of all files that determine the build."""
    files = sorted(path for path in HERE.rglob("*") if path.is_file() and path.suffix != ".pyc")
    digest = hashlib.sha256(f"{sys.version}|{PREFIX}".encode())
    for path in files:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def name_this_python() -> None:
    """Write this Python's and numpy's headers into the wheels' CMake files."""
    import numpy

    headers, arrays = sysconfig.get_path("include"), numpy.get_include()
    for file in PREFIX.glob("share/*/cmake/*Export.cmake"):
        text = file.read_text()
        changed = re.sub(BUILD_HOST + r"include/python3\.\d+", headers, text)
        changed = re.sub(BUILD_HOST + r'lib/[^;"]*/numpy/_core/include', arrays, changed)
        if changed != text:
            file.unlink()  # may be a link into an installer's cache
            file.write_text(changed)


def build() -> None:
    """Build with colcon and install into the environment of the wheels."""
    with tempfile.TemporaryDirectory() as work:
        run(
            *(str(PREFIX / "bin" / "colcon"), "--log-base", f"{work}/log", "build"),
            *("--base-paths", str(HERE), "--build-base", f"{work}/build"),
            *("--install-base", str(PREFIX), "--merge-install"),
            *("--event-handlers", "console_direct+"),
            *("--cmake-args", "-DBUILD_TESTING=OFF", "-Wno-dev", f"-DPython3_ROOT_DIR={PREFIX}"),
        )


def run(*command: str) -> None:
    """Run ``command``; raise CalledProcessError with its output."""
    environment = {
        **os.environ,
        "PATH": f"{PREFIX / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "VIRTUAL_ENV": str(PREFIX),
        "AMENT_PREFIX_PATH": str(PREFIX),
        "CMAKE_PREFIX_PATH": str(PREFIX),
        "CMAKE_BUILD_PARALLEL_LEVEL": str(os.cpu_count() or 1),
    }
    subprocess.run(
        command,
        check=True,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
    )


def report(text: str) -> int:
    """Print a line immediately; return 0."""
    print(text, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
