"""Helpers of the make targets: environment, Ctrl-C in a terminal, sourced ROS 2."""

import importlib.util
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parent.parent
# A signal just before a long sleep would be handled after it: the sleeps are short.
SLEEPER = """\
import signal, sys, time
signal.signal(signal.SIGINT, lambda *_: sys.exit(int(sys.argv[1])))
print("ready", flush=True)
while True:
    time.sleep(0.1)
"""


def script(name: str):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


setup_env = script("setup_env")


@pytest.fixture
def makefile(tmp_path):
    """Return a makefile whose target runs a program that ends at SIGINT, as `make sim` does."""
    (tmp_path / "sleeper.py").write_text(SLEEPER)
    command = f"{sys.executable} {ROOT}/scripts/foreground.py {sys.executable} sleeper.py"
    (tmp_path / "Makefile").write_text(f"clean:\n\t@{command} 0\nfails:\n\t@{command} 7\n")
    return tmp_path


def interrupted_in_terminal(folder: Path, target: str) -> tuple[int, str]:
    """Return exit code and output of `make target` in a terminal after Ctrl-C."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execvp("make", ["make", target])
    output = read_until(terminal, "ready", 20.0)
    os.write(terminal, b"\x03")
    output += read_until(terminal, None, 20.0)
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), output


def read_until(terminal: int, mark: str | None, seconds: float) -> str:
    """Return the output of the terminal until ``mark`` or its end."""
    text, end = "", time.monotonic() + seconds
    while time.monotonic() < end and not (mark and mark in text):
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                text += os.read(terminal, 4096).decode()
            except OSError:  # the other side has closed
                return text
    if mark is None or mark not in text:
        pytest.fail(f"after {seconds} s only: {text!r}")
    return text


def test_ctrl_c_ends_make_with_zero_and_without_an_error_message(makefile):
    code, output = interrupted_in_terminal(makefile, "clean")
    assert code == 0
    assert "make:" not in output


def test_a_failure_after_ctrl_c_is_reported(makefile):
    code, output = interrupted_in_terminal(makefile, "fails")
    assert code == 2
    assert "Error 7" in output


def test_without_a_terminal_the_command_receives_the_signal(makefile):
    command = [
        sys.executable,
        ROOT / "scripts" / "foreground.py",
        sys.executable,
        "sleeper.py",
        "5",
    ]
    process = subprocess.Popen(
        command, cwd=makefile, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 5


def test_sourced_ros_is_recognized(tmp_path):
    sourced = script("sourced_ros").sourced
    (tmp_path / "lib/python3.12/site-packages/rclpy").mkdir(parents=True)
    assert sourced({"ROS_DISTRO": "jazzy"}) == "ROS_DISTRO=jazzy"
    assert str(tmp_path) in sourced({"AMENT_PREFIX_PATH": f"/elsewhere:{tmp_path}"})
    assert sourced({"AMENT_PREFIX_PATH": "/elsewhere", "PATH": "/usr/bin"}) == ""


def test_make_sim_names_the_commands_if_ros_is_sourced():
    done = subprocess.run(
        ["make", "-C", ROOT, "sim"],
        env={**os.environ, "ROS_DISTRO": "jazzy"},
        check=False,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode != 0
    for command in (
        "rosdep install",
        "colcon build",
        "ros2 launch arm_dynamics simulation.launch.py",
    ):
        assert command in done.stderr


def test_help_lists_every_target():
    done = subprocess.run(
        ["make", "-C", ROOT], check=False, capture_output=True, text=True, timeout=180
    )
    listed = set(re.findall(r"^  ([a-z-]+) ", done.stdout, re.MULTILINE))
    assert listed == {
        "help",
        "setup",
        "setup-test",
        "sim",
        "test",
        "test-all",
        "urdf",
        "lint",
        "docs",
        "bench",
        "gallery",
        "clean",
    }


@pytest.mark.parametrize("version", [(3, 9), (3, 15)])
def test_another_python_is_rejected_with_the_supported_versions(monkeypatch, version):
    monkeypatch.setattr(setup_env.sys, "version_info", (*version, 1, "final", 0))
    with pytest.raises(setup_env.SetupFailed, match=r"needs 3\.10 to 3\.14[\s\S]*PYTHON="):
        setup_env.check_python()


@pytest.fixture
def installer(monkeypatch):
    """Set up commands that only record their calls; return the calls."""
    done = SimpleNamespace(commands=[], code=0)

    def run(command, venv, step, variables=None):
        done.commands.append(command)
        (venv / "bin").mkdir(exist_ok=True)
        (venv / "bin" / "python").touch()
        (venv / "setup.log").write_text("NewConnectionError" if done.code else "")
        return done.code if "pip" in command else 0

    monkeypatch.setattr(setup_env, "run", run)
    monkeypatch.setattr(setup_env, "uv_settings", lambda python: {})
    return done


def test_environment_is_made_once_and_extended(installer, tmp_path):
    venv = tmp_path / "venv"
    setup_env.bring_up_to_date(venv, ["ros"], "")
    assert len(installer.commands) == 3
    setup_env.bring_up_to_date(venv, ["ros"], "")
    assert len(installer.commands) == 3
    setup_env.bring_up_to_date(venv, ["test"], "")
    assert installer.commands[4][-1] == f"{ROOT}[ros,test]"
    setup_env.bring_up_to_date(venv, ["ros"], "")
    assert len(installer.commands) == 5


@pytest.mark.parametrize("failing", ["uv", "packages"])
def test_pip_installs_what_uv_does_not(monkeypatch, tmp_path, failing):
    commands = []

    def run(command, venv, step, variables=None):
        commands.append(command)
        uv = command[2] == "uv" if failing == "packages" else command[-1] == "uv"
        return int(uv)

    monkeypatch.setattr(setup_env, "run", run)
    monkeypatch.setattr(setup_env, "uv_settings", lambda python: {})
    setup_env.install(tmp_path, ["ros"], "")
    assert commands[-1][2] == "pip"
    assert commands[-1][-1] == f"{ROOT}[ros]"


def test_uv_reads_the_indexes_of_pip(monkeypatch, tmp_path):
    config = tmp_path / "pip.conf"
    config.write_text(
        "[global]\nindex-url = https://mirror.example/simple\n"
        "extra-index-url =\n    https://one.example\n    https://two.example\n"
        "[install]\nfind-links = /wheels /more\n"
    )
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    monkeypatch.setenv("PIP_CERT", "/certificates.crt")
    expected = {
        "UV_DEFAULT_INDEX": "https://mirror.example/simple",
        "UV_INDEX": "https://one.example https://two.example",
        "UV_FIND_LINKS": "/wheels,/more",
        "SSL_CERT_FILE": "/certificates.crt",
    }
    assert expected.items() <= setup_env.uv_settings(sys.executable).items()


def test_an_incomplete_environment_is_recreated(installer, tmp_path):
    venv, installer.code = tmp_path / "venv", 1
    with pytest.raises(setup_env.SetupFailed, match="could not be reached"):
        setup_env.bring_up_to_date(venv, ["ros"], "")
    (venv / "rubble").touch()
    installer.code = 0
    setup_env.bring_up_to_date(venv, ["ros"], "")
    assert not (venv / "rubble").exists()
    assert json.loads((venv / "arm_dynamics.json").read_text())["complete"] is True


def test_an_environment_of_another_program_is_not_changed(installer, tmp_path):
    (tmp_path / "precious").touch()
    with pytest.raises(setup_env.SetupFailed, match="not created by this script"):
        setup_env.bring_up_to_date(tmp_path, ["ros"], "")
    assert (tmp_path / "precious").exists()
    assert installer.commands == []


def test_an_activated_environment_recreates_itself(tmp_path):
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    (venv / "arm_dynamics.json").write_text("{}")
    program = "import pathlib, setup_env, sys; setup_env.create(pathlib.Path(sys.argv[1]))"
    python = str(venv / "bin" / "python")
    subprocess.run([python, "-c", program, str(venv)], cwd=ROOT / "scripts", check=True)
    assert subprocess.call([python, "-c", "import pip"]) == 0


def test_changed_requirements_make_the_environment_outdated(installer, tmp_path, monkeypatch):
    venv = tmp_path / "venv"
    setup_env.bring_up_to_date(venv, ["ros"], "")
    monkeypatch.setattr(setup_env, "SOURCES", ("package.xml",))
    setup_env.bring_up_to_date(venv, ["ros"], "")
    assert len(installer.commands) == 6
