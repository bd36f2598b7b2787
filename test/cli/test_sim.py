"""``arm-dynamics sim`` without ROS: one loop, with the lines and the page of the nodes."""

import re
import signal
import subprocess
import sys

import pytest

pytest.importorskip("viser", reason="viser is not installed")
from browser import Panel

from arm_dynamics.cli import sim as command
from arm_dynamics.core.errors import ArmDynamicsError
from arm_dynamics.recording.replay import replay

WITHOUT_ROS = """
import sys
sys.modules["rclpy"] = None
from arm_dynamics.cli.start import main
main()
"""
LINE = re.compile(r"t +\d+\.\d+ s  max error \d+\.\d+ rad  +\d+ commands/s(?:  RTF 0\.\d+)?")


def start(file, *arguments):
    """Start ``arm-dynamics sim`` in an interpreter that cannot import rclpy."""
    with file.open("w") as output:
        return subprocess.Popen(
            [sys.executable, "-c", WITHOUT_ROS, "sim", *arguments],
            stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip


def options(*arguments):
    parsed = command.command_parser().parse_args(arguments)
    return parsed, command.check_options(parsed)


class Run:
    """Simulation with its page, in another process."""

    def __init__(self, folder):
        self.file = folder / "output"
        self.process = start(self.file, "--port", "0")
        shown = re.compile(r"the arm is shown at (http://\S+)")
        while not (found := shown.search(self.output)):
            with pytest.raises(subprocess.TimeoutExpired):  # the process runs
                self.process.wait(0.1)
        self.page = Panel(found[1])
        self.page.wait_for(lambda: "Stop demo" in self.page.offered, "no controls", 300)

    @property
    def output(self):
        return self.file.read_text()

    def count(self, words):
        return sum(words in line for line in self.output.splitlines())

    def reports(self, words):
        self.page.wait_for(lambda: words in self.page.text, f"no '{words}'")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    run = Run(tmp_path_factory.mktemp("sim"))
    yield run
    run.page.__exit__()
    run.process.kill()
    run.process.wait()


def test_the_demo_motion_runs_and_the_status_lines_are_those_of_the_nodes(run):
    run.page.wait_for(lambda: LINE.search(run.output), "no status line")
    arm, ros, *_ = run.output.splitlines()
    assert arm == "arm 'five_dof': tool frame = tool"
    assert ros.startswith("no ROS topics and services: rclpy is not installed; ")
    first = dict(run.page.sliders)
    run.page.wait_for(lambda: run.page.sliders != first, "the sliders do not follow the motion")


def test_a_slider_interrupts_the_demo_motion_and_moves_the_arm(run):
    run.page.set("R1", 0.4)
    run.page.wait_for(lambda: "Start demo" in run.page.offered, "the demo was not stopped")
    run.reports("joint targets reached")
    run.page.push("Start demo")
    run.page.wait_for(lambda: "Stop demo" in run.page.offered, "the demo did not start")
    run.page.push("Stop demo")
    run.reports("demo stopped")


def test_pause_reset_and_push(run):
    run.page.push("Pause")
    run.page.wait_for(lambda: "Continue" in run.page.offered, "no pause")
    run.page.wait_for(
        lambda: run.count("simulated time stopped: paused") > 1, "no status line of the pause"
    )
    run.page.push("Continue")
    run.page.wait_for(lambda: "Pause" in run.page.offered, "no end of the pause")
    run.page.push("Reset")
    run.reports("reset: at initial; time continues")
    run.page.push("Push")
    run.reports("push of [")
    run.page.set("x [N·s]", "1e5")
    run.reports("push: x [N·s] = 100000")
    run.page.push("Push")
    run.reports("would change by")


def test_an_emergency_stop_is_shown_and_released_and_the_run_continues(run):
    run.page.push("EMERGENCY STOP")
    run.reports("emergency stop by the page")
    stopped = "simulated time stopped: emergency stop by the page"
    run.page.wait_for(lambda: run.count(stopped), "no status line of the stop")
    run.page.set("R1", 0.2)
    run.reports("reset it before a target")
    run.page.push("Release")
    run.page.wait_for(lambda: run.page.named("Release now"), "no confirmation")
    run.page.push("Release now")
    run.reports("emergency stop released")
    running = run.count("max error")
    run.page.wait_for(lambda: run.count("max error") > running + 1, "time stands")


def test_payload_and_gains_are_set_or_rejected_with_the_reason(run):
    run.page.set("simulated arm [kg]", "0.5")
    run.reports("simulated arm [kg] = 0.5")
    run.page.set("controller's model [kg]", "-1")
    run.reports("rejected: joint_controller: payload_mass = -1 kg; expected at least 0")
    before = run.page.named("p")[-1]["value"]
    run.page.set("p", "-5")
    run.reports("p = -5")
    run.page.wait_for(lambda: run.page.named("p")[-1]["value"] == before, "the field keeps it")
    run.page.set("p", f"{0.9 * float(before):.6g}")
    run.reports(f"R5: p = {0.9 * float(before):.6g}")


def test_an_interrupt_ends_the_run_with_0(run):
    run.process.send_signal(signal.SIGINT)
    assert run.process.wait(60) == 0
    assert run.output.splitlines()[-1] == "stopped"
    assert "Traceback" not in run.output


def test_a_passed_run_ends_with_0_and_is_recorded(tmp_path):
    pytest.importorskip("rosbags", reason="rosbags is not installed")
    file, folder = tmp_path / "output", tmp_path / "run"
    arguments = ["--headless", "--motion", "demo", "--duration", "1", "--record", str(folder)]
    assert start(file, *arguments).wait(300) == 0, file.read_text()
    assert re.search(r"^passed: max joint error .* after \d+\.\d+ s$", file.read_text(), re.M)
    report = replay(folder)
    assert report.finished
    assert report.periods > 400
    assert report.first is None  # identical to the last bit


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--domain", "5"], "--domain = 5: rclpy is not installed"),
        (["six_dof"], "six_dof"),
        (["--rate", "333"], "update_rate = 333 Hz; expected a period"),
        (["--gains", "/no/such.yaml"], "/no/such.yaml"),
    ],
)
def test_bad_arguments_are_rejected_before_the_loop_runs(arguments, words):
    with pytest.raises(ArmDynamicsError, match=re.escape(words)):
        command.run(["--headless", *arguments])


def test_the_parameter_file_of_the_simulator_applies(tmp_path):
    """An option overrides the file, as with nodes."""
    file = tmp_path / "mine.yaml"
    file.write_text(
        "simulator:\n  ros__parameters:\n    update_rate: 250.0\n    payload_mass: 0.2\n"
        "    initial_positions: [0.1, 0.2, 0.3, 0.4, 0.5]\n    real_time_factor: 2.0\n"
        "    motors: {R1: {kt: 0.03}}\n"
    )
    simulation, factor = command.build_simulation(*options("--gains", str(file)))
    assert factor == 2.0
    assert simulation.period == pytest.approx(1 / 250)
    assert simulation.arm.payload.mass == 0.2
    assert simulation.arm.actuators[0].constants["kt"] == 0.03
    assert simulation.state.q.tolist() == [0.1, 0.2, 0.3, 0.4, 0.5]
    given = "--gains", str(file), "--payload", "0.4", "--rate", "1000"
    simulation, _ = command.build_simulation(*options(*given, "--configuration", "0,0,0,0,0"))
    assert simulation.arm.payload.mass == 0.4
    assert simulation.period == pytest.approx(1e-3)
    assert not simulation.state.q.any()
