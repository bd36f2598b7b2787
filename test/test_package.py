"""Metadata of pip, colcon and rosdep: complete, consistent, installed where ROS 2 searches."""

import ast
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from configparser import ConfigParser
from importlib.metadata import distribution
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "arm_dynamics"
EXECUTABLES = sorted((ROOT / "executables").iterdir())
ROS = {"rclpy", "launch", "launch_ros", "ament_index_python"}
HIDDEN = """\
import importlib.metadata as metadata
found = metadata.distribution
def distribution(name):
    if name == "pin":
        raise metadata.PackageNotFoundError(name)
    return found(name)
metadata.distribution = distribution
"""


def manifest() -> ET.Element:
    return ET.parse(ROOT / "package.xml").getroot()


def imported(file: Path) -> set[str]:
    """Return the first parts of all module names that ``file`` imports."""
    tree = ast.walk(ast.parse(file.read_text()))
    names = [[a.name for a in n.names] for n in tree if isinstance(n, ast.Import)]
    tree = ast.walk(ast.parse(file.read_text()))
    names += [[n.module or ""] for n in tree if isinstance(n, ast.ImportFrom) and not n.level]
    return {name.split(".")[0] for group in names for name in group}


def test_every_folder_with_modules_is_a_package():
    folders = {file.parent for file in PACKAGE.rglob("*.py")}
    assert [f for f in sorted(folders) if not (f / "__init__.py").is_file()] == []


def test_the_command_is_the_only_program_on_the_path():
    scripts = distribution("arm_dynamics").entry_points.select(group="console_scripts")
    assert [(script.name, script.value) for script in scripts] == [
        ("arm-dynamics", "arm_dynamics.cli.start:main")
    ]


@pytest.mark.parametrize("file", EXECUTABLES, ids=lambda file: file.name)
def test_executables_run_the_node_of_their_name(file):
    lines = file.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("#!/usr/bin/env python3", f'run_node("{file.name}")')
    assert os.access(file, os.X_OK)
    node = ast.parse((PACKAGE / f"ros/nodes/{file.name}.py").read_text())
    assert "main" in {n.name for n in node.body if isinstance(n, ast.FunctionDef)}


def test_every_node_has_an_executable():
    nodes = {file.stem for file in (PACKAGE / "ros/nodes").glob("*.py")
             if "__main__" in file.read_text()}  # fmt: skip
    assert {file.name for file in EXECUTABLES} == nodes


def test_the_setup_runs_in_another_folder(tmp_path):
    """As with ``colcon build --symlink-install``, which runs a link to setup.py."""
    link = tmp_path / "setup.py"
    link.symlink_to(ROOT / "setup.py")
    shown = subprocess.run(
        [sys.executable, str(link), "--version", "--long-description"],
        cwd=tmp_path, text=True, capture_output=True, check=True,
    )  # fmt: skip
    assert shown.stdout.endswith((ROOT / "README.md").read_text() + "\n")
    assert shown.stdout.startswith("0.1.0\n")


def test_colcon_recognizes_the_manifest_as_ament_python():
    root = manifest()
    assert root.get("format") == "3"
    assert root.findtext("export/build_type") == "ament_python"
    # Pattern of catkin_pkg: with any other address colcon silently builds a plain package.
    pattern = (
        r"^[-a-zA-Z0-9_%+]+(\.[-a-zA-Z0-9_%+]+)*@[-a-zA-Z0-9%]+(\.[-a-zA-Z0-9%]+)*\.[a-zA-Z]{2,}$"
    )
    assert re.match(pattern, root.find("maintainer").get("email"))


def test_manifest_and_distribution_have_one_version_and_license():
    metadata = distribution("arm_dynamics").metadata
    assert manifest().findtext("version") == metadata["Version"]
    assert manifest().findtext("license") == "Apache-2.0"
    assert "Version 2.0, January 2004" in (ROOT / "LICENSE").read_text()


def test_every_ros_package_that_is_imported_is_declared():
    declared = {e.text for e in manifest() if e.tag.endswith("depend")}
    files = [*(PACKAGE / "ros").rglob("*.py"), *(ROOT / "launch").rglob("*.py")]
    used = {name for file in files for name in imported(file)}
    ros = {name for name in used if name in ROS or name.endswith(("_msgs", "_srvs", "_interfaces"))}
    assert {"rclpy", "sensor_msgs"} <= ros
    assert ros <= declared
    interfaces = {name for name in declared if name.endswith(("_msgs", "_srvs", "_interfaces"))}
    # One is used by clients of the joint controller, the other is imported by its name.
    assert interfaces - {"control_msgs", "tf2_msgs"} <= ros


def test_every_required_distribution_has_its_rosdep_key():
    keys = {"pin": "pinocchio", "pyyaml": "python3-yaml"}
    required = {
        re.split(r"[<>=!~;\[ ]", r)[0]
        for r in distribution("arm_dynamics").requires
        if "extra ==" not in r
    }
    declared = {e.text for e in manifest() if e.tag.endswith("depend")}
    assert {"pin", "numpy", "viser"} <= required
    required -= {"viser", "yourdfpy"}  # of the page: they have no rosdep key
    assert {keys.get(name, f"python3-{name}") for name in required} <= declared


def test_pixi_installs_what_manifest_and_distribution_require():
    """Conda packages replace wheels and Debian packages; pip adds the libraries of the page."""
    tomllib = pytest.importorskip("tomllib", reason="tomllib is part of Python 3.11")
    file = tomllib.loads((ROOT / "pixi.toml").read_text())
    assert file["workspace"]["version"] == manifest().findtext("version")
    assert set(file["workspace"]["platforms"]) == {"linux-64", "linux-aarch64", "osx-arm64"}
    installed = set(file["dependencies"])
    depends = {e.text for e in manifest() if e.tag in ("depend", "exec_depend")}
    names = {n.removeprefix("python3-") if n.startswith("python3-") else n for n in depends}
    python = {"pinocchio", *(n.removeprefix("python3-") for n in depends if "python3-" in n)}
    ros = {f"ros-jazzy-{n.replace('_', '-')}" for n in names - python}
    assert {"ros-jazzy-rclpy", "ros-jazzy-control-msgs"} <= ros
    assert ros | (python - {"yaml"}) | {"pyyaml"} <= installed
    required = {re.split(r"[<>=!~]", r)[0]: r for r in distribution("arm_dynamics").requires}
    for name, version in file["pypi-dependencies"].items():
        assert required[name].startswith(f"{name}{version}")


def test_the_container_installs_the_libraries_of_the_page():
    text = (ROOT / "Dockerfile").read_text()
    for entry in distribution("arm_dynamics").requires:
        if re.match("viser|yourdfpy", entry):
            assert f'"{entry.partition(";")[0].strip()}"' in text


def test_nodes_contain_no_linear_algebra():
    for file in (PACKAGE / "ros").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            assert not isinstance(node, ast.MatMult), file
            assert not (isinstance(node, ast.Attribute) and node.attr == "linalg"), file


@pytest.mark.quick(1)
@pytest.mark.parametrize("node", ["simulator", "joint_controller", "hardware"])
def test_nodes_start_without_scipys_solvers(node):
    """Their import takes as long as the rest of the start."""
    code = f"import sys, arm_dynamics.ros.nodes.{node}; sys.exit('scipy.special' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_colcon_installs_the_command_for_ros2_run():
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg")
    assert setup["install"]["install_scripts"] == "$base/lib/arm_dynamics"
    assert setup["develop"]["script_dir"] == "$base/lib/arm_dynamics"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """Return a workspace in which colcon has built a copy of the package."""
    folder = tmp_path_factory.mktemp("workspace")
    source = folder / "src" / "arm_dynamics"
    kept = ["arm_dynamics", "config", "executables", "launch", "resource", "urdf"]
    for name in kept:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ["setup.py", "setup.cfg", "package.xml", "pyproject.toml", "LICENSE", "README.md"]:
        shutil.copy(ROOT / name, source)
    assert "(ros.ament_python)" in colcon(folder, "list")
    colcon(folder, "build")
    return folder


def colcon(folder: Path, verb: str) -> str:
    tool = shutil.which("colcon", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert tool, "colcon is missing: `make test` installs it"
    done = subprocess.run(
        [tool, verb], cwd=folder, check=False, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_colcon_installs_every_resource_and_executable(workspace):
    prefix = workspace / "install" / "arm_dynamics"
    for kind in ("urdf", "config", "launch"):
        files = [
            p for p in (ROOT / kind).rglob("*") if p.is_file() and "__pycache__" not in p.parts
        ]
        for file in files:
            installed = prefix / "share/arm_dynamics" / file.relative_to(ROOT)
            if "_moveit_config/" in str(file):  # a separate package
                installed = prefix / "share/" / file.relative_to(ROOT / "config/moveit")
            assert installed.read_bytes() == file.read_bytes()
    index = {file.name for file in (prefix / "share/ament_index/resource_index/packages").iterdir()}
    assert index == {"arm_dynamics", "so101_moveit_config", "puma560_moveit_config"}
    installed = [*(prefix / "lib" / "arm_dynamics").iterdir()]
    names = {"arm-dynamics", *(file.name for file in EXECUTABLES)}
    assert {file.name for file in installed} == names
    assert all(os.access(file, os.X_OK) for file in installed)


@pytest.mark.slow
def test_colcon_installs_every_module(workspace):
    (installed,) = (workspace / "install").glob("arm_dynamics/lib/python*/site-packages")
    sources = {p.relative_to(ROOT) for p in PACKAGE.rglob("*.py")}
    assert {p.relative_to(installed) for p in installed.rglob("arm_dynamics/**/*.py")} == sources


def test_type_hints_are_installed(workspace):
    """Type checkers require the file py.typed."""
    (installed,) = (workspace / "install").glob("arm_dynamics/lib/python*/site-packages")
    assert (installed / "arm_dynamics/py.typed").is_file()


def test_modules_named_in_import_contracts_exist():
    text = (ROOT / ".importlinter").read_text()
    names = set(re.findall(r"arm_dynamics\.([a-z_.]*[a-z_])", text))
    assert {"ros", "viewer", "dynamics"} <= names
    missing = {n for n in names if not module_exists(PACKAGE / n.replace(".", "/"))}
    assert missing == set()


def module_exists(path: Path) -> bool:
    return path.is_dir() or path.with_suffix(".py").is_file()


def test_the_installed_command_runs_without_python_metadata_of_pinocchio(workspace, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(HIDDEN)
    (installed,) = (workspace / "install").glob("arm_dynamics/lib/python*/site-packages")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{installed}"}
    command = workspace / "install/arm_dynamics/lib/arm_dynamics/arm-dynamics"
    done = subprocess.run(
        [command, "list"],
        env=environment,
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "five_dof" in done.stdout
