"""The plant: published accelerations and motions, purity, rejected inputs."""

import csv
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

import numpy as np
import pytest
from conftest import chain, five_dof, heavy_rotors

from arm_dynamics.core import plugins
from arm_dynamics.core.errors import CommandRejected, InvalidValue, UnknownName
from arm_dynamics.core.state import Command, State
from arm_dynamics.dynamics import rigid_body
from arm_dynamics.model.load import load_arm
from arm_dynamics.simulation.actuators.dc_motor import DcMotor
from arm_dynamics.simulation.equations_of_motion import EquationsOfMotion
from arm_dynamics.simulation.plant import Plant

DATA = Path(__file__).parents[1] / "data/five_dof"


def table(name):
    """Return the columns of a file of numbers by name."""
    with (DATA / name).open() as file:
        rows = list(csv.DictReader(file))
    return {key: np.array([float(row[key]) for row in rows]) for key in rows[0]}


def columns(data, stem):
    return np.stack([data[f"{stem}{i}"] for i in range(1, 6)], axis=-1)


def without_stops(arm):
    for name in arm.joint_names:
        arm = arm.with_joint(name, stop_stiffness=0.0, stop_damping=0.0)
    return arm


def command(interface, value):
    return Command.checked(interface, value, len(value))


SAMPLES = table("dynamics_samples.csv")
COMPLETE = {
    "gear_ratio": 2.0,
    "current_limit": 6.0,
    "brush_drop": 0.7,
    "brush_half_voltage": 0.4,
    "rotor_inertia": 1e-3,
    "viscous_friction": 2e-3,
    "coulomb_friction": 0.05,
}


def test_accelerations_equal_published_ones():
    """Limit torque counted once; one step of 1 s of semi-implicit Euler gives v̇ directly."""
    q, v, volts = (columns(SAMPLES, stem) for stem in ("q", "qd", "V"))
    plant = Plant(five_dof().with_motors(supply_voltage=np.inf))
    steps = zip(map(State.of, q, v), (command("voltage", u) for u in volts), strict=True)
    found = np.array([plant.step(state, given, 1.0).v for state, given in steps]) - v
    expected = columns(SAMPLES, "qdd_pinocchio_limit_once")
    assert len(expected) == 100
    largest = np.abs(expected).max(axis=1)
    np.testing.assert_array_less(np.abs(found - expected).max(axis=1), 1e-9 * largest)


@pytest.mark.parametrize("arm", [five_dof(), heavy_rotors()])
def test_acceleration_beyond_the_end_stops(arm):
    """M a = motor - b v + stop - C v - g, with every term written explicitly."""
    for name in arm.joint_names:
        arm = arm.with_joint(name, damping=0.2)
    q, v = np.array([9.0, -1.3, 0.7, -3.2, 1.2]), np.array([1.0, -0.5, 0.3, -2, 4])
    volts, k = np.array([1.0, 2, 3, 4, 5]), np.array([10, 10, 10, 1, 1.0])
    beyond = np.array([0, 0.1, -0.1, 3.2 - np.pi, -0.1])
    stop = 50 * beyond - 5 * v * (beyond != 0)
    tau = k * (volts - k * v) - 0.2 * v + stop
    expected = np.linalg.solve(rigid_body.mass_matrix(arm, q), tau - rigid_body.nle(arm, q, v))
    after = Plant(arm).step(State.of(q, v), command("voltage", volts), 1.0)
    np.testing.assert_allclose(after.v - v, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("file", "arm", "interface", "bound"),
    [
        # The published free fall has no end stops.
        ("passive_no_motor_dop853.csv", without_stops(five_dof()).with_actuator("ideal"),
         "effort", 1e-3),
        ("ideal_zero_voltage_dop853.csv", five_dof(), "voltage", 1e-5),
    ],
)  # fmt: skip
def test_published_motion_to_first_order(file, arm, interface, bound):
    data = table(file)
    q, v = columns(data, "q"), columns(data, "qd")
    zero, index = command(interface, [0.0] * 5), 50
    errors = []
    for dt in (1e-4, 5e-5, 2.5e-5):
        steps = round(data["t"][index] / dt)
        end = Plant(arm).step(State.of(q[0], v[0]), zero, dt, steps)
        errors.append(np.abs(end.q - q[index]).max())
    assert errors[0] < bound
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    np.testing.assert_allclose(orders, 1.0, atol=0.01)


def test_braked_fall_to_its_end():
    data = table("ideal_zero_voltage_dop853.csv")
    plant, state = Plant(five_dof()), State.of(columns(data, "q")[0])
    for q in columns(data, "q")[20::20]:
        state = plant.step(state, command("voltage", [0.0] * 5), 1e-4, 2000)
        np.testing.assert_allclose(state.q, q, atol=3e-5)


def test_energy_of_a_free_arm_is_conserved():
    """The energy error is proportional to dt over half a second of free fall."""
    arm = without_stops(five_dof()).with_actuator("ideal")
    start = State.of(arm.configuration("initial"))
    drift = []
    for dt in (1e-4, 2.5e-5):
        end = Plant(arm).step(start, command("effort", [0.0] * 5), dt, round(0.5 / dt))
        energy = rigid_body.kinetic_energy(arm, end.q, end.v) + rigid_body.potential_energy(
            arm, end.q
        )
        drift.append(abs(energy - rigid_body.potential_energy(arm, start.q)))
    assert drift[0] < 1e-2
    assert drift[1] < drift[0] / 3


def test_an_arm_with_its_gravity_torque_stays_at_rest():
    arm = heavy_rotors()
    q = arm.configuration("initial")
    state = Plant(arm).step(State.of(q), command("effort", rigid_body.gravity(arm, q)), 1e-4, 1000)
    np.testing.assert_allclose(state.q, q, atol=1e-10)
    np.testing.assert_allclose(state.tau, rigid_body.gravity(arm, q), rtol=1e-8, atol=1e-12)


def test_a_continuous_joint_counts_its_turns():
    arm = chain({"axis": "0 0 1", "kind": "continuous"})
    state = Plant(arm).step(State.of([0.0], [20.0]), command("effort", [0.0]), 1e-3, 1000)
    assert state.q[0] == pytest.approx(20.0)


# Purity ---------------------------------------------------------------------------------------


def with_friction():
    return five_dof().with_motors(**COMPLETE).with_joint("R3", friction=0.3, damping=0.1)


def same(one, other):
    return all((getattr(one, n) == getattr(other, n)).all() for n in ("q", "v", "tau", "act"))


def same_to_round_off(one, other):
    pairs = [(getattr(one, n), getattr(other, n)) for n in ("q", "v", "tau", "act")]
    return all(np.allclose(*pair, rtol=1e-12, atol=1e-13) for pair in pairs)


@pytest.mark.parametrize("arm", [five_dof(), heavy_rotors(), with_friction()])
def test_several_steps_in_one_call_equal_several_calls(arm):
    start, volts = State.of([0.1, -1.19, 0.5, 0.3, -1.0], [1, -2, 1, 3, -4]), [3, -4, 2, 1, -1]
    whole = Plant(arm).step(start, command("voltage", volts), 1e-4, 200)
    plant, state = Plant(arm), start
    for _ in range(200):
        state = plant.step(state, command("voltage", volts), 1e-4)
    assert same(whole, state)
    assert whole.time == pytest.approx(state.time, rel=1e-12)


@pytest.mark.parametrize(
    "arm", [five_dof(), chain({"friction": 0.5})], ids=["smooth", "with_friction"]
)
def test_the_time_of_a_state_is_that_of_its_steps_or_the_given_one(arm):
    plant, start = Plant(arm), State.of(np.zeros(arm.nv), time=2.5)
    idle = Command.checked("effort", [0.0] * arm.nv, arm.nv)
    assert plant.step(start, idle, 1e-3).time == pytest.approx(2.501, abs=1e-12)
    assert plant.step(start, idle, 1e-3, 40).time == pytest.approx(2.54, abs=1e-12)
    assert plant.step(start, idle, 1e-3, 40, end=7.0).time == 7.0


def test_a_step_depends_only_on_its_arguments():
    plant, other = Plant(with_friction()), Plant(five_dof())
    start, volts = State.of([0.1, -1.0, 0.5, 0.3, -1.0], [1, -2, 1, 3, -4]), [3.0, -4, 2, 1, -1]
    fresh = plant.step(start, command("voltage", volts), 1e-4, 20)
    before = [a.copy() for a in (start.q, start.v, start.tau)]
    for _ in range(3):  # after other steps of this and another plant
        plant.step(State.of([1.0] * 5, [9.0] * 5), command("effort", [5.0] * 5), 1e-4, 7)
        other.step(start, command("effort", [1.0] * 5), 1e-4, 3)
        with pytest.raises(InvalidValue):
            plant.step(State.of([0.0] * 4), command("voltage", volts), 1e-4)
        assert same(plant.step(start, command("voltage", volts), 1e-4, 20), fresh)
    for array, copy in zip((start.q, start.v, start.tau), before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_results_are_read_only():
    state = Plant(five_dof()).step(State.of([0.0] * 5), command("voltage", [1.0] * 5), 1e-4)
    for array in (state.q, state.v, state.tau, state.act):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_tau_is_the_effort_of_the_last_step():
    arm = five_dof()
    start = State.of(arm.configuration("initial"), [0.1, 0.2, 0.3, 0.4, 0.5])
    after = Plant(arm).step(start, command("voltage", [1.0] * 5), 1e-4)
    k = np.array([10, 10, 10, 1, 1.0])
    np.testing.assert_allclose(after.tau, k * (1 - k * start.v), rtol=1e-14)


# Rejected input -------------------------------------------------------------------------------

GOOD = State.of([0.0] * 5)


@pytest.mark.parametrize(
    ("state", "u", "dt", "steps", "error", "text"),
    [
        (State.of([0.0] * 4), command("effort", [0.0] * 5), 1e-3, 1, InvalidValue, "4 positions"),
        (GOOD, command("effort", [0.0] * 4), 1e-3, 1, CommandRejected, r"effort command: .*\(4,\)"),
        (GOOD, Command("effort", np.array([0, np.nan, 0, 0, 0])), 1e-3, 1, CommandRejected,
         r"effort command\[1\] = nan"),
        (replace(GOOD, v=np.array([0, 0, np.inf, 0, 0])), command("effort", [0.0] * 5), 1e-3, 1,
         InvalidValue, "not finite"),
        (GOOD, command("position", [0.0] * 5), 1e-3, 1, UnknownName, "'R1' 'position'; known: eff"),
        (GOOD, Command("steam", np.zeros(5)), 1e-3, 1, UnknownName, "'steam'"),
        (GOOD, np.zeros(5), 1e-3, 1, InvalidValue, r"command = .*Command\.checked"),
        (GOOD, command("effort", [0.0] * 5), 0.0, 1, InvalidValue, "dt .*expected above 0"),
        (GOOD, command("effort", [0.0] * 5), -1e-3, 1, InvalidValue, "dt .*expected above 0"),
        (GOOD, command("effort", [0.0] * 5), np.nan, 1, InvalidValue, "dt .*finite"),
        (GOOD, command("effort", [0.0] * 5), 1e-3, 0, InvalidValue, "steps .*at least 1"),
    ],
)  # fmt: skip
def test_rejections_name_the_cause(state, u, dt, steps, error, text):
    with pytest.raises(error, match=text):
        Plant(five_dof()).step(state, u, dt, steps)


def test_a_modified_last_state_is_checked_again():
    plant, nothing = Plant(five_dof()), command("effort", [0.0] * 5)
    state = plant.step(GOOD, nothing, 1e-3)
    with pytest.raises(ValueError, match="read-only"):
        state.v[2] = np.inf
    state.v.base.flags.writeable = True
    state.v.flags.writeable = True
    state.v[2] = np.inf
    with pytest.raises(InvalidValue, match="not finite"):
        plant.step(state, nothing, 1e-3)


def test_a_modified_command_is_checked_again():
    plant, values = Plant(five_dof()), np.zeros(5)
    plain = Command("voltage", values)
    state = plant.step(GOOD, plain, 1e-3)
    values[1] = 2.0
    fresh = plant.step(state, command("voltage", values), 1e-3)
    assert np.array_equal(plant.step(state, plain, 1e-3).v, fresh.v)
    values[1] = np.nan
    with pytest.raises(CommandRejected, match=r"voltage command\[1\] = nan"):
        plant.step(state, plain, 1e-3)


def test_a_rejected_command_leaves_the_last_one():
    plant, push, rejected = Plant(five_dof()), command("effort", [1.0] * 5), [
        command("position", [0.0] * 5),
        command("effort", [0.0] * 4),
    ]  # fmt: skip
    expected = plant.step(GOOD, push, 1e-3)
    for other in rejected * 2:
        with pytest.raises((UnknownName, CommandRejected)):
            plant.step(GOOD, other, 1e-3)
        assert np.array_equal(plant.step(GOOD, push, 1e-3).v, expected.v)


def test_divergence_is_an_error():
    stiff = five_dof().with_joint("R5", stop_damping=1e6)
    with pytest.raises(
        InvalidValue, match=r"simulation diverged: joint 'R5' .*dt = 0.001 s.*; reduce dt"
    ):
        Plant(stiff).step(
            State.of([0, -1.1, 0.3, 0, 1.2]), command("effort", [0.0] * 5), 1e-3, 5000
        )


# Actuators without kernel, machines without compiler ------------------------------------------


class PythonDcMotor(DcMotor):
    """The DC motor without a kernel, as in a plugin."""

    kernel_id: ClassVar[int] = 0


@pytest.mark.parametrize(("interface", "size"), [("voltage", 9.0), ("effort", 30.0)])
@pytest.mark.parametrize("friction", [True, False])
def test_a_plugin_equals_the_kernel(monkeypatch, interface, size, friction):
    """To the last digit without dry friction, whose impulses are computed in another order."""
    smooth = five_dof().with_motors(**(COMPLETE | {"coulomb_friction": 0.0}))
    compiled_arm = with_friction() if friction else smooth.with_joint("R3", damping=0.1)
    registered = {**plugins.BUILT_IN["actuators"], "own": "test_plant:PythonDcMotor"}
    monkeypatch.setitem(plugins.BUILT_IN, "actuators", registered)
    arm = replace(
        compiled_arm, joints=tuple(replace(j, actuator="own") for j in compiled_arm.joints)
    )
    assert {a.kernel_id for a in arm.actuators} == {0}
    start = State.of([0.1, -1.19, 0.5, 0.3, -1.0], [1, -2, 1, 3, -4])
    volts = command(interface, size * np.array([1, -1, 0.5, -0.5, 0.1]))
    ends = [Plant(a).step(start, volts, 1e-4, 300) for a in (arm, compiled_arm)]
    assert (same_to_round_off if friction else same)(*ends)


@pytest.mark.parametrize("name", ["five_dof", "four_joint", "puma560", "seven_dof_can", "so101"])
def test_the_compiled_step_is_the_step_of_the_equations(name):
    arm = load_arm(name)
    plant, rng = Plant(arm), np.random.default_rng(5)
    assert plant.integrator.name == "semi_implicit_euler"
    middle = 0.5 * (np.maximum(arm.lower, -3.0) + np.minimum(arm.upper, 3.0))
    start = State.of(middle, 0.5 * rng.standard_normal(arm.nv))
    size = [min(a.command_limit(a.interfaces[0]), 50.0) for a in arm.actuators]
    given = Command.checked("mixed", 0.3 * rng.standard_normal(arm.nv) * size, arm.nv)
    after = plant.step(start, given, 1e-4, 300)
    system = EquationsOfMotion(arm)
    assert system.compiled
    system.set_command(given)
    q, v, z = start.q.copy(), start.v.copy(), arm.initial_act.copy()
    for _ in range(300):
        plant.integrator.step(system, q, v, z, 1e-4)
    np.testing.assert_allclose(after.q, q, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(after.v, v, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(after.act, z, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(after.tau, system.effort, rtol=1e-10, atol=1e-11)
    assert np.abs(after.v - start.v).max() > 1e-3


def test_one_ideal_joint_among_motors():
    arm = five_dof()
    mixed = replace(
        arm,
        joints=(
            *arm.joints[:4],
            replace(arm.joints[4], actuator="ideal", constants=MappingProxyType({})),
        ),
    )
    after = Plant(mixed).step(GOOD, command("effort", [1.0, 2, 3, 4, 50]), 1e-4)
    np.testing.assert_allclose(after.tau, [1, 2, 3, 4, 12], rtol=1e-14)
    with pytest.raises(UnknownName, match="'R5' 'voltage'; known: effort"):
        Plant(mixed).step(GOOD, command("voltage", [0.0] * 5), 1e-4)


RUN = """
import sys, warnings
if {blocked}:
    sys.modules["numba"] = None
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from arm_dynamics import Plant, load_arm, Command, State
    arm = load_arm("five_dof").with_motors(**{constants})
    arm = arm.with_joint("R3", friction=0.3, damping=0.1)
    state = State.of([0.1, -1.19, 0.5, 0.3, -1.0], [1, -2, 1, 3, -4])
    for interface, value in (("voltage", [3, -4, 2, 1, -1]), ("effort", [9, -9, 4, 1, 0.1])):
        state = Plant(arm).step(state, Command.checked(interface, value, 5), 1e-4, 100)
print(sum("numba is not installed" in str(w.message) for w in caught))
print(*(x.hex() for array in (state.q, state.v, state.tau) for x in array.tolist()))
"""


def test_the_same_numbers_without_a_compiler_and_one_warning():
    answers = []
    for blocked in (False, True):
        script = RUN.format(blocked=blocked, constants=COMPLETE)
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        count, numbers = done.stdout.splitlines()
        assert int(count) == blocked
        answers.append([float.fromhex(x) for x in numbers.split()])
    np.testing.assert_allclose(answers[0], answers[1], rtol=1e-12)
