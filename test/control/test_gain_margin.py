"""Gain margin and margins in words, against the stability test that they bisect."""

import numpy as np
import pytest
from conftest import five_dof

from arm_dynamics.control import build_controller
from arm_dynamics.control.controller_choice import joint_controller_classes, successor
from arm_dynamics.control.controllers.position import PositionController
from arm_dynamics.control.stability_margins import (
    GAIN_STEPS,
    MAX_GAIN_MARGIN,
    TimedArm,
    check_configurations,
    gain_margin,
    margin_text,
)
from arm_dynamics.core.errors import UnknownName
from arm_dynamics.core.timing import LoopTiming

ARM, PERIOD = five_dof(), 2e-3


def test_the_gain_margin_separates_stable_from_unstable_gains():
    controller = build_controller(ARM, "pid_gravity")
    margin, oscillation = gain_margin(controller, ARM, PERIOD)
    assert 1.0 < margin < MAX_GAIN_MARGIN
    assert "oscillation of joint" in oscillation
    sampled = TimedArm(ARM, LoopTiming(PERIOD), check_configurations(ARM, None))
    assert not sampled.oscillation(controller, margin)
    assert sampled.oscillation(controller, margin * MAX_GAIN_MARGIN ** (2**-GAIN_STEPS) * 1.001)
    text = margin_text(controller, ARM, PERIOD)
    assert text.startswith(f"stability margins: gain {margin:.2g} (required 1.5), delay ")
    assert "control periods of 2 ms (required 2); above, oscillation of joint" in text


def test_unstable_gains_are_called_unstable():
    controller = build_controller(ARM, "pid_gravity")
    gains = {name: {"p": 1e4, "i": 0.0, "d": 1e-3} for name in ARM.joint_names}
    controller.set_gains(gains)
    assert gain_margin(controller, ARM, PERIOD)[0] == 0.0
    assert margin_text(controller, ARM, PERIOD).startswith("UNSTABLE: oscillation of joint")


def test_a_controller_without_effort_has_no_margin():
    assert margin_text(PositionController(ARM.with_actuator("rate_limited")), ARM, PERIOD) == ""


def test_a_successor_keeps_model_and_common_gains():
    before = build_controller(ARM, "pid")
    before.set_model(ARM.with_payload(0.2))
    before.set_gains({"R2": {"p": 12.5}})
    after = successor(before, "pid_gravity", ARM)
    assert after.values["R2"]["p"] == 12.5
    assert after.arm.payload.mass == 0.2
    assert np.array_equal(after.gains["p"], before.gains["p"])
    with pytest.raises(UnknownName, match="'pd'"):
        successor(before, "pd", ARM)


def test_joint_controllers_of_one_interface():
    effort, position = joint_controller_classes("effort"), joint_controller_classes("position")
    assert {"pid", "computed_torque", "lqr"} <= {*effort}
    assert not {"impedance", "task_space", "resolved_rate", "position"} & {*effort}
    assert [*position] == ["position"]
    assert {*joint_controller_classes()} >= {*effort, *position}
