"""The control loop: settling times, and every failure of a control cycle."""

from functools import cache

import numpy as np
import pytest
import yaml
from conftest import displaced, five_dof

from arm_dynamics import load_arm
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.controllers.pid import PidGravity
from arm_dynamics.control.controllers.position import PositionController
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.control.trajectories.trajectory_parsing import parse_trajectory
from arm_dynamics.core import plugins, resources
from arm_dynamics.core.errors import DriverFault, InvalidValue, TrajectoryRejected, UnknownName
from arm_dynamics.core.state import CheckedCommand, Command, Reference, State
from arm_dynamics.dynamics import rigid_body
from arm_dynamics.hardware.driver import Driver
from arm_dynamics.hardware.simulation_driver import SimulationDriver
from arm_dynamics.simulation.simulation import Simulation

HOME = five_dof().configuration("initial")


@cache
def gains():
    path = resources.resource_folder("config") / "five_dof.yaml"
    return yaml.safe_load(path.read_text())["joint_controller"]["ros__parameters"]["gains"]


class DelayedDriver(SimulationDriver):
    """Simulated arm whose motors receive each command some periods late."""

    def __init__(self, arm, simulation, periods):
        super().__init__(arm, simulation)
        hold = rigid_body.gravity(arm, simulation.state.q)
        self._delayed = [Command.checked("effort", hold, arm.nv)] * periods

    def write(self, command):
        self._delayed.append(command)
        super().write(self._delayed.pop(0))


def errors(start, carried, modeled, period=2e-3, late=0, seconds=2.0):
    """Return the max joint error [rad] after each period of a step to the initial configuration."""
    arm = five_dof()
    sim = Simulation(arm.with_payload(carried), q=start, period=period)
    controller = PidGravity(arm.with_payload(modeled), gains())
    loop = ControlLoop(DelayedDriver(arm, sim, late), controller)
    loop.step()
    loop.hold(dict(zip(arm.joint_names, HOME, strict=True)))
    found = []
    for _ in range(round(seconds / period)):
        loop.step()
        found.append(np.abs(sim.state.q - HOME).max())
    assert not loop.events.counts
    return np.array(found)


@pytest.mark.parametrize("start", list(displaced()), ids=lambda q: str(np.round(q - HOME, 1)))
@pytest.mark.parametrize(
    ("carried", "modeled", "tolerance", "within"),
    [(0.0, 0.0, 1e-3, 1.0), (0.5, 0.5, 1e-3, 1.6), (0.5, 0.0, 0.02, 1.0)],
    ids=["empty", "modeled payload", "unmodeled payload"],
)
def test_a_displaced_arm_settles(start, carried, modeled, tolerance, within):
    """On the 12 V supply, at 500 Hz, each motor within its limits."""
    found = errors(start, carried, modeled)
    assert (found[round(within / 2e-3) :] < tolerance).all()
    assert found[-1] < 1e-3


def test_a_command_is_checked_once_from_controller_to_simulated_arm(monkeypatch):
    arm, checked = five_dof(), []
    loop = ControlLoop(SimulationDriver(arm), PidGravity(arm, gains()))
    loop.step()
    check = CheckedCommand.__init__

    def noted(one, *arguments):
        check(one, *arguments)
        checked.append(one)

    monkeypatch.setattr(CheckedCommand, "__init__", noted)
    written = [loop.step() for _ in range(3)]
    assert [id(command) for command in checked] == [id(command) for command in written]


@pytest.mark.parametrize(("period", "late"), [(2e-3, 1), (2e-3, 2), (1e-3, 0), (1e-3, 2)])
@pytest.mark.parametrize(("carried", "modeled"), [(0.0, 0.0), (0.5, 0.5), (0.5, 0.0)])
def test_it_settles_with_delays_and_at_a_higher_rate(period, late, carried, modeled):
    found = errors(next(displaced()), carried, modeled, period, late)
    assert (found[round(1.8 / period) :] < (1e-3 if modeled == carried else 0.02)).all()


def test_displaced_starts_exist():
    assert len(list(displaced())) == 4


def test_the_loop_follows_a_trajectory():
    arm, loop = five_dof(), None
    sim = Simulation(arm)
    loop = ControlLoop(SimulationDriver(arm, sim), PidGravity(arm, gains()))
    loop.step()
    goal = HOME + np.array([0.4, 0.3, -0.3, 0.5, 0.4])
    zero = np.zeros((1, 5))
    loop.follow(
        parse_trajectory(arm, arm.joint_names, [1.5], [goal], zero, zero, start=sim.state.time)
    )
    worst, jump, before = 0.0, 0.0, loop.reference.q
    for _ in range(1000):
        loop.step()
        worst = max(worst, np.abs(loop.reference.q - sim.state.q).max())
        jump = max(jump, np.abs(loop.reference.q - before).max())
        before = loop.reference.q
    assert worst < 0.03
    assert jump < 1.2 * 2e-3
    np.testing.assert_allclose(sim.state.q, goal, atol=1e-3)
    np.testing.assert_array_equal(loop.reference.q, goal)


# Control cycles -------------------------------------------------------------------------------


class ScriptedDriver(Driver):
    """Driver with a list of states (or faults) that stores the written commands."""

    def __init__(self, *states):
        super().__init__(five_dof())
        self.states = list(states)
        self.written = []

    def read(self):
        state = self.states.pop(0)
        if isinstance(state, Exception):
            raise state
        return state

    def write(self, command):
        self.written.append(command)


class CountingController(Controller):
    """Controller whose command is the number of updates; it stores its arguments."""

    def __init__(self, arm, answers=None):
        super().__init__(arm)
        self.calls, self.resets, self.answers = [], [], answers

    def reset(self, state):
        self.resets.append(state.time)

    def update(self, state, reference, dt):
        self.calls.append((state.time, reference, dt))
        value = np.full(5, float(len(self.calls)))
        return Command("effort", self.answers.pop(0) if self.answers else value, state.time)


def at(time, q=HOME):
    return State.of(q, time=time)


def run_states(*states, answers=None):
    driver = ScriptedDriver(*states)
    loop = ControlLoop(driver, CountingController(five_dof(), answers))
    return driver, loop, [loop.step() for _ in states]


def test_hold_takes_the_positions_of_all_joints():
    loop = ControlLoop(SimulationDriver(five_dof()), PidGravity(five_dof()))
    loop.step()
    loop.hold(HOME + 0.01)
    loop.step()
    np.testing.assert_allclose(loop.reference.q, HOME + 0.01, atol=1e-15)
    for wrong in (HOME[:2], 0.1, "R1", [None] * 5):
        with pytest.raises(InvalidValue, match="positions"):
            loop.hold(wrong)


def test_objects_show_what_they_are():
    arm = five_dof()
    simulation, controller = Simulation(arm), PidGravity(arm, gains())
    loop = ControlLoop(SimulationDriver(arm, simulation), controller)
    on = "<ControlLoop of five_dof: PidGravity on SimulationDriver, "
    assert repr(loop) == f"{on}no state>"
    loop.step()
    assert repr(loop) == f"{on}t = 0 s, JointTrajectory>"
    times = "t = 0.002 s, dt = 0.0001 s, period = 0.002 s"
    assert repr(simulation) == f"<Simulation of five_dof: {times}, semi_implicit_euler>"
    assert repr(controller).startswith("<PidGravity of five_dof: effort, p [420 420 200 3 5], i [")


def test_the_first_cycle_holds_the_measured_configuration():
    q = HOME + 0.05
    _, loop, commands = run_states(at(5.0, q), at(5.002, q + 0.01))
    assert loop.controller.resets == [5.0]
    (_, first, dt), (_, second, later) = loop.controller.calls
    np.testing.assert_array_equal(first.q, q)
    np.testing.assert_array_equal(second.q, q)
    assert not first.v.any()
    assert (dt, later) == (0.0, pytest.approx(0.002))
    assert [c.stamp for c in commands] == [5.0, 5.002]


def test_a_restart_holds_an_arm_at_rest():
    arm = five_dof()
    for name in plugins.registered_names("controllers"):
        controller = plugins.load_class("controllers", name)
        if controller.interface != "effort":
            continue
        loop = ControlLoop(ScriptedDriver(at(0.0)), controller(arm))
        expected = 0 if name == "pid" else rigid_body.gravity(arm, HOME)
        np.testing.assert_allclose(loop.step().value - expected, 0, atol=1e-12)


def test_servos_follow_a_trajectory_through_the_loop():
    """Position control: the servos hold their positions, then track a slower reference."""
    arm = load_arm("four_joint").with_actuator("rate_limited")
    sim, home = Simulation(arm, period=2e-3, dt=1e-3), arm.configuration("initial")
    loop = ControlLoop(SimulationDriver(arm, sim), PositionController(arm))
    loop.step()
    assert sim.state.q.tolist() == home.tolist()
    goal = np.add(home, [0.3, 0.2, -0.3, 0.4])
    loop.follow(parse_trajectory(arm, arm.joint_names, [1.0], [goal], [], [], start=sim.state.time))
    for _ in range(600):
        loop.step()
        assert np.abs(loop.reference.q - sim.state.q).max() < 2e-3
    assert sim.state.q.tolist() == goal.tolist()
    assert not loop.events.counts
    assert not sim.watchdog.events.counts


def test_a_repeated_state_repeats_the_command_without_an_update():
    driver, loop, commands = run_states(at(0.0), at(0.002), at(0.002), at(0.002), at(0.004))
    assert commands[1] is commands[2] is commands[3]
    assert len(driver.written) == 5
    assert [dt for _, _, dt in loop.controller.calls] == pytest.approx([0, 0.002, 0.002])


@pytest.mark.parametrize("jump", [-1.0, -0.001, 0.26, 100.0])
def test_a_jump_in_time_restarts_the_loop(jump):
    moved = HOME + 0.1
    _, loop, _ = run_states(at(10.0), at(10.002), at(10.002 + jump, moved))
    assert loop.controller.resets == [10.0, 10.002 + jump]
    _, reference, dt = loop.controller.calls[-1]
    np.testing.assert_array_equal(reference.q, moved)
    assert dt == 0.0
    assert loop.events.counts["control_restarted"] == 1


def test_a_short_gap_is_bridged():
    _, loop, _ = run_states(at(0.0), at(0.2))
    assert loop.controller.resets == [0.0]
    assert not loop.events.counts


def test_invalid_states_are_counted_and_no_command_is_written():
    bad = State(0.002, np.array([0, np.nan, 0, 0, 0]), np.zeros(5), np.zeros(5))
    short = State(0.002, np.zeros(4), np.zeros(4), np.zeros(4))
    driver, loop, commands = run_states(at(0.0), bad, short, DriverFault("cable"), at(0.004))
    assert [c is None for c in commands] == [False, True, True, True, False]
    assert len(driver.written) == 2
    assert loop.events.counts == {"state_rejected": 2, "driver_fault": 1}
    assert loop.events.latest["driver_fault"] == "cable"


@pytest.mark.parametrize("answer", [np.full(5, np.nan), np.zeros(4)])
def test_an_invalid_command_is_not_written(answer):
    driver, loop, commands = run_states(at(0.0), at(0.002), answers=[answer, np.zeros(5)])
    assert commands[0] is None
    assert len(driver.written) == 1
    assert loop.events.counts == {"command_rejected": 1}


class FaultyController(Controller):
    """Controller that returns, or raises, the result of ``answer``."""

    answer = staticmethod(lambda: None)

    def update(self, state, reference, dt):
        return self.answer()


RETURNS = FaultyController.update.__code__.co_firstlineno + 1


@pytest.mark.parametrize(
    ("answer", "kind", "text"),
    [
        (
            lambda: np.zeros(5),
            "controller_failed",
            "command = array([0., 0., 0., 0., 0.]); expected a Command",
        ),
        (lambda: None, "controller_failed", "command = None; expected a Command"),
        (
            lambda: np.linalg.inv(np.zeros((5, 5))),
            "controller_failed",
            "LinAlgError: Singular matrix",
        ),
        (lambda: 1 / 0, "controller_failed", "ZeroDivisionError: division by zero"),
        (lambda: HOME.no, "controller_failed", "AttributeError: "),
        (
            lambda: Reference.hold([np.nan]),
            "controller_failed",
            "q[0] = nan; expected a finite number",
        ),
        (
            lambda: Command("effort", np.full(5, np.nan)),
            "command_rejected",
            "[0] = nan; expected a finite",
        ),
        (lambda: Command("effort", np.zeros(4)), "command_rejected", "shape = (4,); expected (5,)"),
        (
            lambda: Command("effort", None),
            "command_rejected",
            "= None; expected a list of 5 numbers",
        ),
        (lambda: Command("torque", np.zeros(5)), "command_rejected", "interface 'torque'; known: "),
    ],
)
def test_an_error_of_a_controller_is_logged_immediately_with_class_and_line(
    caplog, answer, kind, text
):
    driver = ScriptedDriver(at(0.0), at(0.002))
    controller = FaultyController(five_dof())
    loop = ControlLoop(driver, controller)
    controller.answer = lambda: Command("effort", np.zeros(5))
    assert loop.step() is not None
    controller.answer = answer
    assert loop.step() is None
    assert len(driver.written) == 1
    assert loop.events.counts == {kind: 1}
    raised = text.split(":")[0].endswith("Error") or "q[0]" in text
    line = answer.__code__.co_firstlineno if raised else RETURNS
    assert f"controller FaultyController (test_loop.py:{line}): " in loop.events.latest[kind]
    assert text in loop.events.latest[kind]
    (record,) = caplog.records
    assert record.name == "arm_dynamics"
    assert record.getMessage() == f"{kind}: {loop.events.latest[kind]}"


def test_a_failing_reset_is_reported_and_the_previous_controller_stays_active():
    class Unready(CountingController):
        def reset(self, state):
            raise KeyError("gain")

    line = Unready.reset.__code__.co_firstlineno + 1
    text = f"controller Unready (test_loop.py:{line}): KeyError: 'gain'"
    driver = ScriptedDriver(at(0.0), at(0.002))
    loop = ControlLoop(driver, Unready(five_dof()))
    assert [loop.step(), loop.step()] == [None, None]
    assert loop.events.counts == {"controller_failed": 2}
    assert loop.events.latest["controller_failed"] == text
    _, loop, _ = run_states(at(0.0))
    loop.driver.states = [at(0.002)]
    active = loop.controller
    loop.switch_controller(Unready(five_dof()))
    assert loop.step() is not None
    assert loop.controller is active
    assert loop.events.latest["controller_failed"] == text


def test_an_error_during_a_blend_is_attributed_to_its_controller():
    _, loop, _ = run_states(at(0.0))
    loop.driver.states = [at(0.002), at(0.004), at(0.006)]
    before = loop.controller
    loop.switch_controller(FaultyController(five_dof()))
    assert loop.step() is None
    assert "controller FaultyController" in loop.events.latest["controller_failed"]
    loop.controller.answer = lambda: Command("effort", np.zeros(5))
    before.answers = [np.zeros(4)]
    assert loop.step().value.tolist() == [0] * 5
    assert loop.events.counts == {"controller_failed": 1}


def test_a_failing_controller_is_followed_by_a_controlled_stop():
    arm = five_dof()
    sim = Simulation(arm, q=HOME + np.array([0, 0.3, -0.3, 0, 0]), v=[0.5, 0.5, 0.5, 1, 1])
    loop = ControlLoop(
        SimulationDriver(arm, sim), CountingController(arm, [np.full(5, np.nan)] * 600)
    )
    assert [loop.step() for _ in range(600)] == [None] * 600
    assert sim.state.time == pytest.approx(1.2)
    assert sim.watchdog.stopping
    assert np.abs(sim.state.v).max() < 1e-3
    assert ((arm.lower <= sim.state.q) & (sim.state.q <= arm.upper)).all()
    assert loop.events.counts["command_rejected"] == 600


def test_an_effort_beyond_the_limit_is_clamped():
    driver, loop, _ = run_states(at(0.0), answers=[np.full(5, 50.0)])
    assert driver.written[0].value.tolist() == [50, 50, 50, 12, 12]
    assert loop.events.counts == {"effort_clamped": 1}


def test_rejected_references_and_trajectories_keep_the_previous_one():
    arm = five_dof()
    driver = ScriptedDriver(at(0.0), at(0.002))
    loop = ControlLoop(driver, CountingController(arm))
    names = arm.joint_names
    with pytest.raises(TrajectoryRejected, match="no state"):
        loop.follow(JointTrajectory.hold(HOME, 1.0))
    with pytest.raises(TrajectoryRejected, match="no state"):
        loop.hold({"R1": 0.0})
    loop.step()

    def follow(time, q):
        loop.follow(parse_trajectory(arm, names, [time], [q]))

    for call, error, text in (
        (lambda: loop.hold({"R9": 0.0}), UnknownName, "R9"),
        (lambda: loop.hold({"R2": 2.0}), InvalidValue, "reference: joint 'R2' = 2 rad"),
        (lambda: loop.hold({"R2": np.nan}), InvalidValue, r"reference\[1\] = nan"),
        (lambda: follow(9.0, HOME + 5.0 * (np.arange(5) == 1)),
         TrajectoryRejected, "joint 'R2': position"),
        (lambda: follow(0.0, HOME), TrajectoryRejected, "last waypoint = 0 s; expected"),
        (lambda: loop.follow(JointTrajectory.hold([0, 9, 0, 0, 0], -1.0)), TrajectoryRejected,
         r"last waypoint = -1 s; .* now \(0 s\)"),
    ):  # fmt: skip
        with pytest.raises(error, match=text):
            call()
    loop.step()
    np.testing.assert_array_equal(loop.controller.calls[-1][1].q, HOME)


def test_a_reference_changes_only_the_named_joints():
    driver = ScriptedDriver(at(0.0), at(0.002))
    loop = ControlLoop(driver, CountingController(five_dof()))
    loop.step()
    loop.hold({"R3": 0.1, "R1": 7.0})
    loop.step()
    np.testing.assert_array_equal(loop.reference.q, [7.0 - 2 * np.pi, HOME[1], 0.1, *HOME[3:]])


def test_a_step_of_one_joint_keeps_the_references_of_the_others():
    sagged = HOME - 0.01
    driver = ScriptedDriver(at(0.0), at(0.002, sagged), at(0.004, sagged))
    loop = ControlLoop(driver, CountingController(five_dof()))
    loop.step()
    loop.step()
    loop.hold({"R3": 0.1})
    loop.step()
    np.testing.assert_array_equal(loop.reference.q, [*HOME[:2], 0.1, *HOME[3:]])


def test_a_new_loop_on_a_stopped_arm_starts_bumpless():
    """Motion, no commands until the controlled stop, then a new loop on the same simulation."""
    arm = five_dof()
    sim = Simulation(arm)
    first = ControlLoop(SimulationDriver(arm, sim), PidGravity(arm, gains()))
    first.step()
    first.hold({"R2": -0.8, "R4": 0.5})
    for _ in range(100):
        first.step()
    assert np.abs(sim.state.v).max() > 0.1
    for _ in range(600):
        sim.advance()
    rest = sim.state
    second = ControlLoop(SimulationDriver(arm, sim), PidGravity(arm, gains()))
    second.step()
    assert np.abs(sim.state.tau - rest.tau).max() < 0.05
    for _ in range(500):
        second.step()
        np.testing.assert_allclose(sim.state.q, rest.q, atol=1e-3)
