"""The page of ``arm-dynamics sim`` is used as a browser does: by the messages that it sends."""

import re
from html import escape
from math import nan
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("viser", reason="viser is not installed")
from browser import Panel
from websockets.exceptions import ConnectionClosed

from arm_dynamics.ros.nodes.demo_motion import RemoteDemo

from .link import INITIAL, JOINTS, Motion

FOUND = re.compile(r"the arm is shown at (http://\S+)")


class Run:
    """Simulation with its browser page and recorded states."""

    def __init__(self, ros):
        self.ros = ros
        self.process = ros.launch("cli.main", "sim", "--port", "0")
        url = ros.wait_for(lambda: FOUND.search(self.process.output), "no page")[1]
        self.states = ros.states()
        self.page = Panel(url)
        self.page.wait_for(lambda: "Stop demo" in self.page.offered, "no controls", 180)
        ros.wait_until(self.states, 0.5)

    @property
    def q(self):
        return np.array(self.states.newest.position)

    def at(self, goal, tolerance=0.01):
        return self.page.wait_for(
            lambda: np.abs(self.q - goal).max() < tolerance, f"not at {goal}, but at {self.q}"
        )

    def rest(self):
        """Stop the demo motion; return the configuration of the arm at rest."""
        self.page.wait_for(lambda: self.page.offered, "no controls")
        if "Stop demo" in self.page.offered:
            self.page.push("Stop demo")
        self.ros.wait_longer(self.states, 2.0)
        return self.q

    def reports(self, words):
        return self.page.wait_for(lambda: words in self.page.text, f"no '{words}'")

    def lines(self, words):
        return sum(words in line for line in self.process.output.splitlines())


@pytest.fixture(scope="module")
def sim(shared):
    return Run(shared)


def test_a_slider_interrupts_the_demo_motion_and_moves_the_arm(sim):
    """The other joints move to their sliders; the demo motion restarts from there."""
    page = sim.page
    page.set("R1", 0.4)
    page.wait_for(lambda: "Start demo" in page.offered, "the demo was not stopped")
    sim.reports("joint targets reached")
    goal = [page.sliders[name] for name in JOINTS]
    assert goal[0] == 0.4
    sim.at(goal)
    page.push("Start demo")
    page.wait_for(lambda: "Stop demo" in page.offered, "the demo did not start")
    sim.page.wait_for(lambda: np.abs(sim.q - goal).max() > 0.1, "the arm stands")
    sim.page.wait_for(lambda: abs(page.sliders["R2"] - sim.q[1]) < 0.1, "the sliders stand")
    page.push("Stop demo")
    sim.reports("demo stopped")


@pytest.mark.parametrize(
    ("running", "ready", "ended"), [(None, True, False), (None, False, True), (True, True, False),
                                    (False, True, True)],
)  # fmt: skip
def test_a_target_waits_for_the_end_of_an_unconfirmed_demo_motion(running, ready, ended):
    requests = []
    tour = object.__new__(RemoteDemo)
    tour.running, tour._end_request = running, None
    tour._remote = SimpleNamespace(
        ready=ready, call_async=lambda request: requests.append(request.data)
    )
    assert tour.end() is ended
    assert requests == ([] if ended else [False])


@pytest.mark.slow
def test_every_page_shows_the_same_and_each_can_act(sim):
    with Panel(sim.page._url) as other:
        other.wait_for(lambda: "R5" in other.sliders, "no sliders")
        other.set("R5", -0.3)
        sim.page.wait_for(lambda: sim.page.sliders["R5"] == -0.3, "the first page shows another")
        sim.page.wait_for(lambda: abs(sim.q[4] + 0.3) < 0.01, "R5 did not move")


def test_pause_and_continue(sim):
    sim.page.push("Pause")
    sim.page.wait_for(lambda: "Continue" in sim.page.offered, "no pause")
    sim.ros.wait_for(lambda: sim.lines("simulated time stopped: paused") > 1, "no status line")
    count = len(sim.states)
    sim.ros.wait_for(lambda: sim.lines("simulated time stopped: paused") > 3, "no status line")
    assert len(sim.states) <= count + 1
    sim.page.push("Continue")
    sim.page.wait_for(lambda: "Pause" in sim.page.offered, "no end of the pause")
    sim.ros.wait_longer(sim.states, 0.1)


def test_steps_and_speed_are_those_of_the_simulator(sim):
    sim.page.push("Pause")
    sim.page.wait_for(lambda: "Step 0.1 s" in sim.page.offered, "no steps")
    sim.page.push("Step 0.1 s")
    sim.reports("step: 50 control periods")
    assert sim.ros.get("simulator", "step_count") == 50
    sim.page.push("Continue")
    sim.page.wait_for(lambda: "Pause" in sim.page.offered, "no end of the pause")
    sim.page.set("Speed", "0.5")
    sim.reports("speed: 0.5 x real time")
    assert sim.ros.get("simulator", "real_time_factor") == 0.5
    assert sim.ros.set("simulator", real_time_factor=1.0)[0].successful
    menu = sim.page.named("Speed")[0]
    sim.page.wait_for(lambda: menu["value"] == "1", "another client's value is not shown")


def test_the_controller_is_switched_and_its_margins_are_shown(sim):
    sim.page.wait_for(lambda: "stability margins: gain" in sim.page.text, "no margins")
    before = sim.ros.get("joint_controller", "controller")
    assert sim.page.named("Controller")[0]["value"] == before
    sim.page.set("Controller", "pid")
    sim.reports("controller: pid")
    assert sim.ros.get("joint_controller", "controller") == "pid"
    sim.page.set("Controller", before)
    sim.reports(f"controller: {before}")


def test_a_drag_of_a_link_pushes_the_arm_until_its_end(sim):
    before = sim.rest()
    names = [n for n, m in sim.page.nodes.items() if n.startswith("/arm/") and "Glb" in m["type"]]
    shape = max(names, key=lambda name: name.count("/"))
    tool = sim.page.nodes["/target"]["position"]
    far = (tool[0], tool[1] + 0.3, tool[2])
    sim.page.drag_node(shape, "start", tool, tool)
    sim.page.drag_node(shape, "update", tool, far)
    sim.page.wait_for(lambda: np.abs(sim.q - before).max() > 1e-3, "the arm is not pushed")
    sim.page.drag_node(shape, "end", tool, far)
    sim.page.wait_for(lambda: np.abs(sim.q - before).max() < 1e-3, "the push does not end")


@pytest.mark.slow
def test_reset_moves_the_arm_to_its_initial_configuration(sim):
    sim.page.set("R1", -0.5)
    sim.page.wait_for(lambda: sim.q[0] < -0.4, "R1 did not move")
    sim.page.push("Reset")
    sim.reports("reset: at initial; time continues")
    sim.at(INITIAL)
    sim.page.wait_for(lambda: abs(sim.page.sliders["R1"]) < 0.01, "the slider stands")


@pytest.mark.quick(1)
@pytest.mark.parametrize("lines", [1, 12])
def test_an_emergency_stop_is_shown_and_released_and_the_run_continues(sim, lines):
    """The longer stop exceeds the time without states after which a run ends."""
    words = "simulated time stopped: emergency stop by"
    before = sim.lines(words)
    sim.page.push("EMERGENCY STOP")
    sim.reports("emergency stop by topic emergency_stop")
    sim.ros.wait_for(lambda: sim.lines(words) > before + lines, "no status line")
    assert sim.process.code is None
    count = len(sim.states)
    sim.page.push("Release")
    sim.page.wait_for(lambda: sim.page.named("Release now"), "no confirmation")
    assert len(sim.states) == count
    sim.page.push("Release now")
    sim.reports("emergency stop released")
    sim.ros.wait_for(lambda: len(sim.states) > count + 100, "time stands")
    running = sim.lines("max error")
    sim.ros.wait_for(lambda: sim.lines("max error") > running, "no status line")
    released = len(sim.process.output)  # a status from before the release may be printed until here
    sim.ros.wait_for(lambda: sim.lines("max error") > running + 1, "no status line")
    assert "emergency stop by" not in sim.process.output[released:]


@pytest.mark.slow
def test_a_push_moves_the_arm_and_the_controller_brings_it_back(sim):
    before, start = sim.rest(), len(sim.states)
    sim.page.push("Push")
    sim.reports("push of")
    sim.ros.wait_longer(sim.states, 1.0)
    motion = Motion(sim.states.messages(start))
    assert 0.3 < np.abs(motion.v).max() < 10.0  # the limit of the usual push
    sim.at(before)
    sim.page.set("x [N·s]", "1e5")
    sim.reports("push: x [N·s] = 100000")
    sim.page.push("Push")
    sim.reports("would change by")
    assert np.abs(Motion(sim.states.messages(-10)).v).max() < 0.1


@pytest.mark.slow
def test_payload_of_the_arm_and_of_the_controllers_model(sim):
    """A value that another client sets is also shown."""
    sim.rest()
    sim.page.set("simulated arm [kg]", "0.5")
    sim.reports("simulated arm [kg] = 0.5")
    assert sim.ros.get("simulator", "payload_mass") == 0.5
    sim.ros.wait_longer(sim.states, 1.0)
    loaded = abs(sim.states.newest.effort[1])
    sim.page.set("controller's model [kg]", "0.5")
    sim.reports("controller&#x27;s model [kg] = 0.5")
    assert sim.ros.get("joint_controller", "payload_mass") == 0.5
    reason = sim.ros.set("simulator", payload_mass=-1.0)[0].reason
    sim.page.set("simulated arm [kg]", "-1")
    sim.reports(f"rejected: {escape(reason)}")
    assert sim.ros.get("simulator", "payload_mass") == 0.5
    assert sim.ros.set("simulator", payload_mass=0.0)[0].successful
    field = sim.page.named("simulated arm [kg]")[-1]
    sim.page.wait_for(lambda: field["value"] == "0", "another client's value is not shown")
    sim.ros.wait_longer(sim.states, 1.0)
    assert loaded - abs(sim.states.newest.effort[1]) > 0.5  # [N m] of R2


def test_gains_of_the_running_controller_are_set_or_rejected_with_the_nodes_reason(sim):
    node, name = "joint_controller", "gains.R5.p"
    sim.page.wait_for(lambda: sim.page.named("p"), "no gains")
    before = sim.ros.get(node, name)
    sim.page.set("p", f"{0.9 * before:.6g}")  # of the last joint, R5
    sim.reports("R5: p = ")
    assert sim.ros.get(node, name) == pytest.approx(0.9 * before, rel=1e-5)
    reason = sim.ros.set(node, gains__R5__p=-5.0)[0].reason
    sim.page.set("p", "-5")
    sim.reports(f"rejected: {escape(reason)}")
    assert sim.ros.get(node, name) == pytest.approx(0.9 * before, rel=1e-5)
    sim.page.set("p", "many")
    sim.reports("rejected: R5: p")
    sim.page.set("p", f"{before:.10g}")
    sim.reports(f"R5: p = {before:g}")


@pytest.mark.slow
def test_voltages_of_the_motors_can_be_plotted(sim):
    """The page plots voltages, but no temperatures: five_dof has no thermal model."""
    choice = sim.page.wait_for(lambda: sim.page.named("Last 10 s"), "no plot")[0]
    options = choice["props"]["options"]
    sim.page.wait_for(lambda: "voltage [V]" in choice["props"]["options"], f"only {options}")
    assert "temperature [°C]" not in choice["props"]["options"]
    status = sim.ros.diagnosis("simulator: R2", lambda values: "voltage [V]" in values)
    assert 0.1 < abs(float(status["voltage [V]"])) <= 12  # carries the arm's weight
    sim.page.update(choice, value="voltage [V]")


@pytest.mark.slow
def test_invalid_messages_to_the_page_move_nothing(sim):
    before = sim.rest()
    slider = sim.page.named("R1", "Slider")[0]
    row = next(p for p in sim.page._parts.values() if "Pause" in p["props"].get("options", ()))
    for value in (nan, float("inf"), "far", None, [1.0], True, {"a": 1}):
        sim.page.send("GuiUpdateMessage", uuid=slider["uuid"], updates={"value": value})
    for updates in ({"update_cb": []}, {"value": 1.0, "min": -9.0}, {}, {"removed": True}):
        sim.page.send("GuiUpdateMessage", uuid=slider["uuid"], updates=updates)
    for value in ("Explode", "Reset\0", 3, ["Reset"]):
        sim.page.send("GuiUpdateMessage", uuid=row["uuid"], updates={"value": value})
    sim.page.send("GuiUpdateMessage", uuid="no-such-control", updates={"value": 1.0})
    with Panel(sim.page._url) as other:
        other.send("GuiUpdateMessage", uuid=slider["uuid"], updates={"value": "9" * 100_000})
        with pytest.raises(ConnectionClosed, match="1009"):
            other.until_quiet(5.0)
    sim.ros.wait_longer(sim.states, 1.0)
    np.testing.assert_allclose(sim.q, before, atol=1e-3)
    sim.page.set("R1", 0.2)
    sim.page.wait_for(lambda: abs(sim.q[0] - 0.2) < 0.01, "the page no longer works")


def test_the_run_ends_with_0(sim):
    assert sim.process.stop() == 0
    assert "Traceback" not in sim.process.output
