"""Faulty equations of compiled actuators: the message names joint and class."""

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
import test_compiled_actuator as sound
from conftest import five_dof
from test_compiled_actuator import Lag, driven

from arm_dynamics.core import InvalidValue
from arm_dynamics.core.state import Command, State
from arm_dynamics.simulation import (
    ActuatorEquations,
    ActuatorState,
    CompiledActuator,
    compiled,
)
from arm_dynamics.simulation.equations_of_motion import EquationsOfMotion
from arm_dynamics.simulation.friction import velocity_after_dry_friction
from arm_dynamics.simulation.plant import Plant
from arm_dynamics.simulation.simulation import Simulation

START = sound.START
PUSH = Command.checked("effort", [5.0, -30, 8, 0.1, 2], 5)
NOTHING = Command.checked("effort", [0.0] * 5, 5)


def with_equations(monkeypatch, equations, **members):
    """The five_dof arm with actuators of ``equations`` and of the parameters of ``Lag``."""
    kind = type("Faulty", (Lag,), {"equations": equations, **members})
    monkeypatch.setattr(sound, "Faulty", kind, raising=False)
    return driven(monkeypatch, kind)


@pytest.fixture
def faulty(monkeypatch):
    """Function that returns the five_dof arm with actuators of such equations."""
    return lambda equations, **members: with_equations(monkeypatch, equations, **members)


# Exceptions of the equations --------------------------------------------------------------------


@compiled
def effort_with_limit(interface, command, q, v, act, constants):
    if v > 5.0:
        raise ValueError("v above 5 rad/s")
    return command


@compiled
def rate_with_limit(interface, command, q, v, act, constants, decay, source):
    if v > 5.0:
        raise ValueError("v above 5 rad/s")
    decay[0] = 50.0


@compiled
def damping_with_limit(interface, command, q, v, act, constants):
    if v > 5.0:
        raise ValueError("v above 5 rad/s")
    return 0.0


@compiled
def friction_with_limit(direction, v, effort, constants):
    if v > 5.0:
        raise ValueError("v above 5 rad/s")
    return 0.1


RAISING = {
    "effort": sound.Lag.equations._replace(effort=effort_with_limit),
    "act_dot_terms": ActuatorEquations(sound.effort, rate_with_limit),
    "damping": sound.Lag.equations._replace(damping=damping_with_limit),
    "dry_friction": sound.Lag.equations._replace(dry_friction=friction_with_limit),
}
EVALUATED = [field for field in RAISING if field != "damping"]
"""Equations of these integrators, which do not evaluate the damping of a motor by torque."""


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("integrator", "field"),
    [
        *((name, field) for name in ("semi_implicit_euler", "adaptive") for field in EVALUATED),
        *(("rk4", field) for field in RAISING),
    ],
)
def test_what_an_equation_raises_is_raised_by_the_step(faulty, integrator, field):
    plant = Plant(faulty(RAISING[field]), integrator)
    slow = plant.step(State.of([0.1, -1.1, 0.5, 0.3, -1.0]), NOTHING, 1e-4)
    assert np.isfinite(slow.v).all()
    fast = State.of([0.1, -1.1, 0.5, 0.3, -1.0], [0, 0, 0, 8, 0])
    with pytest.raises(ValueError, match="v above 5 rad/s"):
        plant.step(fast, PUSH, 1e-4, 3)
    again = plant.step(State.of([0.1, -1.1, 0.5, 0.3, -1.0]), NOTHING, 1e-4)
    np.testing.assert_array_equal(again.v, slow.v)


def test_an_error_after_many_steps_is_found(faulty):
    plant = Plant(faulty(RAISING["effort"]))
    with pytest.raises(ValueError, match="v above 5 rad/s"):
        plant.step(State.of([0.1, -1.1, 0.5, 0.3, -1.0]), PUSH, 1e-3, 5000)


def test_what_an_equation_raises_is_raised_by_efforts(faulty):
    plant = Plant(faulty(RAISING["effort"]))
    with pytest.raises(ValueError, match="v above 5 rad/s"):
        plant.efforts(State.of([0.0] * 5, [0, 0, 0, 8, 0]), PUSH)


# Arrays of the equations ------------------------------------------------------------------------


@compiled
def rate_of_positive_commands(interface, command, q, v, act, constants, decay, source):
    if command > 0.0:
        decay[0], source[0] = 50.0, 50.0 * command


def test_terms_that_are_not_written_are_zero(faulty):
    equations = ActuatorEquations(sound.effort, rate_of_positive_commands)
    plant = Plant(faulty(equations))
    pushed = plant.step(START, Command.checked("effort", [5.0] * 5, 5), 1e-3, 3)
    kept = plant.step(pushed, Command.checked("effort", [-5.0] * 5, 5), 1e-3, 3)
    np.testing.assert_array_equal(kept.act, pushed.act)
    motion = EquationsOfMotion(plant.arm)
    for size, rate in ((5.0, 50.0), (-5.0, 0.0)):
        motion.set_command(Command.checked("effort", [size] * 5, 5))
        decay, source = motion.act_dot_terms(START.q, START.v, plant.arm.initial_act)
        assert decay.tolist() == [rate] * 5
        assert source.tolist() == [rate * size] * 5


@compiled
def effort_of_last_entries(interface, command, q, v, act, constants):
    return act[-1] + 10.0 * constants[-1] + 100.0 * len(constants) + 1000.0 * len(act)


def test_the_arrays_have_the_same_length_in_methods_and_in_the_step(faulty):
    arm = faulty(ActuatorEquations(effort_of_last_entries))
    effort = arm.actuators[0].effort("effort", 0.0, 0.0, 0.0, (0.5,))
    assert effort == 0.5 + 10.0 * 0.4 + 600.0 + 1000.0
    np.testing.assert_array_equal(Plant(arm).step(START, NOTHING, 1e-6).tau, [effort] * 5)


@compiled
def constant_beyond(interface, command, q, v, act, constants):
    return constants[6]


@compiled
def helper_beyond(constants):
    return constants[7]


@compiled
def helped(interface, command, q, v, act, constants):
    return helper_beyond(constants) + 1.0 / q


@compiled
def state_beyond(interface, command, q, v, act, constants, decay, source):
    source[1] = act[0]


@compiled
def damping_beyond(interface, command, q, v, act, constants):
    return act[1] if interface == 1 else 0.0


@compiled
def friction_beyond(direction, v, effort, constants):
    return constants[-7]


@pytest.mark.parametrize(
    ("field", "function"),
    [
        ("effort", constant_beyond),
        ("effort", helped),
        ("act_dot_terms", state_beyond),
        ("damping", damping_beyond),
        ("dry_friction", friction_beyond),
    ],
)
def test_an_index_beyond_the_arrays_is_rejected(faulty, field, function):
    arm = faulty(sound.Lag.equations._replace(**{field: function}))
    with pytest.raises(
        InvalidValue,
        match=rf"joint 'R1': {field} of Faulty: index .* expected an index below 1 for states,"
        " below 6 for constants",
    ):
        Plant(arm)


# Numbers of the equations -----------------------------------------------------------------------


@compiled
def rate_nan_at_rest(interface, command, q, v, act, constants, decay, source):
    source[0] = v / abs(v)


@compiled
def rate_nan_at_speed(interface, command, q, v, act, constants, decay, source):
    decay[0], source[0] = 50.0, (v - 8.0) / (v - 8.0)


@compiled
def friction_nan_at_speed(direction, v, effort, constants):
    return np.sqrt(5.0 - v)


@pytest.mark.slow
def test_a_nan_at_rest_is_reported_with_joint_and_class(faulty):
    message = "joint 'R1': λ or n of state 'torque' of Faulty = nan.*; expected a number"
    with pytest.raises(InvalidValue, match=message):
        Plant(faulty(ActuatorEquations(sound.effort, rate_nan_at_rest)))


@pytest.mark.quick(1)
@pytest.mark.parametrize("integrator", ["semi_implicit_euler", "rk4"])
@pytest.mark.parametrize(
    ("equations", "message"),
    [
        (ActuatorEquations(sound.effort, rate_nan_at_speed), "λ or n of state 'torque' of Faulty"),
        (Lag.equations._replace(dry_friction=friction_nan_at_speed), "dry friction of Faulty"),
    ],
)
def test_a_nan_in_motion_is_reported_with_joint_and_class(faulty, integrator, equations, message):
    plant = Plant(faulty(equations), integrator)
    fast = State.of([0.1, -1.1, 0.5, 0.3, -1.0], [0, 0, 0, 8, 0])
    with pytest.raises(InvalidValue, match=f"joint 'R4': {message} = nan.*; expected a number"):
        plant.step(fast, NOTHING, 1e-6, 3)


@pytest.mark.slow
def test_a_state_that_is_not_finite_is_named(monkeypatch):
    plant = Plant(driven(monkeypatch, Lag))
    bad = State(0.0, START.q, START.v, START.tau, np.array([0, 0, np.inf, 0, 0.0]))
    with pytest.raises(
        InvalidValue, match=r"not finite: actuator state 'torque' of joint 'R3' \(Lag\) = inf"
    ):
        plant.step(bad, NOTHING, 1e-3)


@pytest.mark.parametrize("side", [0, 1])
def test_a_nan_of_dry_friction_does_not_lock_the_joint(side):
    bounds = np.full((2, 2), 0.1)
    bounds[side, 1] = np.nan
    after = velocity_after_dry_friction(np.array([1.0, 2.0]), np.eye(2), *bounds)
    assert np.isnan(after[1])


def test_an_unlimited_dry_friction_locks_the_joint():
    bound = np.array([0.1, np.inf])
    after = velocity_after_dry_friction(np.array([1.0, 2.0]), np.eye(2), bound, bound)
    np.testing.assert_allclose(after, [0.9, 0.0])


# Declarations -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "effort", "act_dot_terms", "dry_friction_bounds", "damping_at", "back_emf_damping",
        "breakaway_effort", "has_dry_friction", "has_internal_friction",
        "apply_internal_friction", "kernel_constants", "kernel_slots",
    ],
)  # fmt: skip
def test_an_override_that_the_step_ignores_is_rejected(name):
    with pytest.raises(
        InvalidValue, match=rf"class Own: {name} = an override; .*in `equations`, or subclass Act"
    ):
        type("Own", (Lag,), {name: property(lambda _: 0.0)})


def test_an_override_of_a_mixin_is_rejected():
    class Braked:
        back_emf_damping = 0.4

    with pytest.raises(InvalidValue, match="class Own: back_emf_damping = an override"):
        type("Own", (Braked, Lag), {})


def test_other_overrides_are_accepted():
    class Own(Lag):
        armature = 0.5
        equations = ActuatorEquations(sound.effort)

    assert issubclass(Own, CompiledActuator)


@pytest.mark.parametrize("group", [-1, 0.5, True])
def test_a_group_of_states_is_a_number_from_0(group):
    with pytest.raises(InvalidValue, match=r"actuator state 'torque': group = .*at least 0"):
        ActuatorState("torque", "N·m", group=group)


@compiled
def damping_by_interface(interface, command, q, v, act, constants):
    return 0.1 + 1000.0 * interface


@pytest.mark.slow
def test_the_damping_of_every_interface_limits_the_time_step(faulty):
    arm = faulty(ActuatorEquations(sound.effort, damping=damping_by_interface))
    assert arm.actuators[0].back_emf_damping == 1000.1
    assert arm.actuators[0].damping_at("effort", 0.0, 0.0, 0.0) == 0.1
    with pytest.raises(InvalidValue, match=r"damping = 1000 N·m·s/rad"):
        Plant(arm).require_stable(START.q, 0.01)


# Copies -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("integrator", ["semi_implicit_euler", "rk4"])
def test_a_copy_of_a_plant_simulates_the_same_motion(monkeypatch, integrator):
    plant = Plant(driven(monkeypatch, Lag), integrator)
    expected = plant.step(START, PUSH, 1e-3, 5)
    for copied in (copy.copy(plant), copy.deepcopy(plant), pickle.loads(pickle.dumps(plant))):
        plant.step(START, NOTHING, 1e-3, 2)
        after = copied.step(START, PUSH, 1e-3, 5)
        for name in ("q", "v", "tau", "act"):
            np.testing.assert_array_equal(getattr(after, name), getattr(expected, name))
        np.testing.assert_array_equal(
            copied.efforts(after, PUSH).applied, plant.efforts(expected, PUSH).applied
        )


def test_a_copy_of_the_equations_has_separate_memory(monkeypatch):
    motion = EquationsOfMotion(driven(monkeypatch, Lag))
    z = motion.arm.initial_act
    for copied in (copy.copy(motion), copy.deepcopy(motion), pickle.loads(pickle.dumps(motion))):
        motion.set_command(PUSH)
        expected = motion.acceleration(START.q, START.v, z)
        copied.set_command(NOTHING)
        copied.acceleration(-START.q, -START.v, z)
        copied.set_command(PUSH)
        np.testing.assert_array_equal(copied.acceleration(START.q, START.v, z), expected)
        copied.set_command(NOTHING)
        np.testing.assert_array_equal(motion.acceleration(START.q, START.v, z), expected)


def test_a_copy_of_a_simulation_continues_the_motion(monkeypatch):
    simulation = Simulation(driven(monkeypatch, Lag), dt=1e-3)
    simulation.submit(PUSH)
    simulation.advance()
    copied = copy.deepcopy(simulation)
    for one in (simulation, copied):
        one.submit(Command.checked("effort", PUSH.value, 5, one.state.time))
    for _ in range(3):
        expected, after = simulation.advance(), copied.advance()
    np.testing.assert_array_equal(after.v, expected.v)


LOAD = """
import pickle, sys
sys.path.append("..")
import test_compiled_actuator as module
from arm_dynamics.core import plugins
plugins.BUILT_IN["actuators"]["own"] = "test_compiled_actuator:Lag"
plant = pickle.loads(bytes.fromhex(sys.stdin.read()))
command = module.Command.checked("effort", [5.0, -30, 8, 0.1, 2], 5)
print(*plant.step(module.START, command, 1e-3, 20).v.tolist())
"""


@pytest.mark.slow
def test_a_pickled_plant_runs_in_another_process(monkeypatch):
    plant = Plant(driven(monkeypatch, Lag))
    done = subprocess.run(
        [sys.executable, "-c", LOAD], input=pickle.dumps(plant).hex(), capture_output=True,
        text=True, cwd=Path(__file__).parent, check=True,
    )  # fmt: skip
    expected = plant.step(START, PUSH, 1e-3, 20).v
    assert [float(v) for v in done.stdout.split()] == expected.tolist()


# Divergence -------------------------------------------------------------------------------------


def stiff_arm():
    return five_dof().with_joint("R5", stop_damping=1e6)


BEYOND = State.of([0, -1.1, 0.3, 0, 1.2], [0, 0, 0, 0, 1.0])


def test_a_diverged_motion_ends_early(monkeypatch):
    count, aba = 0, pin.aba

    def counted(*arguments):
        nonlocal count
        count += 1
        return aba(*arguments)

    monkeypatch.setattr(pin, "aba", counted)
    plant = Plant(stiff_arm())
    with pytest.raises(InvalidValue, match="simulation diverged: joint 'R5'"):
        plant.step(BEYOND, NOTHING, 1e-3, 20_000)
    assert 0 < count < 1000


def test_steps_in_chunks_are_the_same_steps():
    plant = Plant(five_dof())
    whole, parts = plant.step(BEYOND, NOTHING, 1e-5, 1200), BEYOND
    for steps in (512, 513, 175):
        parts = plant.step(parts, NOTHING, 1e-5, steps)
    np.testing.assert_array_equal(whole.q, parts.q)
    np.testing.assert_array_equal(whole.v, parts.v)


WITHOUT_NUMBA = """
import sys, warnings
sys.path.append("..")
sys.modules["numba"] = None
warnings.simplefilter("ignore")
import test_compiled_actuator_faults as module
plant = module.Plant(module.stiff_arm())
warnings.simplefilter("error")
try:
    plant.step(module.State.of(module.BEYOND.q, [1e305] * 5), module.NOTHING, 1e-3, 2)
except module.InvalidValue as error:
    print(error)
"""


def test_divergence_without_numba_gives_no_warning():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_NUMBA], capture_output=True, text=True,
        cwd=Path(__file__).parent, check=True,
    )  # fmt: skip
    assert "simulation diverged: joint 'R" in done.stdout
