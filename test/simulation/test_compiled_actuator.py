"""Actuators of a user's compiled functions, compared with the same equations in Python."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from conftest import five_dof

from arm_dynamics.core import InvalidValue, Parameter, UnknownName, plugins
from arm_dynamics.core.state import Command, State
from arm_dynamics.simulation import (
    Actuator,
    ActuatorEquations,
    ActuatorState,
    CompiledActuator,
    clip,
    compiled,
    maximum,
)
from arm_dynamics.simulation.equations_of_motion import EquationsOfMotion
from arm_dynamics.simulation.plant import Plant

PARAMETERS = (
    Parameter("time_constant", 0.02, "s", "lag", above=0),
    Parameter("max_velocity", 10.0, "rad/s", "speed without torque", above=0),
    Parameter("friction", 0.2, "N·m", "dry friction", lower=0),
    Parameter("stiffness", 3.0, "N·m/rad", "of a spring to q = 0", lower=0),
    Parameter("braking", 0.4, "N·m·s/rad", "viscous", lower=0),
)
LIMIT, TIME, SPEED, FRICTION, STIFFNESS, BRAKING = range(6)


@compiled
def effort(interface, command, q, v, act, constants):
    limit = constants[LIMIT] * maximum(1.0 - abs(v) / constants[SPEED], 0.0)
    return clip(act[0], -limit, limit) - constants[STIFFNESS] * q - constants[BRAKING] * v


@compiled
def torque_rate(interface, command, q, v, act, constants, decay, source):
    scale = 1.0 if interface == 0 else 2.0  # the second interface counts half newton meters
    decay[0] = 1.0 / constants[TIME]
    source[0] = decay[0] * clip(scale * command, -constants[LIMIT], constants[LIMIT])


@compiled
def braking(interface, command, q, v, act, constants):
    return constants[BRAKING]


@compiled
def friction(direction, v, effort, constants):
    return constants[FRICTION] * (1.0 + 0.5 * direction)


class Lag(CompiledActuator):
    interfaces = ("effort", "velocity")
    parameters = PARAMETERS
    equations = ActuatorEquations(effort, torque_rate, braking, friction)

    @property
    def states(self):
        return (ActuatorState("torque", "N·m", 0.5),)


class PythonLag(Actuator):
    interfaces, parameters, states = Lag.interfaces, PARAMETERS, Lag.states

    def effort(self, interface, value, q, v, act=()):
        c = self.constants
        limit = self.effort_limit * max(1.0 - abs(v) / c["max_velocity"], 0.0)
        return min(max(act[0], -limit), limit) - c["stiffness"] * q - c["braking"] * v

    def act_dot_terms(self, interface, value, q, v, act):
        scale, rate = (1.0 if interface == "effort" else 2.0), 1.0 / self.constants["time_constant"]
        return (rate,), (rate * min(max(scale * value, -self.effort_limit), self.effort_limit),)

    def dry_friction_bounds(self, v, effort):
        return 1.5 * self.constants["friction"], 0.5 * self.constants["friction"]

    breakaway_effort = property(lambda self: 1.5 * self.constants["friction"])
    back_emf_damping = property(lambda self: self.constants["braking"])


def driven(monkeypatch, kind):
    """The five_dof arm with actuators of a class of this module."""
    monkeypatch.setitem(sys.modules, "own_actuators", sys.modules[__name__])
    registered = {**plugins.BUILT_IN["actuators"], "own": f"own_actuators:{kind.__name__}"}
    monkeypatch.setitem(plugins.BUILT_IN, "actuators", registered)
    return driven_by("own")


def driven_by(actuator):
    arm = five_dof()
    joints = (replace(j, actuator=actuator, constants=MappingProxyType({})) for j in arm.joints)
    return replace(arm, joints=tuple(joints))


START = State.of([0.1, -1.1, 0.5, 0.3, -1.0], [1, -2, 1, 3, -4])


@pytest.mark.parametrize("integrator", ["semi_implicit_euler", "rk4", "implicit_midpoint"])
@pytest.mark.parametrize("interface", ["effort", "velocity"])
def test_compiled_equations_move_the_arm_as_the_same_in_python(monkeypatch, interface, integrator):
    command = Command.checked(interface, [5.0, -30, 8, 0.1, 2], 5)
    ends = []
    for kind in (Lag, PythonLag):
        arm = driven(monkeypatch, kind)
        assert EquationsOfMotion(arm).compiled == (kind is Lag)
        ends.append(Plant(arm, integrator).step(START, command, 1e-3, 60))
    for name in ("q", "v", "tau", "act"):
        one, other = (getattr(end, name) for end in ends)
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)
    assert np.abs(ends[0].act - 0.5).min() > 1e-3  # every state has moved


def test_a_joint_of_own_equations_among_dc_motors(monkeypatch):
    arms = []
    for kind in (Lag, PythonLag):
        own = driven(monkeypatch, kind)
        joints = (*five_dof().with_motors().joints[:3], *own.joints[3:])
        arms.append(replace(own, joints=joints))
        assert arms[-1].actuators  # resolved while the class is registered
    command = Command.checked("effort", [5.0, -30, 8, 0.1, 2], 5)
    one, other = (Plant(arm).step(START, command, 1e-4, 200) for arm in arms)
    np.testing.assert_allclose(one.v, other.v, rtol=1e-11, atol=1e-12)


def test_methods_are_the_equations(monkeypatch):
    compiled_one, python = (kind("J", 30.0, {}) for kind in (Lag, PythonLag))
    rng = np.random.default_rng(2)
    for interface in Lag.interfaces:
        for u, q, v, z in 20 * rng.standard_normal((20, 4)):
            given = (interface, u, q, v, (z,))
            assert compiled_one.effort(*given) == pytest.approx(python.effort(*given), rel=1e-14)
            one, other = (a.act_dot_terms(*given) for a in (compiled_one, python))
            np.testing.assert_allclose(one, other, rtol=1e-14)
    assert compiled_one.dry_friction_bounds(1.0, 2.0) == pytest.approx((0.3, 0.1))
    assert compiled_one.breakaway_effort == pytest.approx(0.3)
    assert compiled_one.has_dry_friction
    assert compiled_one.back_emf_damping == 0.4
    with pytest.raises(UnknownName, match=r"interface of Lag.*'voltage'"):
        compiled_one.effort("voltage", 1.0, 0.0, 0.0, (0.0,))
    with pytest.raises(InvalidValue, match="effort command"):
        compiled_one.effort("effort", np.nan, 0.0, 0.0, (0.0,))


def test_rollouts_trace_the_equations(monkeypatch):
    pytest.importorskip("casadi")
    from arm_dynamics.batch import rollout

    arm = driven(monkeypatch, Lag)
    commands = np.tile([5.0, -30, 8, 0.1, 2], (2, 40, 1))
    commands[1] *= -0.5
    result = rollout(arm, START, commands, 1e-3, interface="effort")
    plant = Plant(arm)
    for k in range(2):
        state = START
        for u in commands[k]:
            state = plant.step(state, Command.checked("effort", u, 5), 1e-3)
        np.testing.assert_allclose(result.q[k, -1], state.q, rtol=1e-9, atol=1e-10)


@compiled
def no_number(interface, command, q, v, act, constants):
    return constants.no_such_attribute


class Untyped(Lag):
    equations = ActuatorEquations(no_number)


class Crowded(Lag):
    @property
    def states(self):
        return tuple(ActuatorState(f"z{k}", "1") for k in range(5))


def test_unusable_equations_are_rejected_by_joint_and_class(monkeypatch):
    with pytest.raises(InvalidValue, match="joint 'J': Crowded has 5 states; expected at most 4"):
        Crowded("J", 30.0, {})
    with pytest.raises(InvalidValue, match="joint 'R1': equations of Untyped cannot be compiled"):
        Plant(driven(monkeypatch, Untyped))


WITHOUT_NUMBA = """
import sys, warnings
sys.path.append("..")
sys.modules["numba"] = None
warnings.simplefilter("ignore")
import test_compiled_actuator as module
from arm_dynamics.core import plugins
plugins.BUILT_IN["actuators"]["own"] = "test_compiled_actuator:Lag"
arm = module.driven_by("own")
command = module.Command.checked("effort", [5.0, -30, 8, 0.1, 2], 5)
print(*module.Plant(arm).step(module.START, command, 1e-3, 20).v.tolist())
"""


def test_without_numba_the_same_functions_run_in_python(monkeypatch):
    folder = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_NUMBA], capture_output=True, text=True, cwd=folder,
        check=True,
    )  # fmt: skip
    command = Command.checked("effort", [5.0, -30, 8, 0.1, 2], 5)
    after = Plant(driven(monkeypatch, Lag)).step(START, command, 1e-3, 20)
    np.testing.assert_allclose([float(v) for v in done.stdout.split()], after.v, rtol=1e-11)
