"""Parameters of the nodes: descriptions, ranges, checks and immediate effect."""

import numpy as np
import pytest
from rcl_interfaces.msg import ParameterType

from arm_dynamics import load_arm
from arm_dynamics.control.config import build_controller
from arm_dynamics.control.lqr_design.gain_table import build_gain_table
from arm_dynamics.dynamics.rigid_body import gravity

from .link import GAINS, INITIAL, LOCKSTEP, Motion

ARM = load_arm("five_dof")
DOUBLES = (ParameterType.PARAMETER_DOUBLE, ParameterType.PARAMETER_DOUBLE_ARRAY)
OWN = ("use_sim_time", "start_type_description_service", "qos_overrides")


@pytest.fixture(scope="module")
def states(shared):
    record = shared.states()
    shared.start("simulator", **LOCKSTEP)
    shared.start("joint_controller", GAINS)
    shared.wait_until(record, 0.1)
    return record


def effort(shared, states):
    """Return the effort after the arm has come to rest."""
    shared.wait_longer(states, 2.5)
    return np.array(states.newest.effort)


@pytest.mark.parametrize("node", ["simulator", "joint_controller"])
def test_every_parameter_is_described_and_live_numbers_are_ranged(shared, states, node):
    found = {n: d for n, d in shared.describe(node).items() if not n.startswith(OWN)}
    assert len(found) > 10
    for name, descriptor in found.items():
        assert descriptor.description, f"{name} has no description"
        if descriptor.type == ParameterType.PARAMETER_DOUBLE and not descriptor.read_only:
            assert descriptor.floating_point_range, f"{name} has no range"


@pytest.mark.parametrize("name", ["update_rate", "dt", "integrator", "lockstep", "arm"])
def test_start_parameters_are_read_only(shared, states, name):
    value = shared.get("simulator", name)
    result = shared.set("simulator", **{name: value})[0]
    assert not result.successful
    assert name in result.reason


def test_a_change_of_gravity_is_effective_immediately(shared, states):
    assert shared.set("simulator", gravity=[0.0, 0.0, 0.0])[0].successful
    assert np.abs(effort(shared, states)).max() < 0.02
    assert shared.set("simulator", gravity=[0.0, 0.0, -9.81])[0].successful
    assert np.abs(effort(shared, states) - gravity(ARM, INITIAL)).max() < 0.02


def test_a_payload_is_compensated(shared, states):
    loaded = gravity(ARM.with_payload(0.5), INITIAL)
    assert np.abs(loaded - gravity(ARM, INITIAL)).max() > 1
    for node in ("simulator", "joint_controller"):
        assert shared.set(node, payload_mass=0.5)[0].successful
    assert np.abs(effort(shared, states) - loaded).max() < 0.02
    assert np.abs(np.array(states.newest.position) - INITIAL).max() < 1e-3
    for node in ("simulator", "joint_controller"):
        assert shared.set(node, payload_mass=0.0)[0].successful


def test_a_model_error_of_the_controller_moves_the_arm(shared, states):
    """Excessive masses of the model lift the arm until the integral compensates for them."""
    seen = len(states)

    def rises():
        nonlocal seen
        new = states.messages(seen)
        seen += len(new)
        return any(message.position[1] < INITIAL[1] - 0.01 for message in new)

    assert shared.set("joint_controller", model_error__mass=90.0)[0].successful
    shared.wait_for(rises, "R2 does not rise")
    assert shared.set("joint_controller", model_error__seed=3)[0].successful
    assert shared.set("joint_controller", model_error__seed=-1)[0].successful
    assert shared.set("joint_controller", model_error__mass=0.0)[0].successful
    shared.wait_for(
        lambda: np.abs(np.array(states.newest.position) - INITIAL).max() < 2e-3, "no return"
    )


def test_a_motor_constant_limits_the_effort(shared, states):
    """At rest τ ≤ N Kt V / R: 0.4 V on R2 give 4 N·m, but gravity requires 8 N·m."""
    assert shared.set("simulator", motors__R2__supply_voltage=0.4)[0].successful
    shared.wait_for(lambda: states.newest.position[1] > INITIAL[1] + 0.02, "R2 does not sink")
    assert shared.set("simulator", motors__R2__supply_voltage=12.0)[0].successful
    assert np.abs(effort(shared, states) - gravity(ARM, INITIAL)).max() < 0.05


def test_dry_friction_holds_a_joint(shared, states):
    """A dry friction of 1 N·m holds R5 against gravity."""
    assert shared.set("simulator", joints__R5__friction=1.0)[0].successful
    shared.wait_longer(states, 1.0)
    assert states.newest.velocity[4] == 0.0
    assert shared.set("simulator", joints__R5__friction=0.0)[0].successful


def test_a_gain_of_zero_is_accepted(shared, states):
    before = shared.get("joint_controller", "gains.R1.p")
    assert shared.set("joint_controller", gains__R1__p=0.0, gains__R1__i=0.0)[0].successful
    assert shared.get("joint_controller", "gains.R1.p") == 0.0
    assert shared.set("joint_controller", gains__R1__p=before)[0].successful


@pytest.mark.parametrize(
    ("node", "name", "value"),
    [
        ("simulator", "payload_mass", -1.0),
        ("simulator", "real_time_factor", 0.0),
        ("simulator", "real_time_factor", 1e9),
        ("simulator", "command_timeout", 0.0),
        ("simulator", "motors.R1.resistance", 0.0),
        ("simulator", "joints.R1.friction", -0.1),
        ("joint_controller", "gains.R1.p", -1.0),
        ("joint_controller", "payload_mass", float("nan")),
        ("joint_controller", "model_error.mass", -100.0),
        ("joint_controller", "model_error.seed", -2),
        ("joint_controller", "controller", "impedance"),
        ("simulator", "gravity", [0.0, 0.0]),
        ("simulator", "gravity", [0.0, float("nan"), 0.0]),
    ],
)
def test_a_value_out_of_range_is_rejected_with_the_reason(shared, states, node, name, value):
    before = shared.get(node, name)
    result = shared.set(node, **{name: value})[0]
    assert not result.successful
    assert len(result.reason) > 10
    assert shared.get(node, name) == before


def test_a_wrong_type_is_rejected(shared, states):
    assert not shared.set("simulator", payload_mass="heavy")[0].successful


def test_simulated_time_has_the_requested_real_time_factor(ros):
    states = ros.states()
    ros.start("simulator", update_rate=100.0)
    ros.wait_until(states, 0.1)
    for factor in (2.0, 0.5):
        assert ros.set("simulator", real_time_factor=factor)[0].successful
        values = ros.diagnosis(
            "simulator", lambda v, f=factor: abs(float(v["real-time factor"]) / f - 1) < 0.1
        )
        assert values["message"] == "running" or values["message"] == "controlled stop"


def test_lqr_uses_a_gain_table(ros, tmp_path):
    controller = build_controller(ARM, "lqr")
    grid = {"R2": (-1.2, 0.7, 3), "R3": (-1.0, 0.6, 3)}
    build_gain_table(ARM, controller.weights, grid).save(tmp_path / "gains.npz")
    states = ros.states()
    ros.start("simulator", **LOCKSTEP)
    parameters = {"controller": "lqr", "gain_table": str(tmp_path / "gains.npz")}
    ros.start("joint_controller", **parameters)
    ros.wait_until(states, 1.0)
    assert np.abs(np.array(states.newest.position) - INITIAL).max() < 1e-3


def test_a_parameter_file_sets_the_initial_values(ros, tmp_path):
    file = tmp_path / "given.yaml"
    file.write_text(
        "simulator:\n  ros__parameters:\n    update_rate: 125.0\n    payload_mass: 0.25\n"
        "    initial_positions: [0.1, -1.0, 0.2, 0.3, 0.4]\n    gravity: [0.0, 0.0, -1.62]\n"
        "    motors: {R3: {supply_voltage: 6.0}}\n"
    )
    states = ros.states()
    ros.start("simulator", file, **LOCKSTEP)
    ros.wait_for(lambda: len(states), "no state")
    q = [0.1, -1.0, 0.2, 0.3, 0.4]
    assert list(states.newest.position) == q
    assert ros.get("simulator", "motors.R3.supply_voltage") == 6.0
    ros.start("joint_controller")
    ros.wait_until(states, 3.0)
    carried = gravity(ARM.with_payload(0.25).with_gravity([0, 0, -1.62]), q)
    assert np.abs(np.array(states.newest.effort) - carried).max() < 0.1
    stamps = Motion(states.messages()).stamps
    assert set(np.diff(stamps) % 8_000_000) == {0}  # some get lost while nodes meet
    assert 8_000_000 in np.diff(stamps)
