"""Ctrl-C ends every executable with code 0 and without a traceback, also during imports."""

import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from arm_dynamics.core.signals import delaying_interrupts
from arm_dynamics.ros.runtime.process import ChildProcesses

from .link import PATIENCE, ROOT

OBEYED = 2.0
"""Maximum processor time [s] of a process until its end."""
IMPORTS = ("numpy", "rclpy", "pinocchio", "numba", "arm_dynamics.control.control_loop")
EXECUTABLES = sorted((ROOT / "executables").iterdir())
COMPILES = r"(arm_dynamics compiles for this machine: .*\n)?"
"""Output of a node whose imports compile for the first time, or nothing."""
SIM = ("-m", "arm_dynamics.cli.main", "sim")
CASES = [
    *(((str(file),), "rclpy") for file in EXECUTABLES),
    *((("-m", "arm_dynamics.ros.nodes.joint_controller"), module) for module in IMPORTS),
    ((str(ROOT / "executables/composed"),), "arm_dynamics.ros.nodes.simulator"),
    (SIM, "numpy"),
    (SIM, "arm_dynamics.ros.topics.controller_clients"),
]


def interrupted(command, module, domain):
    """Exit code, output and processor time [s] of a process after SIGINT once ``module`` is there.

    Python writes a line for each module that it has imported.
    """
    process = subprocess.Popen(
        [sys.executable, "-X", "importtime", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "ROS_DOMAIN_ID": str(domain), "ARM_DYNAMICS_PARENT": str(os.getpid())},
        start_new_session=True,
    )
    output, began = [], None
    with process, process.stdout as lines:
        for line in lines:
            if not line.startswith("import time:"):
                output.append(line)
            elif began is None and line.endswith(f" {module}\n"):
                began = cpu_time(process.pid)
                process.send_signal(signal.SIGINT)
        assert began is not None, f"{command} imports no {module}: {output}"
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, "".join(output), usage.ru_utime + usage.ru_stime - began


def cpu_time(pid):
    """Return the processor time [s] that a process has used."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.slow
def test_every_executable_ends_during_its_imports(ros):
    assert len(EXECUTABLES) == 10
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        ends = list(pool.map(lambda case: interrupted(*case, ros.domain), CASES))
    for (command, module), (code, output, used) in zip(CASES, ends, strict=True):
        where = f"{command[-1]} after {module}: {output}"
        assert code == 0, where
        assert "Traceback" not in output, where
        assert command == SIM or re.fullmatch(COMPILES, output), where
        assert used < OBEYED, f"{where} {used} s"


def test_a_child_that_is_interrupted_before_its_handlers_exist_ends_with_0(ros, monkeypatch):
    monkeypatch.setenv("ROS_DOMAIN_ID", str(ros.domain))
    mask, children = signal.pthread_sigmask(signal.SIG_BLOCK, ()), ChildProcesses()
    children.start("markers", "arm_dynamics.ros.nodes.rviz_controls", [])
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == mask
    process = children._processes["markers"]
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == 0
    assert children.exited_process() == ("markers", 0)


MASKS = """
import signal, subprocess, sys
from concurrent.futures import ThreadPoolExecutor
from arm_dynamics.core.signals import end_on_signals, stop_on_signals

SHOW = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))"
exec(SHOW)
{install}()
exec(SHOW)
with ThreadPoolExecutor(1) as pool:
    pool.submit(exec, SHOW).result()
sys.stdout.flush()
subprocess.run([sys.executable, "-c", SHOW], check=True)
"""


@pytest.mark.parametrize("install", ["end_on_signals", "stop_on_signals"])
def test_threads_and_children_of_a_child_receive_interrupts(install):
    with delaying_interrupts():
        process = subprocess.Popen(
            [sys.executable, "-c", MASKS.format(install=install)],
            stdout=subprocess.PIPE,
            text=True,
        )
    blocked = process.communicate(timeout=PATIENCE)[0].split()
    assert (process.returncode, blocked) == (0, ["True", "False", "False", "False"])


def test_the_library_is_imported_at_its_first_use():
    code = (
        "import sys, arm_dynamics; assert 'numpy' not in sys.modules;"
        " from arm_dynamics import forward_model, load_arm; assert callable(forward_model);"
        " import arm_dynamics.simulation.forward_model;"
        " assert callable(arm_dynamics.forward_model);"
        " assert set(arm_dynamics.__all__) <= set(dir(arm_dynamics)) and 'numpy' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
