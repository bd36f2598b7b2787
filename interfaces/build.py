"""Build the ROS interfaces that have no wheels for this Python; once.

    .venv/bin/python interfaces/build.py

``make setup`` and ``make test`` run it. The packages are those of the folders next to this file. An
installed ROS 2 has them already: nothing is built then. With ``--optional`` a missing compiler is a
note, not an error.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

HERE = Path(__file__).resolve().parent
PREFIX = Path(sys.prefix)
MARK = PREFIX / "share/arm_dynamics_interfaces"
"""Hash of the definitions of the environment's packages."""
NAMES = ", ".join(sorted(p.parent.name for p in HERE.glob("*/package.xml")))
NEEDED = "the nodes run without FollowJointTrajectory, /tf, simulation_interfaces, planning_scene"
JAZZY = "7."
"""First part of the versions of ros-rclpy that the build tools of requirements.txt belong to."""
BUILD_HOST = r"/opt/python/cp\d+-cp\d+/"
"""Python of the wheels' build machine, still named in their CMake files."""


def main() -> int:
    """Build unless it is built already; return the exit code."""
    try:
        installed = version("ros-rclpy")
    except PackageNotFoundError:
        return report(f"no ROS 2 from wheels in this environment: {NAMES} are not built")
    if not installed.startswith(JAZZY):
        # Its build tools would replace packages of another distribution.
        return report(f"{NAMES} are built for Jazzy only, not for ros-rclpy {installed}: {NEEDED}")
    if MARK.exists() and MARK.read_text() == fingerprint():
        return 0
    lacking = missing_tools()
    if lacking:
        report(f"{NAMES} are not built: {lacking} is missing; {NEEDED}")
        return 0 if "--optional" in sys.argv else 1
    started = time.monotonic()
    report(f"building {NAMES}: about a minute, once")
    try:
        run(sys.executable, "-m", "pip", "install", "--quiet", "-r", str(HERE / "requirements.txt"))
        name_this_python()
        build()
    except subprocess.CalledProcessError as error:
        print(error.stdout)
        report(f"{NAMES} could not be built: '{error.cmd[0]}' failed, see above; {NEEDED}")
        return 0 if "--optional" in sys.argv else 1
    MARK.write_text(fingerprint())
    return report(f"{NAMES} built in {time.monotonic() - started:.0f} s")


def missing_tools() -> str:
    """Return what the build needs and this machine lacks; "" if it is complete."""
    header = Path(sysconfig.get_path("include")) / "Python.h"
    tools = {"a C++ compiler": ("c++", "g++", "clang++"), "make": ("make",)}
    lacking = [name for name, any_of in tools.items() if not any(map(shutil.which, any_of))]
    if not header.exists():
        lacking.append(f"the header of this Python ({header})")
    return " and ".join(lacking)


def fingerprint() -> str:
    """Return a hash of all files that determine the build."""
    files = sorted(path for path in HERE.rglob("*") if path.is_file() and path.suffix != ".pyc")
    digest = hashlib.sha256(f"{sys.version}|{PREFIX}".encode())
    for path in files:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def name_this_python() -> None:
    """Write this Python's and numpy's headers into the wheels' CMake files."""
    import numpy  # noqa: PLC0415 - exists only in the environment

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
