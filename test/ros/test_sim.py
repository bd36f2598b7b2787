"""``arm-dynamics sim`` starts what it needs, reports, judges, and leaves nothing behind."""

import os
import re
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from arm_dynamics.model.load import find_urdf

LINE = re.compile(
    r"t +\d+\.\d+ s  real-time +\d+\.\d+  worst joint error \d+\.\d+ rad"
    r"  commands +\d+ /s  deadlines missed \d+"
)


def alive(pid):
    """Whether a process runs; one that ended and was not asked for its code does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def children(pid):
    """Processes that ``pid`` started, by module."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            words = Path(f"/proc/{child}/cmdline").read_bytes().decode().split("\0")
            found[next((w for w in words if w.startswith("arm_dynamics")), child)] = int(child)
    return found


def sim(ros, *arguments):
    return ros.launch("cli.main", "sim", "--headless", *arguments)


def running(ros, *arguments):
    """A simulation that has printed a status line, and its children."""
    process = sim(ros, *arguments)
    ros.wait_for(lambda: LINE.search(process.output), "no status line")
    return process, children(process.pid)


def test_a_run_that_holds_ends_with_0_and_a_summary(ros):
    """One line a second from when the nodes have found each other."""
    process = sim(ros, "--duration", "6")
    assert process.wait() == 0, process.output
    times = [float(line.split()[1]) for line in LINE.findall(process.output)]
    assert len(times) >= 2
    assert all(0.1 < after - before < 3 for before, after in pairwise(times))
    end = re.search(r"^held: worst joint error .* after (\d+\.\d+) s", process.output, re.M)
    assert float(end[1]) >= 6


def test_an_interrupt_ends_everything_with_0(ros):
    process, started = running(ros)
    assert set(started) == {"arm_dynamics.ros.simulator", "arm_dynamics.ros.joint_controller"}
    assert process.stop() == 0
    assert not any(alive(pid) for pid in started.values())
    assert "Traceback" not in process.output


def test_in_one_process(ros):
    process, started = running(ros, "--composed")
    assert set(started) == {"arm_dynamics.ros.composed"}
    assert process.stop() == 0
    assert not any(alive(pid) for pid in started.values())


def test_children_end_with_a_killed_supervisor(ros):
    process, started = running(ros)
    process.kill()
    ros.wait_for(lambda: not any(alive(pid) for pid in started.values()), "children live on", 20)


def test_a_child_that_dies_ends_the_run(ros):
    process, started = running(ros)
    os.kill(started["arm_dynamics.ros.joint_controller"], signal.SIGKILL)
    assert process.wait(30) != 0
    assert "joint_controller ended by itself" in process.output
    assert not any(alive(pid) for pid in started.values())


def test_an_arm_that_does_not_hold_is_told_by_the_exit_code(ros, tmp_path):
    """The controller carries 2 kg that are not there and has next to no gains."""
    file = tmp_path / "weak.yaml"
    gains = "".join(f"      R{k}: {{p: 1.0, i: 0.0, d: 1.0}}\n" for k in range(1, 6))
    file.write_text(
        "simulator:\n  ros__parameters: {arm: five_dof}\n"
        f"joint_controller:\n  ros__parameters:\n    payload_mass: 2.0\n    gains:\n{gains}"
    )
    process = sim(ros, "--duration", "2", "--params-file", str(file))
    assert process.wait() == 1, process.output
    assert "NOT HELD" in process.output


@pytest.mark.parametrize("composed", [[], ["--composed"]])
def test_what_is_not_given_is_as_the_parameter_file_says(ros, tmp_path, composed):
    file = tmp_path / "mine.yaml"
    file.write_text(
        "simulator:\n  ros__parameters: {rate: 250.0, lockstep: true}\n"
        "joint_controller:\n  ros__parameters: {controller: pid}\n"
    )
    running(ros, "--params-file", str(file), *composed)
    assert ros.get("simulator", "rate") == 250.0
    assert ros.get("simulator", "lockstep") is True
    assert ros.get("joint_controller", "controller") == "pid"


def test_what_is_given_wins_over_the_parameter_file(ros, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(
        "simulator:\n  ros__parameters: {rate: 250.0, lockstep: true}\n"
        "joint_controller:\n  ros__parameters: {controller: pid}\n"
    )
    given = ["--rate", "200", "--no-lockstep", "--controller", "pid_gravity"]
    running(ros, "--params-file", str(file), *given)
    assert ros.get("simulator", "rate") == 200.0
    assert ros.get("simulator", "lockstep") is False
    assert ros.get("joint_controller", "controller") == "pid_gravity"


def test_a_simulator_that_hangs_ends_the_run_with_1(ros):
    process, started = running(ros, "--duration", "1000")
    os.kill(started["arm_dynamics.ros.simulator"], signal.SIGSTOP)
    assert process.wait() == 1, process.output
    assert "no command reached the arm within 10 s" in process.output
    assert not any(alive(pid) for pid in started.values())


def test_a_first_command_that_does_not_come_is_explained_and_ends_the_run_with_1(ros):
    """As on a busy machine with nothing compiled: no node starts within these times."""
    text = (
        "from arm_dynamics.ros import sim;"
        "sim.START_UP, sim.NOTICE = 1.0, 0.3;"
        "raise SystemExit(sim.run(['--headless']))"
    )
    env = {**os.environ, "ROS_DOMAIN_ID": str(ros.domain)}
    done = subprocess.run(
        [sys.executable, "-c", text],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "no command reached the arm for 0 s: the first start compiles" in done.stdout
    assert "no command reached the arm within 1 s" in done.stdout


def test_a_paused_simulation_is_waited_for(ros):
    process, _ = running(ros)
    ros.pause()
    time.sleep(13)
    assert process.code is None, process.output
    ros.pause(False)
    reported = len(LINE.findall(process.output))
    ros.wait_for(lambda: len(LINE.findall(process.output)) > reported, "no status line again")
    assert process.stop() == 0


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


def test_servos_are_held_by_position_commands(ros, tmp_path):
    """joint_commands carry positions where the law commands them."""
    text = find_urdf("five_dof").read_text()
    text = re.sub('<command_interface name="effort"', '<command_interface name="position"', text)
    text = text.replace(">dc_motor<", '>rate_limited</param><param name="minimum">-3<')
    text = re.sub('<param name="(kt|ke|resistance)">.*?</param>', "", text)
    (tmp_path / "servos.urdf").write_text(text)
    arguments = (str(tmp_path / "servos.urdf"), "--controller", "position", "--duration", "2")
    process = sim(ros, *arguments)
    assert process.wait() == 0, process.output
    assert re.search(r"^held: worst joint error", process.output, re.M)


def test_a_law_that_the_motors_do_not_understand_is_refused(ros):
    process = sim(ros, "five_dof", "--controller", "position")
    assert process.wait() == 2
    assert "commands position; the actuator of joint 'R1' takes effort, voltage" in process.output
