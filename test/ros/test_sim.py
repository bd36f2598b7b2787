"""``arm-dynamics sim`` starts its nodes, reports, evaluates the run and ends all processes."""

import os
import re
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
from diagnostic_msgs.msg import DiagnosticStatus, KeyValue

from arm_dynamics.control.config import parameter_file
from arm_dynamics.core import plugins
from arm_dynamics.core.errors import UnknownName
from arm_dynamics.model.load import find_urdf, load_arm
from arm_dynamics.ros.nodes import sim as command
from arm_dynamics.ros.parameters.controller_parameters import joint_space_controller_class

from .link import INITIAL, DiagnosticArray

LINE = re.compile(r"t +\d+\.\d+ s  max error \d+\.\d+ rad  +\d+ commands/s(?:  RTF 0\.\d+)?")


def alive(pid):
    """Return whether a process runs; a zombie process does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def children(pid):
    """Return the child processes of ``pid`` by module."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            words = Path(f"/proc/{child}/cmdline").read_bytes().decode().split("\0")
            found[next((w for w in words if w.startswith("arm_dynamics")), child)] = int(child)
    return found


def sim(ros, *arguments, domain=None):
    return ros.launch("cli.main", "sim", "--headless", *arguments, domain=domain)


def running(ros, *arguments):
    """Start a simulation; return it and its children after its first status line.

    ``--composed``: one node starts in half the time of two. It serves tests of the command itself.
    """
    process = sim(ros, *arguments)
    ros.wait_for(lambda: LINE.search(process.output), "no status line")
    assert all(len(line) <= 80 for line in process.output.splitlines() if LINE.match(line))
    return process, children(process.pid)


def test_a_passed_run_ends_with_0_and_a_summary(ros):
    """One status line per second is printed after the discovery of the nodes."""
    process = sim(ros, "--duration", "6")
    assert process.wait() == 0, process.output
    assert process.output.startswith("arm 'five_dof': tool frame = tool\n")
    times = [float(line.split()[1]) for line in LINE.findall(process.output)]
    assert len(times) >= 2
    # Less than 1 s where simulated time is slower than the wall clock.
    assert all(0 <= after - before < 3 for before, after in pairwise(times))
    end = re.search(r"^passed: max joint error .* after (\d+\.\d+) s", process.output, re.M)
    assert float(end[1]) >= 6


@pytest.mark.slow
def test_simultaneous_runs_use_separate_domains(ros):
    """Two runs with different arms perform their demo motions in separate domains."""
    arms = ("five_dof", "two_link")
    options = "--composed", "--motion", "demo", "--duration", "3"
    both = [sim(ros, arm, *options, domain="") for arm in arms]
    assert [process.wait() for process in both] == [0, 0], ros.report("")
    domains = [re.search(r"^ROS domain (\d+); to join: .*$", p.output, re.M) for p in both]
    assert domains[0][1] != domains[1][1]
    for process, domain in zip(both, domains, strict=True):
        assert f"ROS_DOMAIN_ID={domain[1]} ros2 topic list" in domain[0]
        own = [line for line in process.output.splitlines() if not line.startswith("[")]
        assert max(len(line) for line in own if "compiles for this machine" not in line) <= 80
        assert "rejected" not in process.output


@pytest.mark.slow
def test_a_second_run_in_the_same_domain_is_rejected(ros):
    first, _ = running(ros, "five_dof", "--composed")
    second = sim(ros, "two_link")
    assert second.wait() == 2
    *_, line = second.output.splitlines()
    assert f"ROS domain {ros.domain}: arm-dynamics sim five_dof (process {first.pid})" in line
    reported = len(LINE.findall(first.output))
    ros.wait_for(lambda: len(LINE.findall(first.output)) > reported + 1, "the first is disturbed")
    assert first.stop() == 0
    assert "several publishers" not in first.output


@pytest.mark.slow
def test_a_domain_with_another_arm_is_rejected(ros):
    ros.start("simulator")
    states = ros.states()
    ros.wait_for(lambda: len(states), "no state")
    process = sim(ros, "two_link", "--domain", str(ros.domain), domain="")
    assert process.wait() == 2
    (line,) = [line for line in process.output.splitlines() if "simulator" in line][-1:]
    assert "/simulator" in line
    assert "/joint_states" in line
    assert "expected no other arm or controller" in line


@pytest.mark.slow
def test_diagnostics_of_other_runs_are_ignored(ros):
    """Diagnostics of another run with other values do not appear in the status lines."""
    process, _ = running(ros, "--composed", "--motion", "hold")
    before = len(LINE.findall(process.output))
    values = {"max joint error [rad]": "0.987", "commands per second": "777", "run": "another"}
    for name in ("simulator", "joint_controller"):
        pairs = [KeyValue(key=key, value=value) for key, value in values.items()]
        status = DiagnosticStatus(name=name, hardware_id="arm_dynamics", values=pairs)
        ros.publish(DiagnosticArray(status=[status]), "/diagnostics")
    ros.wait_for(lambda: len(LINE.findall(process.output)) > before + 2, "no status line")
    assert "0.987" not in process.output


@pytest.mark.slow
def test_an_interrupted_demo_motion_continues_from_the_measured_configuration(ros):
    """After a reset to another configuration the demo motion continues without a rejection."""
    process, _ = running(ros, "--composed", "--motion", "demo")
    states, q = ros.states(), [1.5, 0.5, -1.0, 1.0, 1.0]
    assert ros.set("simulator", reset_positions=q)[0].successful
    assert ros.trigger("simulator/reset").success
    ros.wait_for(lambda: np.abs(states.newest.position - np.array(q)).max() < 0.1, "no reset")
    home = INITIAL + 0.05
    ros.wait_for(lambda: np.abs(states.newest.position - home).max() < 0.12, "no motion")
    assert process.stop() == 0
    assert "rejected" not in process.output


def test_an_interrupt_ends_all_processes_with_0(ros):
    process, started = running(ros)
    assert set(started) == {
        "arm_dynamics.ros.nodes.simulator",
        "arm_dynamics.ros.nodes.joint_controller",
    }
    assert process.stop() == 0
    assert not any(alive(pid) for pid in started.values())
    assert "Traceback" not in process.output


def test_a_composed_simulation_runs_in_one_process(ros):
    process, started = running(ros, "--composed")
    assert set(started) == {"arm_dynamics.ros.nodes.composed"}
    assert process.stop() == 0
    assert not any(alive(pid) for pid in started.values())


@pytest.mark.slow
def test_children_end_with_a_killed_supervisor(ros):
    process, started = running(ros, "--composed")
    process.kill()
    ros.wait_for(lambda: not any(alive(pid) for pid in started.values()), "children live on", 20)


@pytest.mark.slow
def test_the_end_of_a_child_ends_the_run(ros):
    process, started = running(ros)
    os.kill(started["arm_dynamics.ros.nodes.joint_controller"], signal.SIGKILL)
    assert process.wait(30) != 0
    assert "joint_controller ended unexpectedly" in process.output
    assert not any(alive(pid) for pid in started.values())


@pytest.mark.slow
def test_a_failed_run_has_exit_code_1(ros, tmp_path):
    """The controller's model has a payload of 2 kg that the arm lacks, and its gains are small."""
    file = tmp_path / "weak.yaml"
    gains = "".join(f"      R{k}: {{p: 1.0, i: 0.0, d: 1.0}}\n" for k in range(1, 6))
    file.write_text(
        "simulator:\n  ros__parameters: {arm: five_dof}\n"
        f"joint_controller:\n  ros__parameters:\n    payload_mass: 2.0\n    gains:\n{gains}"
    )
    process = sim(ros, "--composed", "--duration", "2", "--params-file", str(file))
    assert process.wait() == 1, process.output
    assert "FAILED" in process.output


@pytest.mark.slow
@pytest.mark.parametrize("composed", [[], ["--composed"]])
def test_omitted_options_come_from_the_parameter_file(ros, tmp_path, composed):
    file = tmp_path / "mine.yaml"
    file.write_text(
        "simulator:\n  ros__parameters: {update_rate: 250.0, lockstep: true}\n"
        "joint_controller:\n  ros__parameters: {controller: pid}\n"
    )
    running(ros, "--params-file", str(file), *composed)
    assert ros.get("simulator", "update_rate") == 250.0
    assert ros.get("simulator", "lockstep") is True
    assert ros.get("joint_controller", "controller") == "pid"


@pytest.mark.slow
def test_options_override_the_parameter_file(ros, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(
        "simulator:\n  ros__parameters: {update_rate: 250.0, lockstep: true}\n"
        "joint_controller:\n  ros__parameters: {controller: pid}\n"
    )
    options_given = ["--rate", "200", "--realtime", "--controller", "pid_gravity"]
    running(ros, "--composed", "--params-file", str(file), *options_given)
    assert ros.get("simulator", "update_rate") == 200.0
    assert ros.get("simulator", "lockstep") is False
    assert ros.get("joint_controller", "controller") == "pid_gravity"


@pytest.mark.slow
def test_a_suspended_simulator_ends_the_run_with_1(ros):
    process, started = running(ros, "--duration", "1000")
    os.kill(started["arm_dynamics.ros.nodes.simulator"], signal.SIGSTOP)
    assert process.wait() == 1, process.output
    assert "no command reached the arm within 10 s" in process.output
    assert not any(alive(pid) for pid in started.values())


@pytest.mark.slow
def test_a_missing_first_command_is_explained_and_ends_the_run_with_1(ros):
    """The times are shorter than any start of a node, as on a busy machine without a cache."""
    text = (
        "from arm_dynamics.ros.nodes import sim;"
        "sim.START_TIMEOUT, sim.NOTICE_PERIOD = 2.0, 0.2;"
        "raise SystemExit(sim.run(['--headless']))"
    )
    env = {**os.environ, "ROS_DOMAIN_ID": str(ros.domain)}
    done = subprocess.run(
        [sys.executable, "-c", text],
        env=env,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r"no command reached the arm for \d s: the first start compiles", done.stdout)
    assert "no command reached the arm within 2 s" in done.stdout


@pytest.mark.slow
def test_a_paused_simulation_does_not_end_the_run(ros):
    process, _ = running(ros, "--composed")
    ros.pause()
    time.sleep(13)
    assert process.code is None, process.output
    ros.pause(False)
    reported = len(LINE.findall(process.output))
    ros.wait_for(lambda: len(LINE.findall(process.output)) > reported, "no status line again")
    assert process.stop() == 0


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["six_dof"], "six_dof"),
        (["--controller", "magic"], "magic"),
        (["--duration", "-1"], "duration"),
        (["--rate", "nan"], "rate"),
        (["--params-file", "/no/such.yaml"], "/no/such.yaml"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_bad_arguments_end_with_2_before_anything_starts(ros, arguments, word):
    started = time.monotonic()
    process = sim(ros, *arguments)
    assert process.wait() == 2, process.output
    assert word in process.output
    assert "Traceback" not in process.output
    assert time.monotonic() - started < 30


@pytest.mark.slow
def test_position_motors_are_held_by_position_commands(ros, tmp_path):
    """The topic joint_commands contains positions if the controller commands positions.

    The nodes do not repeat the warnings of the URDF.
    """
    text = find_urdf("four_joint").read_text()
    mesh = '<mesh filename="package://none/a.stl"/>'
    text = re.sub("<(box|cylinder|sphere) [^>]*/>", mesh, text)
    text = re.sub('<command_interface name="effort"', '<command_interface name="position"', text)
    text = text.replace(">ideal<", ">rate_limited<")
    text = text.replace('name="initial_value">0<', 'name="initial_value">1<')
    (tmp_path / "servos.urdf").write_text(text)
    arguments = (str(tmp_path / "servos.urdf"), "--controller", "position", "--duration", "2")
    process = sim(ros, *arguments)
    assert process.wait() == 0, process.output
    assert re.search(r"^passed: max joint error", process.output, re.M)
    assert process.output.count("package 'none' is not above the file nor installed") == 1


def test_a_controller_without_a_supported_interface_is_rejected(ros):
    process = sim(ros, "five_dof", "--controller", "position")
    assert process.wait() == 2
    assert (
        "interface = position; expected effort, voltage (actuator of joint 'R1')" in process.output
    )
    assert "controllers of this arm: pid, gravity_compensation, pid_gravity" in process.output


def options(*arguments):
    options_given = command.command_parser().parse_args(arguments)
    command.check_options(options_given)
    return options_given


def test_the_help_lists_the_accepted_controllers():
    """The joint controller node runs each of them; others are rejected with the list."""
    text = " ".join(command.command_parser().format_help().split())
    offered = re.search(r"--controller NAME controller: (.*?) \(default", text)[1].split(", ")
    assert {"pid_gravity", "computed_torque", "lqr", "position"} <= {*offered}
    for name in plugins.registered_names("controllers"):
        if name not in offered:
            with pytest.raises(UnknownName, match=f"'{name}'; known: {', '.join(sorted(offered))}"):
                options("--controller", name)
        else:
            assert joint_space_controller_class(name)
            if name != "position":
                assert options("--controller", name).controller == name


def test_a_controller_of_the_parameter_file_is_checked_before_anything_starts(tmp_path):
    file = tmp_path / "tool.yaml"
    file.write_text("joint_controller: {ros__parameters: {controller: impedance}}")
    with pytest.raises(UnknownName, match="'impedance'; known: computed_torque"):
        options("--gains", str(file))


GRIPPER = """
  <link name="finger"><inertial><mass value="0.1"/>
    <inertia ixx="1e-4" iyy="1e-4" izz="1e-4" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="finger_joint" type="prismatic"><parent link="{tool}"/><child link="finger"/>
    <axis xyz="0 1 0"/><limit lower="0" upper="0.04" effort="20" velocity="0.2"/></joint>
  <link name="other"><inertial><mass value="0.1"/>
    <inertia ixx="1e-4" iyy="1e-4" izz="1e-4" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="mimic_joint" type="prismatic"><parent link="{tool}"/><child link="other"/>
    <axis xyz="0 -1 0"/><limit lower="0" upper="0.04" effort="20" velocity="0.2"/>
    <mimic joint="finger_joint"/></joint>
</robot>"""


@pytest.mark.slow
def test_options_apply_to_an_arm_with_a_gripper(ros, tmp_path):
    """The options lock joints and set the initial configuration, payload and time step."""
    arm = load_arm("five_dof")
    file = tmp_path / "gripper.urdf"
    file.write_text(arm.urdf.replace("</robot>", GRIPPER.format(tool=arm.tool_frame)))
    gains = str(parameter_file("five_dof"))
    process, _ = running(
        ros, "--composed", str(file), "--gains", gains, "--configuration=0.1,-0.4,0.3,-0.2",
        "--payload", "0.2", "--payload-modeled", "--dt", "2e-4", "--duration", "4",
        "--tool-frame", "finger",
        *(w for j in ("finger_joint", "mimic_joint", "R5") for w in ("--lock", j)),
    )  # fmt: skip
    assert ros.get("simulator", "dt") == 2e-4
    assert ros.get("simulator", "payload_mass") == 0.2
    assert ros.get("simulator", "tool_frame") == "finger"
    assert ros.get("joint_controller", "payload_mass") == 0.2
    assert list(ros.get("simulator", "initial_positions")) == [0.1, -0.4, 0.3, -0.2]
    assert process.wait() == 0, process.output
    assert re.search(r"^passed: max joint error", process.output, re.M)
