"""Default controllers of arms without a parameter file: demo trajectories and steps of many arms.

ARM_DYNAMICS_MANY_ARMS=200 runs 200 random arms instead of 5, and every variant of real ones.
"""

import os
import warnings
from dataclasses import replace
from functools import cache
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from random_arm import random_arm, required_effort

from arm_dynamics import ControlLoop, Simulation, load_arm
from arm_dynamics.control.config import build_controller
from arm_dynamics.control.controllers.computed_torque import ComputedTorque
from arm_dynamics.control.trajectories.demo_trajectory import demo_trajectory
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.dynamics import rigid_body
from arm_dynamics.hardware.simulation_driver import SimulationDriver

STEP, OVERSHOOT, TOUR = 0.02, 0.2, 0.01
"""Step [rad or m], max overshoot as a fraction of it, max error along a demo trajectory."""
KILOGRAM = 1.0
MANY = int(os.environ.get("ARM_DYNAMICS_MANY_ARMS", "0"))
FINGERS = ("panda_finger_joint1", "panda_finger_joint2")
TALOS = tuple(
    f"gripper_left_{name}_joint"
    for name in (
        "inner_double", "fingertip_1", "fingertip_2", "fingertip_3", "motor_single", "inner_single",
    )
)  # fmt: skip
# The gripper of talos_left_arm has as much dry friction, 1 N·m, as effort.
ARMS = {
    "panda": FINGERS, "ur3_robot": (), "ur5_robot": (), "ur10_robot": (), "kinova": (), "xarm7": (),
    "z1": (), "TwoDofs": (), "so100": (), "so101": (), "finger_edu": (),
    "talos_left_arm": (*TALOS, "gripper_left_joint"),
}  # fmt: skip
VARIANTS = {
    "panda_collision": FINGERS,
    "ur3_gripper": (), "ur3_joint_limited_robot": (),
    "ur5_gripper": (), "ur5_joint_limited_robot": (), "ur10_joint_limited_robot": (),
    "baxter": ("l_gripper_r_finger_joint", "r_gripper_r_finger_joint"),
}  # fmt: skip
"""Variants of arms above with other limits or grippers, and a pair of arms."""
MOTORLESS = ("double_pendulum", "double_pendulum_continuous", "double_pendulum_simple")
"""Arms with effort and velocity limits of 0: tested with the limits of MOTOR."""
MOTOR = {"effort": 1.0, "velocity": 2.0}
EXCLUDED = {
    "a legged robot: its base moves": (
        "a1", "anymal", "b1", "bolt", "go1", "go2", "hyq_no_sensors", "laikago", "quadruped",
        "solo", "solo12",
    ),
    "an arm on a legged or wheeled robot: its base moves": (
        "anymal-kinova", "b1-z1", "centauro", "pr2", "tiago", "tiago_dual", "tiago_no_hand",
        "tiago_pro",
    ),
    "a humanoid: its base moves": (
        "alex_nub_hands", "alex_psyonic_hands", "alex_sake_hands", "alexander_v1.lowerBodyOnly",
        "g1_29dof_rev_1_0", "g1_29dof_with_hand_rev_1_0", "human", "icub", "icub_reduced", "romeo",
        "romeo_laas_small", "romeo_small", "simple_humanoid", "simple_humanoid_classical",
        "talos_full_v2", "talos_full_v2_box", "talos_reduced", "talos_reduced_box",
        "talos_reduced_corrected",
    ),
    "a flying robot: its base moves": (
        "borinot_flying_arm_2", "hextilt_flying_arm_5", "iris", "iris_simple", "quadrotor_base",
    ),
    "a hand": ("allegro_left_hand", "allegro_right_hand"),
    "no links: a xacro file": ("ur3",),
}  # fmt: skip
USUAL, COARSE = 1e-4, 5e-4
"""Time steps [s] of a simulation: the default, and a coarse one of equal accuracy here."""
SPARE = 0.8
"""Fraction of the effort limits that the payloads require."""


def descriptions():
    """Return name → paths of all URDFs of the package example-robot-data."""
    try:
        files = metadata.files("example-robot-data") or ()
    except metadata.PackageNotFoundError:
        pytest.skip("example-robot-data is not installed (extra: test)")
    found = {}
    for file in files:
        if file.suffix == ".urdf":
            found.setdefault(file.stem, []).append(Path(file.locate()))
    return found


@cache
def real_arm(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        arm = load_arm(descriptions()[name][0], (ARMS | VARIANTS).get(name, ()))
    if name not in MOTORLESS:
        return arm
    return replace(arm, joints=tuple(replace(joint, **MOTOR) for joint in arm.joints))


def payload_of(arm):
    """Return 1 kg, or less if gravity along the trajectory requires more than SPARE."""
    mass = KILOGRAM
    while (
        required_effort(arm.with_payload(mass)) > SPARE * arm.effort_limit
    ).any() and mass > 1e-3:
        mass /= 2
    return mass


def time_step(arm):
    """Return COARSE if viscous friction permits it: max |λ(M⁻¹ diag(b))| dt < 1."""
    damping = np.diag([joint.damping for joint in arm.joints])
    masses = [rigid_body.mass_matrix(arm, point.q) for point in demo_trajectory(arm)]
    fastest = max(np.abs(np.linalg.eigvals(np.linalg.solve(M, damping))).max() for M in masses)
    return COARSE if fastest * COARSE < 1 else USUAL


def loop_of(arm, dt):
    """Return the loop of the commands sim and record, with the default controller."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # small stability margins
        controller = build_controller(arm)
    assert isinstance(controller, ComputedTorque)
    loop = ControlLoop(SimulationDriver(arm, Simulation(arm, dt=dt)), controller)
    loop.step()
    return loop


def run(loop, seconds):
    """Return positions minus references (periods, nv) of a run without events."""
    errors = []
    for _ in range(round(seconds / 2e-3)):
        assert loop.step() is not None, loop.events.latest
        errors.append(loop.state.q - loop.reference.q)
    assert not loop.events.counts
    return np.array(errors)


def demo_trajectory_error(arm, dt):
    """Return the max error [rad or m] along one demo trajectory and the error 1 s after its end."""
    loop, points = loop_of(arm, dt), demo_trajectory(arm)
    now = loop.state.time
    loop.follow(JointTrajectory(tuple(replace(w, time=w.time + now) for w in points)))
    return np.abs(run(loop, points[-1].time + 1.0)).max()


def overshoot(arm, dt):
    """Return max overshoot, as a fraction of a step of all joints, and the error after it."""
    loop, start = loop_of(arm, dt), arm.configuration("initial")
    step = np.where(start + STEP <= arm.upper, STEP, -STEP)
    loop.hold(dict(zip(arm.joint_names, (start + step).tolist(), strict=True)))
    errors = run(loop, 1.5)
    return (errors[1:] / step).max(), np.abs(errors[-1]).max()


def check(arm, dt=None, *, tours=("loaded",)):
    """Check steps with and without the modeled payload, and demo trajectories."""
    dt = time_step(arm) if dt is None else dt
    cases = {"bare": arm, "loaded": arm.with_payload(payload_of(arm))}
    for case, each in cases.items():
        found, end = overshoot(each, dt)
        error = demo_trajectory_error(each, dt) if case in tours else 0.0
        print(f"{arm.name} {case} {each.nv} joints: {found:.3f} {end:.2g} {error:.2g}")
        assert found < OVERSHOOT
        assert end < 0.2 * STEP
        assert error < TOUR


def test_every_description_is_an_arm_or_excluded_with_a_reason():
    known = [*ARMS, *VARIANTS, *MOTORLESS, *(name for names in EXCLUDED.values() for name in names)]
    assert len(known) == len(set(known))
    assert set(known) == set(descriptions())


@pytest.mark.quick(3)
@pytest.mark.parametrize("name", [*ARMS, MOTORLESS[1]])
def test_real_arms_follow_demo_trajectories_and_steps(name):
    check(real_arm(name))


@pytest.mark.quick(1)
@pytest.mark.parametrize("seed", range(MANY or 5))
def test_random_arms_follow_demo_trajectories_and_steps(seed):
    check(random_arm(seed, KILOGRAM), tours=("bare", "loaded") if MANY else ("loaded",))


@pytest.mark.quick(6)
@pytest.mark.skipif(not MANY, reason="ARM_DYNAMICS_MANY_ARMS is not set")
@pytest.mark.parametrize("name", [*ARMS, *VARIANTS, *MOTORLESS])
def test_all_real_arms_at_the_default_time_step(name):
    check(real_arm(name), USUAL, tours=("bare", "loaded"))
