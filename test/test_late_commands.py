"""Commands that come late: what the default controllers of the bundled arms bear."""

from collections import deque

import numpy as np
import pytest

from arm_dynamics import ControlLoop, Simulation, load_arm
from arm_dynamics.cli import advise
from arm_dynamics.config import build_controller
from arm_dynamics.drivers.simulated import Simulated
from arm_dynamics.stability.timed_gains import delay_margin

ARMS = (
    "five_dof", "four_joint", "puma560", "seven_dof_can", "so101", "three_link", "two_link",
    "two_link_pb",
)  # fmt: skip
PERIOD = 2e-3
LATE = {"five_dof": 2}
"""Periods that the commands of an arm are late; else 4, which are 8 ms."""


class Late(Simulated):
    """Every command acts ``late`` periods after the state that it answers."""

    def __init__(self, arm, simulation, late):
        super().__init__(arm, simulation)
        self._sent, self._late = deque(), late

    def write(self, command):
        self._sent.append(command)
        if len(self._sent) > self._late:
            self.simulation.offer(self._sent.popleft())
        self.simulation.advance()


@pytest.mark.parametrize("name", ARMS)
def test_an_arm_holds_with_late_commands(name):
    """From 0.01 rad beside its initial pose: it never is 0.02 rad away, and comes to it."""
    arm = load_arm(name)
    goal = arm.pose("initial")
    start = np.where(goal + 0.01 <= arm.upper, goal + 0.01, goal - 0.01)
    simulation = Simulation(arm, q=start, period=PERIOD)
    loop = ControlLoop(Late(arm, simulation, LATE.get(name, 4)), build_controller(arm))
    loop.step()
    loop.hold(dict(zip(arm.joint_names, goal.tolist(), strict=True)))
    worst = np.zeros(arm.nv)
    for k in range(1500):
        loop.step()
        assert np.abs(simulation.state.q - goal).max() < 0.02
        if k > 1250:
            worst = np.maximum(worst, np.abs(simulation.state.q - goal))
    assert worst.max() < 0.01


@pytest.mark.parametrize("name", ARMS)
def test_the_delay_margin_is_at_least_two_control_periods(name):
    arm = load_arm(name)
    periods, _ = delay_margin(build_controller(arm), arm, PERIOD)
    assert periods >= 2


def test_advise_states_the_delay_margin_in_periods_and_seconds(capsys):
    assert advise.run(["two_link"]) == 0
    assert "Delay margin: at least 10 control periods, 0.02 s." in capsys.readouterr().out
    assert advise.run(["two_link", "--controller", "pid_gravity"]) == 0
    assert "Delay margin: 1 control periods, 0.002 s; beyond it, " in capsys.readouterr().out
