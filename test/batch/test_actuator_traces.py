"""Kernels of a user's compiled actuators: key, mathematical functions, equations without trace."""

import math
import sys
from dataclasses import replace
from types import MappingProxyType, ModuleType

import numpy as np
import pytest
from conftest import chain, five_dof

from arm_dynamics import simulation
from arm_dynamics.core import ConfigError, InvalidValue, Parameter, plugins
from arm_dynamics.core.arrays import as_readonly
from arm_dynamics.core.state import Command, State
from arm_dynamics.simulation import ActuatorEquations, CompiledActuator, compiled
from arm_dynamics.simulation.actuators.actuator import ActuatorState
from arm_dynamics.simulation.linearization import linearize
from arm_dynamics.simulation.plant import Plant

pytest.importorskip("casadi")
pytest.importorskip("numba")
from arm_dynamics.batch import rollout
from arm_dynamics.batch.kernels.derivative import StepDerivative, linearize_by_trace
from arm_dynamics.batch.kernels.kernel_cache import equations_fingerprint

GAIN = 1


def actuator(function, **members):
    """Return a class of actuators with one constant, "gain" = 2, and the effort ``function``."""
    gain = Parameter("gain", 2.0, "1", "effort per command", lower=0)
    body = {"interfaces": ("effort",), "parameters": (gain,), "__module__": __name__}
    body["equations"] = ActuatorEquations(compiled(function))
    return type("User", (CompiledActuator,), body | members)


def driven_by(monkeypatch, kind, arm=None):
    """Return an arm, by default of one joint, with actuators of class ``kind``."""
    module = ModuleType("user_actuators")
    module.User = kind
    monkeypatch.setitem(sys.modules, "user_actuators", module)
    registered = {**plugins.BUILT_IN["actuators"], "user": "user_actuators:User"}
    monkeypatch.setitem(plugins.BUILT_IN, "actuators", registered)
    arm = arm or chain({})
    joints = (replace(j, actuator="user", constants=MappingProxyType({})) for j in arm.joints)
    arm = replace(arm, joints=tuple(joints))
    assert arm.actuators  # resolved while the class is registered
    return arm


def plant_ends(arm, start, commands, dt):
    """Return the final configurations of the plant under each command."""
    plant, ends = Plant(arm), []
    for u in commands:
        ends.append(plant.step(start, Command.checked("effort", u[0], arm.nv), dt, len(u)).q)
    return np.array(ends)


# Key ------------------------------------------------------------------------------------------


def forward(interface, command, q, v, act, constants):
    return constants[GAIN] * command


def backward(interface, command, q, v, act, constants):
    return -5.0 * constants[GAIN] * command


@pytest.mark.slow
def test_two_classes_with_equal_constants_have_different_kernels(monkeypatch):
    commands, start = np.full((1, 20, 1), 1.5), State.of([0.2], [0.0])
    ends = []
    for function in (forward, backward):
        arm = driven_by(monkeypatch, actuator(function))
        result = rollout(arm, start, commands, 1e-3, interface="effort", backend="generated")
        np.testing.assert_allclose(result.q[:, -1], plant_ends(arm, start, commands, 1e-3), 1e-10)
        derivative = StepDerivative(arm)
        y, _, _ = derivative.step(np.array([0.2, 0.0]), np.array([1.5]), 1e-3)
        ends.append((result.q[0, -1, 0], y[1]))
    assert min(abs(ends[0][k] - ends[1][k]) for k in range(2)) > 1e-5


def scaled_by(number):
    """Return functions that call a helper function with a number of another module."""

    @compiled
    def helper(x):
        return number * x

    def function(interface, command, q, v, act, constants):
        return helper(command) - constants[GAIN] * v

    return function


def test_the_key_depends_on_helper_functions_and_their_numbers(monkeypatch):
    def key(number):
        arm = driven_by(monkeypatch, actuator(scaled_by(number)))
        return equations_fingerprint(arm, "effort")

    assert key(3.0) == key(3.0)
    assert key(3.0) != key(3.5)


def number_in_the_source(interface, command, q, v, act, constants):
    return 2.0 * command


def test_the_key_depends_on_the_role_of_varied_constants(monkeypatch):
    """Both functions return 2 u for the nominal gain."""
    keys = []
    for function in (forward, number_in_the_source):
        arm = driven_by(monkeypatch, actuator(function))
        keys.append(equations_fingerprint(arm, "effort", ("motor.gain",)))
    assert keys[0] != keys[1]
    kinds = [
        actuator(forward, armature=property(lambda a, k=k: k * a.constants["gain"])) for k in (0, 1)
    ]
    arms = [driven_by(monkeypatch, kind) for kind in kinds]
    keys = [equations_fingerprint(arm, "effort", ("motor.gain",)) for arm in arms]
    assert keys[0] != keys[1]


def test_the_key_depends_on_each_of_the_four_equations(monkeypatch):
    def friction(direction, v, effort, constants):
        return 0.1 * v * v

    def friction_of_effort(direction, v, effort, constants):
        return 0.1 * effort * effort

    def damping(interface, command, q, v, act, constants):
        return constants[GAIN]

    def keys():
        base = actuator(lambda interface, command, q, v, act, constants: v)
        more = ({}, {"dry_friction": friction}, {"dry_friction": friction_of_effort})
        for names in (*more, {"damping": damping}):
            equations = base.equations._replace(**{n: compiled(f) for n, f in names.items()})
            kind = type("User", (base,), {"equations": equations, "__module__": __name__})
            yield equations_fingerprint(driven_by(monkeypatch, kind), "effort")

    assert len(set(keys())) == 4


def test_bundled_actuators_are_not_traced_for_the_key(monkeypatch):
    monkeypatch.setitem(sys.modules, "arm_dynamics.batch.kernels.kernel_source", None)
    equations_fingerprint.cache_clear()
    assert equations_fingerprint(five_dof(), "voltage", ("motor.kt",)) == ""


def test_without_casadi_a_users_equations_have_no_key(monkeypatch):
    monkeypatch.setitem(sys.modules, "casadi", None)
    for name in ("kernel_source", "emitter", "step_trace", "symbolic_equations", "symbolic_math"):
        monkeypatch.delitem(sys.modules, f"arm_dynamics.batch.kernels.{name}", raising=False)
    with pytest.raises(
        ConfigError, match=r"kernel of arm 'chain': CasADi is not installed; .* pip inst"
    ):
        equations_fingerprint(driven_by(monkeypatch, actuator(forward)), "effort")


# Mathematical functions -----------------------------------------------------------------------


def elementary(interface, command, q, v, act, constants):
    smooth = math.tanh(v / 0.3) + 0.1 * np.tanh(q) + math.log(1.0 + q**2) - math.exp(-v * v)
    angle = math.sin(q) + 0.3 * math.cos(v) + 0.1 * math.tan(0.2 * q)
    powers = math.sqrt(1.0 + v**2) + (1.0 + abs(v)) ** 1.7 + (2.0 + q) ** -2 + math.fabs(q) ** 3
    return simulation.clip(constants[GAIN] * command, -5.0, 5.0) - 0.2 * (smooth + angle + powers)


def test_mathematical_functions_are_traced(monkeypatch):
    arm, start = driven_by(monkeypatch, actuator(elementary)), State.of([0.4], [1.3])
    commands = np.array([3.0, -1.0])[:, None, None] * np.ones((2, 60, 1))
    result = rollout(arm, start, commands, 1e-3, interface="effort", backend="generated")
    ends = plant_ends(arm, start, commands, 1e-3)
    np.testing.assert_allclose(result.q[:, -1], ends, 1e-11)
    single = rollout(
        arm, start, commands, 1e-3, interface="effort", backend="generated", precision="float32"
    )
    np.testing.assert_allclose(single.q[:, -1], ends, 1e-4)
    command = Command.checked("effort", [3.0], 1)
    one, other = linearize_by_trace(arm, start, command), linearize(arm, start, command)
    np.testing.assert_allclose(one.A, other.A, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(one.B, other.B, rtol=1e-5, atol=1e-5)


# Equations without trace ----------------------------------------------------------------------


def effort_of_last_entries(interface, command, q, v, act, constants):
    return constants[-1] * command + act[-1] + len(act) + len(constants)


def rate_of_one_interface(interface, command, q, v, act, constants, decay, source):
    if interface == 0:
        decay[0], source[0] = 50.0, 50.0 * command


@pytest.mark.slow
@pytest.mark.parametrize("interface", ["effort", "velocity"])
def test_arrays_have_the_same_length_in_traces_and_unwritten_terms_are_zero(monkeypatch, interface):
    members = {
        "interfaces": ("effort", "velocity"),
        "states": (ActuatorState("torque", "N·m"),),
        "equations": ActuatorEquations(
            compiled(effort_of_last_entries), compiled(rate_of_one_interface)
        ),
    }
    arm, start = driven_by(monkeypatch, actuator(forward, **members)), State.of([0.4], [1.3])
    start = replace(start, act=as_readonly([0.7]))
    commands = np.full((1, 40, 1), 0.3)
    result = rollout(arm, start, commands, 1e-3, interface=interface, backend="generated")
    after = Plant(arm).step(start, Command.checked(interface, [0.3], 1), 1e-3, 40)
    np.testing.assert_allclose(result.q[0, -1], after.q, 1e-11)


def branch(interface, command, q, v, act, constants):
    if v > 0.1:
        return command
    return 2.0 * command


def comparison_by_python(interface, command, q, v, act, constants):
    return max(command, -1.0)


def rounding(interface, command, q, v, act, constants):
    return math.floor(command)


def attribute(interface, command, q, v, act, constants):
    return constants[: constants.size][GAIN] * command.real


@pytest.mark.quick(1)
@pytest.mark.parametrize("function", [branch, comparison_by_python, rounding, attribute])
def test_equations_without_a_trace_are_simulated_by_the_plant(monkeypatch, function):
    kind = type(function.__name__, (actuator(function),), {"__module__": __name__})
    arm, start = driven_by(monkeypatch, kind), State.of([0.1], [0.2])
    commands = np.array([1.5, -2.5])[:, None, None] * np.ones((2, 10, 1))
    cause = rf"kernel, joint 'J1': trace of {function.__name__}\.effort = \w+Error: .*; expected"
    with pytest.warns(RuntimeWarning, match=f"use backend 'plant', slower, because .*{cause}"):
        result = rollout(arm, start, commands, 1e-3, interface="effort")
    assert result.backend == "plant"
    np.testing.assert_array_equal(result.q[:, -1], plant_ends(arm, start, commands, 1e-3))
    with pytest.raises(InvalidValue, match=cause):
        rollout(arm, start, commands, 1e-3, interface="effort", backend="generated")
    with pytest.raises(InvalidValue, match=cause):
        linearize_by_trace(arm, start, Command.checked("effort", [0.0], 1))


def test_an_armature_without_a_trace_is_rejected_by_name(monkeypatch):
    kind = actuator(forward, armature=property(lambda a: max(a.constants["gain"], 0.1)))
    arm, start = driven_by(monkeypatch, kind), State.of([0.1], [0.2])
    vary = {"motor.gain": np.array([[1.0], [2.0]])}
    with pytest.raises(InvalidValue, match=r"joint 'J1': trace of User.armature = TypeError"):
        rollout(
            arm, start, np.ones((2, 5, 1)), 1e-3, interface="effort", vary=vary,
            backend="generated",
        )  # fmt: skip
