"""``arm-dynamics sim`` without ROS: one loop, with the lines and the page of the nodes."""

import re
import signal
import subprocess
import sys

import pytest

pytest.importorskip("viser", reason="viser is not installed")
import chromium
from browser import Panel
from websockets.exceptions import InvalidStatus

from arm_dynamics.cli import sim as command
from arm_dynamics.core.errors import ArmDynamicsError
from arm_dynamics.core.status_summary import StatusSummary
from arm_dynamics.recording.replay import replay

WITHOUT_ROS = """
import sys
sys.modules["rclpy"] = None
from arm_dynamics.cli.start import main
main()
"""
STOP_WHILE_SCROLLED = """(() => {
  const panel = [...document.querySelectorAll('.mantine-ScrollArea-viewport')].find(
    e => e.clientHeight);
  panel.scrollTop = panel.scrollHeight;
  const buttons = [...document.querySelectorAll('button')];
  const stop = buttons.find(e => e.innerText === 'EMERGENCY STOP' && e.clientWidth)
    .getBoundingClientRect();
  const x = stop.x + stop.width / 2, y = stop.y + stop.height / 2;
  const top = document.elementFromPoint(x, y)?.closest('button')?.innerText;
  return panel.scrollTop > 100 && top === 'EMERGENCY STOP' && stop.height > 20;
})()"""
"""Whether the emergency stop can be clicked although the panel is at its end."""
STOP = """(e => { const r = e?.getBoundingClientRect();
  const x = r?.x + r?.width / 2, y = r?.y + r?.height / 2;
  return e && document.elementFromPoint(x, y)?.closest('button') === e && [x, y]
})([...document.querySelectorAll('button')].find(
  e => e.innerText === 'EMERGENCY STOP' && e.clientWidth))"""
"""Center [px] of the emergency stop, if it can be clicked."""
CENTER = """(e => { const r = e?.getBoundingClientRect();
  return e && [r.x + r.width / 2, r.y + r.height / 2]})(document.querySelector('{}'))"""
"""Center [px] of an element."""
SHEET = '[style*="max-height: 60%"]'
"""The panel of a narrow screen."""
FREE_HEIGHT = """Math.min(...[...document.querySelectorAll('button')].filter(
  e => e.innerText === 'Pause').map(e => e.closest('[class*=Paper]').getBoundingClientRect().y))"""
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


def position(run, joint):
    """Return the position of a joint in the table of the page [rad]."""
    row = re.search(rf"title='{joint}'.*?>([+-]\d+\.\d+)<", run.page.text)
    return float(row[1])


def test_steps_and_speed(run):
    run.page.push("Pause")
    run.page.wait_for(lambda: "Step" in run.page.offered, "no steps")
    run.page.push("Step")
    run.reports("step: 1 control periods")
    run.page.push("Step 0.1 s")
    run.reports("step: 50 control periods")
    run.page.push("Continue")
    run.page.wait_for(lambda: "Step" not in run.page.offered, "steps while running")
    run.page.set("Speed", "0.25")
    run.reports("speed: 0.25 x real time")
    run.page.wait_for(lambda: "RTF 0.2" in run.output, "no slow motion")
    run.page.set("Speed", "1")
    run.reports("speed: 1 x real time")


def test_the_controller_is_switched_and_its_margins_are_shown(run):
    run.page.wait_for(lambda: "stability margins: gain" in run.page.text, "no margins")
    menu = run.page.named("Controller")[0]
    assert {"pid", "pid_gravity", "computed_torque"} <= {*menu["props"]["options"]}
    assert "impedance" not in menu["props"]["options"]
    before = menu["value"]
    other = "pid" if before != "pid" else "pid_gravity"
    run.page.set("Controller", other)
    run.reports(f"controller: {other}")
    run.page.set("Controller", before)
    run.reports(f"controller: {before}")


def test_a_named_pose_and_the_handle_of_the_tool_move_the_arm(run):
    run.page.push("zero")
    run.page.wait_for(lambda: abs(position(run, "R2")) < 2e-3, "R2 is not at zero")
    run.page.push("initial")
    run.page.wait_for(lambda: abs(position(run, "R2") + 1.1) < 0.01, "R2 is not at -1.1 rad")
    run.page.wait_for(lambda: "joint targets reached" in run.page.text, "no result")
    handle = run.page.wait_for(lambda: run.page.nodes.get("/target"), "no handle")
    at = [*handle["position"]]
    before = [position(run, f"R{i}") for i in range(1, 6)]
    run.page.drag_handle("/target", (at[0], at[1] + 0.01, at[2]), (at[0], at[1] + 0.03, at[2]))
    run.page.wait_for(
        lambda: max(abs(position(run, f"R{i + 1}") - q) for i, q in enumerate(before)) > 0.02,
        "the arm does not follow the handle",
    )
    run.reports("joint targets reached")


def test_a_drag_of_a_link_pushes_the_arm(run):
    names = [n for n, m in run.page.nodes.items() if n.startswith("/arm/") and "Glb" in m["type"]]
    shape = max(names, key=lambda name: name.count("/"))
    tool = run.page.nodes["/target"]["position"]
    far = (tool[0], tool[1] + 0.3, tool[2])
    before = position(run, "R1")
    run.page.drag_node(shape, "start", tool, tool)
    run.page.drag_node(shape, "update", tool, far)
    run.page.wait_for(lambda: abs(position(run, "R1") - before) > 6e-3, "the arm is not pushed")
    run.page.drag_node(shape, "end", tool, far)
    run.page.wait_for(lambda: abs(position(run, "R1") - before) < 3e-3, "the push does not end")


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


def test_the_address_has_a_token_and_another_one_is_rejected(run):
    root, _, token = run.page._url.rpartition("/")
    assert len(token) > 20
    with pytest.raises(InvalidStatus, match="403"):
        Panel(root)


@pytest.mark.slow
@pytest.mark.skipif(chromium.PROGRAM is None, reason="Chromium is not installed")
def test_the_controls_work_in_chromium_at_each_width(run):
    """By mouse clicks, with another browser open and across a reload while the arm moves."""
    if "Start demo" in run.page.offered:
        run.page.push("Start demo")
    with chromium.tab(run.page._url) as tab:
        tab.wait_for("document.querySelector('canvas') !== null")
        tab.click("Pause")
        run.page.wait_for(lambda: "Continue" in run.page.offered, "no pause by a click")
        tab.click("Continue")
        run.page.wait_for(lambda: "Pause" in run.page.offered, "no end of the pause by a click")
        tab.reload()
        tab.box("Pause")
        for width, height in ((1280, 800), (390, 844)):
            tab.size(width, height)
            tab.wait_for(f"!!document.querySelector('{SHEET}') === {str(width < 576).lower()}")
            tab.wait_for(STOP_WHILE_SCROLLED)
        free = tab.value(FREE_HEIGHT)
        assert free > 0.5 * 844, "the panel leaves too little of a narrow screen for the arm"
        tab.click_at(
            tab.value(CENTER.replace("{}", SHEET))[0], tab.value(FREE_HEIGHT) + 20
        )  # the title folds nothing
        tab.value("document.querySelector('.fold').scrollIntoView({block: 'center'})")
        tab.click_at(*tab.value(CENTER.replace("{}", ".fold input")))
        tab.wait_for(f"{FREE_HEIGHT} > 0.8 * 844")  # the small panel
        stop_and_release(run, tab)
        tab.size(1280, 800)
        tab.click_at(*tab.wait_for(CENTER.replace("{}", '[aria-label="Collapse panel area"]')))
        tab.wait_for("!document.body.innerText.includes('Joint targets')")
        stop_and_release(run, tab)
        assert not tab.outside()


def stop_and_release(run, tab):
    """Press the emergency stop by a click, and release it."""
    tab.click_at(*tab.wait_for(STOP))
    run.reports("emergency stop by the page")
    run.page.push("Release")
    run.page.push("Release now")
    run.reports("emergency stop released")
    run.page.wait_for(lambda: "emergency stop by the page" not in run.page.text, "it is engaged")


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


@pytest.mark.parametrize(
    ("arguments", "count", "code"),
    [(["--duration", "2"], 1, 1), (["--duration", "2"], 0, None), ([], 1, None)],
)
def test_a_diverged_simulation_ends_a_run_of_a_given_duration_with_1(arguments, count, code):
    status = StatusSummary()
    status.take("simulator", False, "paused", {"paused": "true", "diverged": str(count)})
    options = command.command_parser().parse_args(["so101", *arguments])
    assert command.RunReport(status, options).update(demo=None) == code
