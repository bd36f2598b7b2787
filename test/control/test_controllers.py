"""Controllers: the PID against a recursion by hand, and one contract for every controller."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import cache

import controller_commands
import numpy as np
import pytest
from conftest import chain, examples, five_dof
from hypothesis import example, given, settings
from hypothesis import strategies as st

from arm_dynamics import Plant, load_arm
from arm_dynamics.batch.planning.joint_mpc import JointMpc
from arm_dynamics.batch.planning.task_space_mpc import TaskSpaceMpc
from arm_dynamics.control.controllers.gravity_compensation import GravityCompensation
from arm_dynamics.control.controllers.pid import Pid, PidGravity
from arm_dynamics.control.controllers.position import PositionController
from arm_dynamics.core import plugins, resources
from arm_dynamics.core.errors import CommandRejected, InvalidValue, UnknownName
from arm_dynamics.core.state import Command, Reference, State
from arm_dynamics.dynamics import rigid_body
from arm_dynamics.model.model_error import with_model_error

FLAT = five_dof().with_gravity([0, 0, 0])
SERVOS = five_dof().with_actuator("rate_limited")
numbers = st.floats(-1e6, 1e6)
vectors = st.lists(numbers, min_size=5, max_size=5).map(np.array)


def at(q, v=None, time=0.0):
    return State.of(q, v, time=time)


def arm_for(kind, arm):
    """Return ``arm`` with actuators that accept the controller's interface."""
    if kind.interface != "position":
        return arm
    servos = [replace(joint, initial=max(joint.initial, 0.0)) for joint in arm.joints]
    return replace(arm, joints=tuple(servos)).with_actuator("rate_limited")


def started(kind, arm, gains=None, state=None):
    controller = kind(arm, gains)
    controller.reset(state or at(arm.configuration("initial")))
    return controller


def test_the_position_controller_forwards_the_reference():
    controller, q, goal = (
        started(PositionController, SERVOS),
        SERVOS.configuration("initial"),
        np.arange(5.0),
    )
    command = controller.update(at(q, time=3.0), Reference(goal, goal + 1, goal + 2), 0.1)
    assert command.value.tolist() == goal.tolist()
    assert (command.interface, command.stamp) == ("position", 3.0)
    goal[0] = 9.0  # the caller's array is copied
    assert command.value[0] == 0.0


# PID ------------------------------------------------------------------------------------------


def test_pid_follows_the_recursion():
    """One joint: integral, filter, clamp and saturation written as scalars."""
    arm = chain({"effort": 6.0})
    gains = {"p": 5.0, "i": 8.0, "d": 0.7, "i_clamp": 0.2, "d_filter": 0.01}
    controller = started(Pid, arm, {"J1": gains | {"ff_velocity_scale": 0.5}}, at([0.3], [0.2]))
    rng, dt, integral, filtered = np.random.default_rng(4), 0.004, 0.0, 0.2
    saturated = clamped = 0
    for k in range(300):
        q, v, q_ref, v_ref = rng.normal(size=4) * (1 if k < 200 else 0.2)
        filtered += dt / (dt + 0.01) * (v - filtered)
        error = q_ref - q
        computed = 5 * error + integral + 0.7 * (0.5 * v_ref - filtered)
        expected = min(max(computed, -6.0), 6.0)
        reference = Reference(np.array([q_ref]), np.array([v_ref]), np.zeros(1))
        command = controller.update(at([q], [v], k * dt), reference, dt)
        assert command.value[0] == pytest.approx(expected, rel=1e-12, abs=1e-12)
        assert command.stamp == k * dt
        if (computed - expected) * error <= 0:
            integral += dt * 8 * error
        clamped += abs(integral) > 0.2
        integral = min(max(integral, -0.2), 0.2)
        saturated += computed != expected
    assert saturated > 10
    assert clamped > 0


def test_a_reference_step_causes_no_derivative_kick():
    controller = started(Pid, FLAT, {n: {"p": 0.0, "i": 0.0, "d": 50.0} for n in FLAT.joint_names})
    state = at(FLAT.configuration("initial"))
    jumped = Reference.hold(state.q + 1.0)
    assert not controller.update(state, jumped, 1e-3).value.any()


def test_default_gains_have_uniform_bandwidth():
    controller, m = Pid(FLAT), np.diag(rigid_body.mass_matrix(FLAT, FLAT.configuration("initial")))
    np.testing.assert_allclose(controller.gains["p"], 900 * m)
    np.testing.assert_allclose(controller.gains["d"], 48 * m)
    np.testing.assert_allclose(controller.gains["i"], 4500 * m)
    roots = np.roots([1, 48, 900, 4500])
    assert roots.real.max() < 0


def test_gravity_is_compensated_with_the_controllers_model():
    model, state = five_dof().with_payload(0.5), at([0.1, -0.8, 0.2, 0.3, -0.4])
    goal, g = Reference.hold(state.q + 0.01), rigid_body.gravity(model, state.q)
    with_g, without = (started(kind, model, state=state) for kind in (PidGravity, Pid))
    added = with_g.update(state, goal, 0.0).value - without.update(state, goal, 0.0).value
    np.testing.assert_allclose(added, g, atol=1e-12)
    free = started(GravityCompensation, model, state=state).update(state, goal, 0.0)
    np.testing.assert_array_equal(free.value, g)


def test_gravity_compensation_damps_and_ignores_the_reference():
    arm = five_dof()
    controller = started(GravityCompensation, arm, {"R3": {"d": 2.0}})
    state = at([0, -1, 0.2, 0, 0], [0, 0, 0.5, 0, 0])
    answers = [
        controller.update(state, Reference.hold(q), 1e-3).value for q in (state.q, state.q + 1)
    ]
    np.testing.assert_array_equal(*answers)
    free = rigid_body.gravity(arm, state.q)
    np.testing.assert_allclose(answers[0] - free, [0, 0, -1, 0, 0], atol=1e-12)


@pytest.mark.parametrize("kind", [Pid, PidGravity])
def test_anti_windup(kind):
    """After seconds at the limit, the effort leaves it as soon as the error is zero."""
    controller = started(
        kind, FLAT, {n: {"p": 400.0, "i": 1e4, "d": 0.0} for n in FLAT.joint_names}
    )
    q = np.array(FLAT.configuration("initial"))
    for k in range(2000):
        value = controller.update(at(q, time=k * 2e-3), Reference.hold(q + 1.0), 2e-3).value
    assert (value == FLAT.effort_limit).all()
    after = controller.update(at(q, time=4.0), Reference.hold(q), 2e-3).value
    assert (np.abs(after) < 0.25 * FLAT.effort_limit).all()


# The contract ---------------------------------------------------------------------------------

CONTROLLERS = {
    name: plugins.load_class("controllers", name)
    for name in plugins.registered_names("controllers")
}
KERNELS = pytest.mark.kernels("five_dof", "so101", "seven_dof_can")
MARKS = {"mpc": [KERNELS], "task_space_mpc": [KERNELS, pytest.mark.slow]}  # it contains mpc
PREDICTIVE = (JointMpc, TaskSpaceMpc)
ARMS = resources.resource_names("urdf", ".urdf")
WRONG = {"mass": 5.0, "length": 5.0, "inertia": 5.0, "friction": 5.0}
WRONG_ARMS = [*((name, None) for name in ARMS), ("five_dof", 0), ("four_joint", 1)]
PERIOD, STEPS = 2e-3, 4
FINITE = st.floats(allow_nan=False, allow_infinity=False)


@cache
def bundled(name):
    return load_arm(name)


def fast_integral_gains(kind, arm):
    """Return fast integral gains for the controllers that have some."""
    names = [p.name for p in kind.parameters if "integral gain" in p.description]
    return {joint: dict.fromkeys(names, 1e4) for joint in arm.joint_names}


def ignores_reference(kind, arm):
    """Return whether the controller ignores its reference."""
    q, one, answers = arm.configuration("initial"), np.ones(arm.nv), []
    for goal in (Reference.hold(q), Reference(q + 0.1, one, one)):
        controller = started(kind, arm)
        answers.append([controller.update(at(q), goal, 0.01 * (k > 0)).value for k in range(3)])
    return np.array_equal(*answers)


def run(arm, controller, q, goal, seconds):
    """Return the states of ``arm`` from rest at ``q`` under the controller, or without effort."""
    plant, states = Plant(arm), [at(q)]
    nothing = Command("effort", np.zeros(arm.nv))
    if controller is not None:
        controller.reset(states[0])
    for k in range(round(seconds / PERIOD)):
        dt = PERIOD if k else 0.0
        command = controller.update(states[-1], Reference.hold(goal), dt) if controller else nothing
        states.append(plant.step(states[-1], command, PERIOD / STEPS, STEPS))
    return states


def largest(states, q):
    return max(np.abs(state.q - q).max() for state in states)


def test_compiled_control_laws_equal_their_functions_in_python():
    run = subprocess.run(
        [sys.executable, "-W", "ignore", controller_commands.__file__],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    in_python, compiled = json.loads(run.stdout), controller_commands.every_command()
    assert in_python.keys() == compiled.keys()
    for name, values in compiled.items():
        np.testing.assert_allclose(values, in_python[name], rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize(
    "kind", [pytest.param(c, id=x, marks=MARKS.get(x, ())) for x, c in CONTROLLERS.items()]
)
class TestContract:
    def test_at_rest_on_the_reference_the_effort_is_the_gravity_torque(self, kind):
        controller, q = started(kind, FLAT), FLAT.configuration("initial")
        expected = q if kind.interface == "position" else np.zeros(5)
        for k in range(50):
            command = controller.update(at(q, time=k * 2e-3), Reference.hold(q), 2e-3 * (k > 0))
            np.testing.assert_allclose(command.value, expected, atol=1e-12)

    @given(q=vectors, v=vectors, goal=vectors, dt=st.floats(0, 1))
    def test_commands_are_finite_and_within_the_limits(self, kind, q, v, goal, dt):
        arm = arm_for(kind, five_dof())
        limit = [actuator.command_limit(kind.interface) for actuator in arm.actuators]
        controller = started(kind, arm)
        for k, step in enumerate((0.0, dt, dt)):
            try:
                command = controller.update(at(q, v, k * dt), Reference(goal, v, q), step)
            except CommandRejected:
                assert kind in PREDICTIVE  # no predicted motion is finite from there
                continue
            assert np.isfinite(command.value).all()
            assert (np.abs(command.value) <= limit).all()
            assert command.value.shape == (5,)
            assert not command.value.flags.writeable
            assert command.stamp == k * dt
            assert all(command.interface in a.interfaces for a in arm.actuators)

    @settings(max_examples=examples(40))
    @given(x=st.lists(FINITE, min_size=25, max_size=25).map(np.array), dt=st.floats(0, 1))
    @example(x=np.full(25, 1.7e308), dt=1.0)
    @example(x=np.resize([1.7e308, -1.7e308, 0.0], 25), dt=1e-3)
    def test_finite_inputs_give_finite_commands(self, kind, x, dt):
        """Commands stay within the limits; a reset restores the initial behavior."""
        arm, (q, v, *goal) = arm_for(kind, five_dof()), x.reshape(5, 5)
        controller, rest = started(kind, arm), at(arm.configuration("initial"))
        limit = [actuator.command_limit(kind.interface) for actuator in arm.actuators]
        for k in range(3):
            try:
                value = controller.update(at(q, v, k * dt), Reference(*goal), dt).value
            except CommandRejected:
                assert kind in PREDICTIVE
                continue
            assert np.isfinite(value).all()
            assert (np.abs(value) <= limit).all()
        if kind is TaskSpaceMpc:
            return  # its inverse kinematics starts at the state of a reset
        controller.reset(State.of(q, v, goal[0]))
        assert np.isfinite(controller.update(rest, Reference.hold(rest.q), dt).value).all()
        controller.reset(rest)
        fresh = started(kind, arm).update(rest, Reference.hold(rest.q), dt).value
        np.testing.assert_array_equal(
            controller.update(rest, Reference.hold(rest.q), dt).value, fresh
        )

    @pytest.mark.parametrize(
        ("q", "goal", "message"),
        [
            (np.zeros(3), np.zeros(5), r"state: q: shape = \(3,\); expected \(5,\)"),
            (np.zeros(5), np.zeros(6), r"reference: q: shape = \(6,\); expected \(5,\)"),
        ],
    )
    def test_wrong_sizes_are_rejected_by_name(self, kind, q, goal, message):
        controller = started(kind, arm_for(kind, five_dof()))
        with pytest.raises(InvalidValue, match=message):
            controller.update(at(q), Reference.hold(goal), 0.0)

    @pytest.mark.parametrize("dt", [np.nan, np.inf, 1.7e308, -1e-3, None])
    def test_an_invalid_time_step_is_rejected_and_leaves_no_trace(self, kind, dt):
        controller, rest = (
            started(kind, arm_for(kind, five_dof())),
            at(five_dof().configuration("initial")),
        )
        fresh = controller.update(rest, Reference.hold(rest.q), 0.0).value
        with pytest.raises(InvalidValue, match=r"dt \[s\]"):
            controller.update(rest, Reference.hold(rest.q + 0.1), dt)
        np.testing.assert_array_equal(
            controller.update(rest, Reference.hold(rest.q), 0.0).value, fresh
        )

    def test_reset_restores_the_initial_behavior(self, kind):
        state = at([0.1, -1.0, 0.2, 0.1, 0.3], [0.1, 0.2, 0.3, 0.4, 0.5])
        goal = Reference.hold(state.q + 0.01)
        fresh = started(kind, five_dof(), state=state).update(state, goal, 2e-3).value
        used = started(kind, five_dof())
        for k in range(100):
            used.update(at(state.q + 0.3, [1.0] * 5, k * 2e-3), goal, 2e-3)
        used.reset(state)
        np.testing.assert_array_equal(used.update(state, goal, 2e-3).value, fresh)

    def test_inputs_are_not_modified_and_commands_are_reproducible(self, kind):
        runs = []
        for _ in range(2):
            controller, rng = started(kind, five_dof()), np.random.default_rng(1)
            states = [at(rng.normal(size=5), rng.normal(size=5), k * 2e-3) for k in range(30)]
            copies = [np.array(s.q) for s in states]
            runs.append(
                [controller.update(s, Reference.hold(s.q * 0.9), 2e-3).value for s in states]
            )
            assert all((s.q == q).all() for s, q in zip(states, copies, strict=True))
        np.testing.assert_array_equal(*runs)

    def test_live_gains_keep_the_memory(self, kind):
        """Setting the active gains again during a motion changes nothing."""
        one, two = started(kind, five_dof()), started(kind, five_dof())
        q = np.array(five_dof().configuration("initial"))
        for k in range(100):
            state = at(q + 0.01 * np.sin(k), time=k * 2e-3)
            if k == 50:
                two.set_gains(two.values)
            answers = [
                controller.update(state, Reference.hold(q), 2e-3).value for controller in (one, two)
            ]
            np.testing.assert_array_equal(*answers)

    def test_invalid_gains_are_rejected_and_the_previous_ones_kept(self, kind):
        controller = kind(five_dof())
        before = controller.values
        wrong = [
            ({"R9": {}}, UnknownName, "R9"),
            ({"R2": {"warp": 1.0}}, UnknownName, "'R2' 'warp'"),
            ({"R2": 3.0}, InvalidValue, r"gains of 'R2' = 3.0; expected a mapping"),
            (3.0, InvalidValue, "gains = 3.0; expected a mapping"),
        ]
        for group, parameters in controller.parameter_groups.items():
            for p in parameters:
                below = p.lower - 1 if p.above == -np.inf else p.above
                for value in (np.nan, below):
                    wrong += [({group: {p.name: value}}, InvalidValue, f"'{group}': {p.name} = ")]
        for gains, error, message in wrong:
            with pytest.raises(error, match=message):
                controller.set_gains(gains)
            with pytest.raises(error, match=message):
                kind(five_dof(), gains)
        assert controller.values == before

    def test_set_model_changes_the_gravity_compensation(self, kind):
        """At rest on the reference only the gravity torque depends on the model; gains are kept."""
        state = at([0, -0.9, 0.2, 0.1, 0.2])
        controller, goal = started(kind, five_dof(), state=state), Reference.hold(state.q)
        light, values = controller.update(state, goal, 0.0).value, controller.values
        controller.set_model(five_dof().with_payload(0.5))
        added = controller.update(state, goal, 0.0).value - light
        load = rigid_body.gravity(five_dof().with_payload(0.5), state.q)
        load = load - rigid_body.gravity(five_dof(), state.q)
        assert np.allclose(added, load, atol=1e-9) or np.allclose(added, 0, atol=1e-12)
        assert controller.values == values

    def test_set_model_equals_a_new_controller(self, kind):
        """The command for a moving arm is that of a controller built with this model, friction
        included.
        """
        arm = five_dof()
        other = replace(
            arm.with_payload(0.2),
            joints=tuple(replace(j, damping=2.0 * j.damping + 0.1) for j in arm.joints),
        )
        state = at(arm.configuration("initial"), [0.1, 0.2, -0.3, 0.1, 0.2])
        goal = Reference(state.q + 0.01, state.v[::-1].copy(), np.ones(5))
        name = kind.parameters[-1].name if kind.parameters else ""
        gains = dict.fromkeys(arm.joint_names, {"ka": 0.1} if name == "ka" else {})
        controller = kind(arm, gains)
        controller.set_model(other)
        built = kind(other, controller.values)
        for each in (controller, built):
            each.reset(state)
        answers = [each.update(state, goal, 2e-3).value for each in (controller, built)]
        np.testing.assert_allclose(*answers, atol=1e-12)

    def test_a_model_with_other_joints_is_rejected(self, kind):
        with pytest.raises(InvalidValue, match="J1"):
            kind(five_dof()).set_model(chain({}))

    def test_parameters_are_described(self, kind):
        for parameter in (*kind.parameters, *kind.axis_parameters, *kind.controller_parameters):
            assert parameter.unit
            assert parameter.description

    def test_it_controls_an_arm_with_other_joints(self, kind):
        arm = replace(chain({}, {"kind": "prismatic", "axis": "1 0 0"}), name="other")
        q = np.array([0.2, 0.1])
        command = started(kind, arm, state=at(q)).update(at(q), Reference.hold(q), 0.0)
        assert command.value.shape == (2,)

    @pytest.mark.parametrize("name", ARMS)
    def test_an_equilibrium_without_gravity_is_kept(self, kind, name):
        """Without gravity, from rest on the reference, the arm and the controller stay at rest."""
        arm = arm_for(kind, bundled(name).with_gravity([0, 0, 0]))
        q = arm.configuration("initial")
        states = run(arm, kind(arm), q, q, 0.04)
        assert largest(states, q) < 1e-12

    def test_saturation_does_not_wind_up(self, kind):
        """6 s at the limit have no effect after 2 s in the opposite direction."""
        weak = arm_for(kind, FLAT)
        weak = replace(weak, joints=tuple(replace(j, effort=0.004 * j.effort) for j in weak.joints))
        q, gains, ends = weak.configuration("initial"), fast_integral_gains(kind, weak), []
        for before in (600, 0):
            controller = started(kind, weak, gains)
            for k in range(before + 200):
                goal = Reference.hold(q + 0.3 if k < before else q - 0.3)
                value = controller.update(at(q, time=0.01 * k), goal, 0.01).value
            ends.append(value)
        held = np.abs(ends[1]) == weak.effort_limit
        assert held.any() or kind.interface == "position" or ignores_reference(kind, weak)
        rtol = 1e-9 if kind is TaskSpaceMpc else 1e-12  # of its inverse kinematics
        np.testing.assert_allclose(ends[0][held], ends[1][held], rtol=rtol)

    @pytest.mark.quick(28)
    @pytest.mark.parametrize(("name", "seed"), WRONG_ARMS)
    def test_a_model_error_of_5_percent_keeps_the_loop_stable(self, kind, name, seed):
        arm = arm_for(kind, bundled(name))
        controller, goal = (
            kind(with_model_error(arm, **WRONG, seed=seed)),
            arm.configuration("initial"),
        )
        if ignores_reference(
            kind, arm
        ):  # a tenth of the gravity torque remains: slower than a fall
            fallen = largest(run(arm, None, goal, goal, 0.1), goal)
            assert largest(run(arm, controller, goal, goal, 0.1), goal) < 0.35 * fallen
            return
        start = np.clip(goal - 0.05, arm.lower, arm.upper)
        states = run(arm, controller, start, goal, 1.0)
        assert largest(states, goal) < 0.6  # soft springs deflect, within bounds
        assert max(np.abs(state.v).max() for state in states[-50:]) < 0.6
