"""The parallel gripper of five_dof_gripper and puma560_gripper: actuator, faces, grasp."""

import numpy as np
import pinocchio as pin
import pytest

from arm_dynamics import ControlLoop, Simulation, load_arm
from arm_dynamics.collision import Scene, SceneObject
from arm_dynamics.collision.self_collision import collision_shapes
from arm_dynamics.control.config import build_controller
from arm_dynamics.core.errors import UnknownName
from arm_dynamics.dynamics.kinematics.frames import pose
from arm_dynamics.hardware import SimulationDriver
from arm_dynamics.model import Shape
from arm_dynamics.simulation.contact.contact_dynamics import LINK_FRICTION
from tools.urdf import parallel_gripper

ARMS = ("five_dof", "puma560")
EDGE, MASS, FRICTION = 0.03, 0.2, 0.5


@pytest.mark.parametrize("arm", ARMS)
def test_the_arm_is_the_published_one(arm):
    plain, variant = load_arm(arm), load_arm(f"{arm}_gripper")
    assert variant.joint_names == (*plain.joint_names, "gripper")
    for k in range(1, plain.nv + 1):
        assert variant.model.jointPlacements[k] == plain.model.jointPlacements[k]
        assert k == plain.nv or variant.model.inertias[k] == plain.model.inertias[k]
    for joint, published in zip(variant.joints[:-1], plain.joints, strict=True):
        for name in ("kind", "lower", "upper", "effort", "velocity", "initial", "constants"):
            assert getattr(joint, name) == getattr(published, name)


def test_another_arm_is_rejected():
    with pytest.raises(UnknownName, match="'so101'; known: five_dof, puma560"):
        parallel_gripper.urdf_text("so101")


@pytest.mark.parametrize(("load", "speed"), [(0.0, 0.032), (24.0, 0.024), (50.0, 0.016)])
def test_the_actuator_has_the_speeds_of_its_data_sheet(load, speed):
    """V = R (F + f) / kt + ke v, of the constants at the rod; no load and two loads."""
    motor = dict(parallel_gripper.motor().constants)
    kt, ke = (motor["gear_ratio"] * motor[name] for name in ("kt", "ke"))
    friction = motor["gear_ratio"] * motor["coulomb_friction"]
    volts = motor["supply_voltage"] - motor["resistance"] * (load + friction) / kt
    assert volts / ke == pytest.approx(speed, rel=0.02)


@pytest.mark.parametrize("arm", ARMS)
def test_the_position_is_the_distance_of_parallel_faces(arm):
    arm = load_arm(f"{arm}_gripper")
    shapes, _ = collision_shapes(arm)
    moving = shapes.ngeoms - 1
    fixed = max(
        k for k in range(moving) if shapes.geometryObjects[k].parentJoint == arm.model.njoints - 2
    )
    shapes.addCollisionPair(pin.CollisionPair(fixed, moving))
    data, results = arm.model.createData(), shapes.createData()
    q = np.array(arm.configuration("initial"))
    for opening in (0.0, 0.01, 0.05):
        q[-1] = opening
        pin.computeDistances(arm.model, data, shapes, results, q)
        assert results.distanceResults[0].min_distance == pytest.approx(opening, abs=1e-9)
        jaws = [results.oMg[k].rotation for k in (fixed, moving)]
        aligned = np.abs(jaws[0].T @ jaws[1]).round(9)
        assert set(aligned.ravel().tolist()) == {0.0, 1.0}


def test_a_box_is_held_with_the_effort_of_the_actuator():
    """F = τ ± f, above the weight: 2 μ F > m g; the box does not slip."""
    arm = load_arm("five_dof_gripper")
    q = np.array(arm.configuration("initial"))
    q[-1] = EDGE + 1e-4
    (tool, R), width = pose(arm, q), np.array([EDGE, 0.02, 0.02])
    center = tool + R @ [EDGE / 2, 0, 0]
    box = SceneObject("box", Shape("box", tuple(width)), center, R, MASS, FRICTION)
    simulation = Simulation(arm, q=q, dt=1e-3, scene=Scene([box]))
    loop = ControlLoop(SimulationDriver(arm, simulation), build_controller(arm))
    loop.step()
    loop.hold({"gripper": EDGE - 3e-4})
    for _ in range(75):
        loop.step()
        if loop.state.time < 0.1:
            start = _in_hand(simulation)
    jaw = [
        abs(force @ normal)
        for ends, force, normal in _contacts(simulation)
        if "gripper_link" in ends
    ]
    friction = parallel_gripper.FRICTION
    assert sum(jaw) == pytest.approx(-simulation.state.tau[-1], abs=friction + 0.1)
    assert 2 * np.sqrt(FRICTION * LINK_FRICTION) * sum(jaw) > MASS * 9.81
    np.testing.assert_allclose(_in_hand(simulation), start, atol=1e-4)


def _contacts(simulation):
    contacts = simulation.contacts
    ends = zip(contacts.first, contacts.second, strict=True)
    return zip(ends, contacts.force, contacts.normal, strict=True)


def _in_hand(simulation):
    tool, R = pose(simulation.arm, simulation.state.q)
    return R.T @ (simulation.scene["box"].position - tool)
