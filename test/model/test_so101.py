"""The SO-101: motors of the data sheet, bodies and frames of the published CAD."""

import json
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from arm_dynamics import Plant, load_arm
from arm_dynamics.collision.self_collision import collision_shapes
from arm_dynamics.core.errors import UnknownName
from arm_dynamics.core.state import Command, State
from arm_dynamics.dynamics import rigid_body
from arm_dynamics.dynamics.kinematics import frames
from arm_dynamics.model.hardware_info import read_hardware_info
from arm_dynamics.model.load import parse_arm
from arm_dynamics.simulation.actuators.data_sheet import DataSheet, from_rpm
from tools.urdf import so101

KG_CM = 9.80665e-2
# Supply [V], no-load speed [rpm], stall torque [kg·cm], no-load current [A].
SHEETS = {"12": (12.0, 45.0, 30.0, 0.15), "7.4": (7.4, 52.0, 19.5, 0.12)}
ARM = load_arm("so101")
PUBLISHED = json.loads(
    (Path(__file__).parents[1] / "data" / "so101" / "published.json").read_text("utf-8")
)


def sheet(volts):
    nominal, rpm, stall, idle = SHEETS[volts]
    return DataSheet(
        nominal, from_rpm(rpm), stall * KG_CM, idle,
        gear_ratio=345, efficiency=0.46, viscous_fraction=0.7,
    )  # fmt: skip


@pytest.mark.parametrize("volts", SHEETS)
def test_motor_constants_equal_the_data_sheet_with_gear_losses_in_kt(volts):
    found = so101.MOTORS[volts] | so101.FRICTION[volts]
    expected = dict(sheet(volts).constants(supply_voltage=SHEETS[volts][0]))
    expected["kt"] *= expected.pop("efficiency")
    assert expected.pop("gear_ratio") == so101.GEAR
    assert found == pytest.approx(expected, rel=1e-3)
    assert so101.STALL[volts] == pytest.approx(SHEETS[volts][2] * KG_CM, rel=2e-3)
    assert so101.IDLE[volts] == pytest.approx(from_rpm(SHEETS[volts][1]), rel=1e-3)


def test_unused_values_of_the_data_sheet_are_reproduced():
    """2.7 A at stall less 0.03 A of the electronics; 11 kg·cm/A; damping and friction as measured.

    Damping and friction: 0.6 N·m·s/rad and 0.052 N·m, identified by Open Duck Mini.
    """
    motor = so101.MOTORS["12"] | so101.FRICTION["12"]
    kt = so101.GEAR * motor["kt"]
    assert motor["supply_voltage"] / motor["resistance"] == pytest.approx(2.67, rel=0.02)
    assert kt == pytest.approx(11 * KG_CM, rel=0.03)
    damping = kt * so101.GEAR * motor["ke"] / motor["resistance"]
    assert damping + so101.GEAR**2 * motor["viscous_friction"] == pytest.approx(0.6, rel=0.05)
    assert so101.GEAR * motor["coulomb_friction"] == pytest.approx(0.052, rel=0.05)


@pytest.mark.parametrize("volts", SHEETS)
def test_a_free_motor_reaches_the_no_load_speed_of_the_data_sheet(volts):
    """The roll joint of the wrist at full supply; only friction and back-EMF act."""
    text = so101.urdf_text(volts).replace('"-2.79253" upper="2.79253"', '"-100" upper="100"')
    arm = parse_arm(text).with_gravity([0, 0, 0])
    command = Command("voltage", np.eye(6)[4] * SHEETS[volts][0])
    end = Plant(arm).step(State.of(np.zeros(6)), command, 1e-3, steps=2000)
    assert end.v[4] == pytest.approx(so101.IDLE[volts], rel=3e-3)


def test_other_voltages_are_rejected():
    with pytest.raises(UnknownName, match=r"'24'; known: 12, 7\.4"):
        so101.urdf_text("24")


@pytest.mark.parametrize("sample", PUBLISHED["samples"], ids=lambda s: f"{s['q'][1]:.2f}")
def test_gravity_inertia_and_tool_equal_the_published_model(sample):
    """Frames rounded to 0.1 mm and tensors of boxes: 0.1 % of gravity, 2 % of M."""
    q, rotors = sample["q"], so101.GEAR**2 * so101.ROTOR * np.eye(6)
    np.testing.assert_allclose(rigid_body.gravity(ARM, q), sample["gravity"], rtol=0, atol=4e-4)
    M = rigid_body.mass_matrix(ARM, q) - rotors
    np.testing.assert_allclose(M, sample["mass_matrix"], rtol=0, atol=1e-4)
    np.testing.assert_allclose(frames.tool_position(ARM, q), sample["tool"], atol=2e-4)


def test_the_gripper_moves_neither_tool_nor_arm():
    q = np.array(PUBLISHED["samples"][0]["q"])
    assert not frames.jacobian(ARM, q)[:, 5].any()
    assert frames.jacobian(ARM, q)[:, :5].any(axis=0).all()
    assert (ARM.effort_limit > 3 * np.abs(rigid_body.gravity(ARM, np.zeros(6)))).all()


def test_the_inner_faces_of_the_jaws_are_parallel_at_zero():
    """At the distances of the published meshes: 23.5 mm, and 15.8 mm at the tips."""
    shapes, _ = collision_shapes(ARM)
    placed = shapes.createData()
    pin.updateGeometryPlacements(ARM.model, ARM.model.createData(), shapes, placed, np.zeros(6))
    boxes = {}
    for shape, M in zip(shapes.geometryObjects, placed.oMg, strict=True):
        assert np.allclose(np.abs(M.rotation).max(axis=0), 1)
        boxes[shape.name] = (
            M.translation,
            np.abs(M.rotation) @ getattr(shape.geometry, "halfSide", np.zeros(3)),
        )
    for part, gap in (("2", 0.0235), ("3", 0.0158)):
        (fixed, half), (moving, other) = (
            boxes[f"wrist_roll_link_{part}"], boxes[f"gripper_link_{int(part) - 1}"]
        )  # fmt: skip
        # The tool points along x of the base, so that the jaws open along z.
        assert abs(moving[2] - fixed[2]) - half[2] - other[2] == pytest.approx(gap, abs=1e-9)


def test_motors_1_to_6_in_order_and_zero_in_the_middle_of_the_range():
    wiring = read_hardware_info(ARM)
    assert [motor.id for motor in wiring.motors] == [1, 2, 3, 4, 5, 6]
    assert {motor.motor for motor in wiring.motors} == {"sts3215"}
    assert wiring.settings["driver"] == "feetech"
    middle = (ARM.lower + ARM.upper) / 2
    np.testing.assert_allclose([m.position(0.0) for m in wiring.motors], middle, atol=1e-4)
