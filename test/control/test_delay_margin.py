"""Delay margins of the default controllers of the bundled arms."""

import warnings
from collections import deque
from dataclasses import replace

import numpy as np
import pytest
import yaml

from arm_dynamics import ControlLoop, Simulation, load_arm
from arm_dynamics.cli import record, stability
from arm_dynamics.cli.arm_options import controller_of
from arm_dynamics.control.config import build_controller
from arm_dynamics.control.controllers.computed_torque import ComputedTorque
from arm_dynamics.control.stability_margins import delay_margin, thin_margin
from arm_dynamics.core import resources
from arm_dynamics.dynamics.rigid_body import gravity
from arm_dynamics.hardware.simulation_driver import SimulationDriver

ARMS = (
    "five_dof", "four_joint", "puma560", "seven_dof_can", "so101", "three_link", "two_link",
    "two_link_pb",
)  # fmt: skip
PERIOD = 2e-3
LATE = {"five_dof": 2}
"""Delay of the commands of an arm in periods; the default is 4, which are 8 ms."""


class DelayedDriver(SimulationDriver):
    """Driver whose commands act ``late`` periods after the state of their update."""

    def __init__(self, arm, simulation, late):
        super().__init__(arm, simulation)
        self._sent, self._late = deque(), late

    def write(self, command):
        self._sent.append(command)
        if len(self._sent) > self._late:
            self.simulation.submit(self._sent.popleft())
        self.simulation.advance()


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", ARMS)
def test_an_arm_is_held_with_delayed_commands(name):
    """Start 0.01 rad away from the initial configuration: the error stays below 0.02 rad and
    decays.
    """
    arm = load_arm(name)
    goal = arm.configuration("initial")
    start = np.where(goal + 0.01 <= arm.upper, goal + 0.01, goal - 0.01)
    simulation = Simulation(arm, q=start, period=PERIOD)
    loop = ControlLoop(DelayedDriver(arm, simulation, LATE.get(name, 4)), build_controller(arm))
    loop.step()
    loop.hold(dict(zip(arm.joint_names, goal.tolist(), strict=True)))
    worst = np.zeros(arm.nv)
    for k in range(1500):
        loop.step()
        assert np.abs(simulation.state.q - goal).max() < 0.02
        if k > 1250:
            worst = np.maximum(worst, np.abs(simulation.state.q - goal))
    assert worst.max() < 0.01


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", ARMS)
def test_the_delay_margin_is_at_least_two_control_periods(name):
    arm = load_arm(name)
    periods, _ = delay_margin(build_controller(arm), arm, PERIOD)
    assert periods >= 2


def test_stability_prints_the_delay_margin_in_periods_and_seconds(capsys):
    assert stability.run(["two_link"]) == 0
    assert "Delay margin: at least 10 control periods, 0.02 s." in capsys.readouterr().out
    assert stability.run(["two_link", "--controller", "pid_gravity"]) == 0
    assert "Delay margin: 1 control periods, 0.002 s; beyond it, " in capsys.readouterr().out


@pytest.mark.parametrize("name", resources.resource_names("urdf", ".urdf"))
def test_default_gains_of_bundled_arms_give_no_warning(name):
    arm = load_arm(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build_controller(arm)


def test_a_small_delay_margin_is_warned_of_with_the_joint():
    """Default gains of pid_gravity: a delay of 1 period is the limit at 2 ms, not at 1 ms."""
    arm = load_arm("two_link")
    words = (
        "PidGravity of arm 'two_link': delay margin < 2 control periods .* joint 'J2' at 48.7 Hz"
    )
    with pytest.warns(RuntimeWarning, match=words):
        controller = build_controller(arm, "pid_gravity")
    assert (
        delay_margin(controller, arm, PERIOD)[0] < 2 <= delay_margin(controller, arm, PERIOD / 2)[0]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build_controller(arm, "pid_gravity", period=PERIOD / 2)
        build_controller(arm, "pid_gravity", period=None)  # without a period the caller checks


def test_a_small_gain_margin_of_a_file_is_warned_of(tmp_path):
    file = tmp_path / "stiff.yaml"
    gains = {"gains": {joint: {"kd": 900.0} for joint in ("J1", "J2")}}
    given = {"controller": "computed_torque", **gains}
    file.write_text(yaml.safe_dump({"joint_controller": {"ros__parameters": given}}))
    with pytest.warns(RuntimeWarning, match=r"gain margin < 1.5 .* joint 'J1' at 250 Hz"):
        build_controller(load_arm("two_link"), file=file)


def test_an_unmodeled_payload_counts(tmp_path):
    """The SO-101's gains are stable with an unmodeled payload of 0.2 kg, not of 1 kg."""

    def warnings_of(*options):
        given = record.command_parser().parse_args(
            [str(tmp_path / "new"), "--arm", "so101", *options]
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            controller_of(load_arm("so101"), given)
        return [str(one.message) for one in caught]

    assert warnings_of() == warnings_of("--payload", "0.2") == []
    (text,) = warnings_of("--payload", "1")
    assert "joint 'shoulder_lift'" in text


def test_insufficient_effort_limits_cause_no_gain_warning():
    arm = load_arm("two_link").with_actuator("ideal")
    weight = 0.8 * np.abs(gravity(arm, [0.0, 0.0]))  # horizontal, full extension
    weak = replace(
        arm,
        joints=tuple(
            replace(joint, effort=effort)
            for joint, effort in zip(arm.joints, weight.tolist(), strict=True)
        ),
    )
    controller = ComputedTorque(weak)
    assert thin_margin(controller, weak, PERIOD) == ""
    assert thin_margin(ComputedTorque(weak, {"J2": {"kd": 900.0}}), weak, PERIOD)


def test_margins_of_a_controller_that_raises_are_reported_as_unknown():
    class Broken(ComputedTorque):
        def update(self, state, reference, dt):
            raise ZeroDivisionError("in update")

    arm = load_arm("two_link")
    assert thin_margin(Broken(arm), arm, PERIOD) == (
        "Broken of arm 'two_link': stability margins not computed: ZeroDivisionError: in update"
    )
