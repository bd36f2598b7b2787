"""Kernels: the plant's results for many arms at the same time, with parameter variation."""

from dataclasses import replace
from types import MappingProxyType

import casadi as ca
import numpy as np
import pinocchio as pin
import pytest
from conftest import chain, five_dof, heavy_rotors
from hypothesis import given, settings
from hypothesis import strategies as st

from arm_dynamics import Command, Plant, State, load_arm
from arm_dynamics.batch import variation
from arm_dynamics.batch.kernels.kernel import Kernel
from arm_dynamics.batch.kernels.kernel_cache import KernelOptions, KernelRejected
from arm_dynamics.batch.kernels.kernel_check import check_kernel
from arm_dynamics.batch.kernels.step_trace import INTEGRATORS, trace_step
from arm_dynamics.batch.kernels.symbolic_math import Symbol, symbols, traced
from arm_dynamics.batch.kernels.symbolic_rigid_body import Chain, inverse_root
from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.dynamics import rigid_body
from arm_dynamics.dynamics.bodies import bodies
from arm_dynamics.simulation.actuators import winding
from arm_dynamics.simulation.integrators.exponential_step import phi_functions

ARMS = ("five_dof", "four_joint", "three_link", "two_link_pb", "puma560")
LANES = 8


def numbers(function, *arguments):
    return np.array(function(*arguments), dtype=float).ravel()


def with_every_term():
    """Return an arm with every term: actuator states, gear losses, stiction, brush drop."""
    arm = chain({"damping": 0.1}, {"axis": "0 0.6 0.8"}, {"axis": "0 0 1"})
    arm = arm.with_actuator(
        "dc_motor", kt=5.0, ke=4.0, resistance=1.0, supply_voltage=12.0,
        gear_ratio=2.0, current_limit=6.0, brush_drop=0.7, brush_half_voltage=0.4,
        rotor_inertia=1e-3, viscous_friction=2e-3, coulomb_friction=0.05, stiction=0.08,
        inductance=1e-3, thermal_resistance=2.0, efficiency=0.8, back_efficiency=0.6,
    )  # fmt: skip
    return arm.with_joint("J3", friction=4.0, damping=0.1)


# Rigid bodies on symbols ----------------------------------------------------------------------


@pytest.mark.parametrize("arm", [*map(load_arm, ARMS), heavy_rotors(), chain(
    {"axis": "0.6 0 0.8", "kind": "revolute"}, {"axis": "0 1 0", "kind": "prismatic"},
    {"axis": "0 0.6 -0.8", "kind": "prismatic"}, {"axis": "-1 0 0", "kind": "continuous"},
)], ids=lambda arm: arm.name)  # fmt: skip
def test_rigid_body_dynamics_on_symbols_equals_pinocchio(arm):
    n, random = arm.nv, np.random.default_rng(0)
    q, v, x = (ca.SX.sym(name, n) for name in "qvx")
    chain_ = Chain(bodies(arm), arm.gravity, ca.vertsplit(q))
    accelerate = ca.Function("a", [q, v, x], chain_.acceleration(*map(ca.vertsplit, (v, x))))
    inverse = ca.Function("i", [q, v, x], chain_.inverse_dynamics(*map(ca.vertsplit, (v, x))))
    mass = ca.Function("m", [q], [chain_.mass_matrix()])
    for _ in range(5):
        state = random.normal(size=(3, n))
        expected = rigid_body.aba(arm, *state)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(numbers(accelerate, *state), expected, atol=1e-12 * scale)
        np.testing.assert_allclose(
            numbers(inverse, *state), rigid_body.rnea(arm, *state), rtol=1e-12, atol=1e-12
        )
        np.testing.assert_allclose(
            np.array(mass(state[0])), rigid_body.mass_matrix(arm, state[0]), rtol=1e-12, atol=1e-13
        )


@pytest.mark.parametrize("name", [*ARMS, "so101"])
def test_placements_and_the_root_of_the_inverse_mass_on_symbols_equal_pinocchio(name):
    arm = load_arm(name)
    q, table, value = ca.SX.sym("q", arm.nv), bodies(arm), np.linspace(-1, 1, arm.nv)
    chain_ = Chain(table, arm.gravity, ca.vertsplit(q))
    places, root = chain_.placements(), inverse_root(chain_.mass_matrix())
    found = ca.Function("f", [q], [x for place in places for x in place] + [root])(value)
    data = arm.model.createData()
    pin.forwardKinematics(arm.model, data, value)
    for i, body in enumerate(table):
        place = data.oMi[i + 1]
        np.testing.assert_allclose(np.array(found[2 * i]), place.rotation @ body.turn, atol=1e-14)
        np.testing.assert_allclose(np.array(found[2 * i + 1])[:, 0], place.translation, atol=1e-14)
    G = np.array(found[-1])
    np.testing.assert_array_equal(G, np.tril(G))
    identity = G.T @ rigid_body.mass_matrix(arm, value) @ G
    np.testing.assert_allclose(identity, np.eye(arm.nv), atol=1e-12)


# Motor equations on symbols ---------------------------------------------------------------------


@given(st.floats(-30, 30), st.floats(0, 3), st.floats(0.1, 3))
def test_a_motor_equation_on_symbols_equals_the_numeric_one(voltage, drop, half):
    expected = winding.brush_voltage(voltage, drop, half)
    found = traced(winding.brush_voltage)(Symbol(voltage), drop, half)
    assert float(found) == pytest.approx(expected, rel=1e-13, abs=1e-13)


@settings(deadline=None)
@given(st.lists(st.floats(0, 1e3), min_size=1, max_size=3))
def test_phi_without_branches(x):
    x = np.array(x)
    found = traced(phi_functions)(np.array([Symbol(value) for value in x], dtype=object))
    values = np.vectorize(float)(found)
    np.testing.assert_allclose(values, phi_functions(x), rtol=1e-12)


def test_a_branch_on_a_symbol_is_rejected():
    with pytest.raises(TypeError, match="use where"):
        bool(symbols("x", 1)[0] > 0.0)


# A step ---------------------------------------------------------------------------------------


def scattered(arm, seed=0, size=LANES):
    random = np.random.default_rng(seed)
    q = np.array(arm.configuration("initial")) + 0.3 * random.normal(size=(size, arm.nv))
    return q, random.normal(size=(size, arm.nv)), random.normal(size=(size, arm.nv))


def windings():
    """Return current, temperature, rotor and gap of every joint."""
    return five_dof().with_motors(
        gear_ratio=2.0, inductance=5e-3, thermal_resistance=3.0, rotor_inertia=0.01,
        viscous_friction=0.02, backlash=0.02, gear_stiffness=500.0, gear_damping=1.0,
    )  # fmt: skip


def mixed():
    """Return an arm of a motor with winding and heat, one without inductance, a joint without
    motor.
    """
    motor = {"kt": 0.5, "ke": 0.4, "resistance": 1.2, "gear_ratio": 3.0}
    winding = {**motor, "inductance": 2e-3, "thermal_resistance": 2.0}
    arm = chain({}, {"axis": "0 0 1"}, {})
    kinds = (("dc_motor", winding), ("dc_motor", motor), ("ideal", {}))
    joints = zip(arm.joints, kinds, strict=True)
    motors = (replace(j, actuator=k, constants=MappingProxyType(c)) for j, (k, c) in joints)
    return replace(arm, joints=tuple(motors))


@pytest.mark.quick(4)
@pytest.mark.parametrize("method", INTEGRATORS)
@pytest.mark.parametrize(
    ("make", "interface"), [(five_dof, "voltage"), (windings, "voltage"), (mixed, "mixed")]
)
def test_the_traced_step_of_every_integrator_equals_the_plants(make, interface, method):
    """Each step of a fast motion, from the plant's states, with and without actuator states."""
    arm, dt = make(), 1e-4
    step, plant = trace_step(arm, method, interface, ()).functions[0].function, Plant(arm, method)
    for q, v, u in zip(*scattered(arm), strict=True):
        state, command = State.of(q, 5 * v, act=arm.initial_act), Command(interface, 12 * u)
        for _ in range(60):
            found = step(state.q, state.v, state.act, command.value, dt)
            after = plant.step(state, command, dt)
            scale = np.abs(after.v - state.v).max()
            np.testing.assert_allclose(numbers(lambda f=found: f[0]), after.q, atol=1e-12)
            np.testing.assert_allclose(numbers(lambda f=found: f[1]), after.v, atol=1e-12 * scale)
            np.testing.assert_allclose(
                numbers(lambda f=found: f[2]), after.act, rtol=1e-12, atol=1e-12
            )
            np.testing.assert_allclose(
                numbers(lambda f=found: f[3]), after.tau, rtol=1e-12, atol=1e-11
            )
            state = after


def run(kernel, arm, q, v, u, dt, steps, **varied):
    """Return the final q, v, z and the steps of failure."""
    x = kernel.block({"q": q, "v": v, "act": arm.initial_act, "dt": np.array([dt]), **varied})
    rows = kernel.rows(["q", "v", "act", "effort"])
    out = np.zeros((1, rows.size, LANES), kernel.dtype)
    flat = np.ascontiguousarray(u.T.reshape(1, -1), dtype=kernel.dtype)
    failed = kernel.run(x, flat, steps, steps, rows, out)
    return out[0].T, failed


def options(**changes):
    return replace(KernelOptions(interface="voltage", lanes=LANES), **changes)


def expected_end(arm, q, v, u, dt, steps):
    end = Plant(arm).step(State.of(q, v), Command("voltage", u), dt, steps)
    return np.concatenate([end.q, end.v, end.act, end.tau])


@pytest.mark.quick(1)
@pytest.mark.parametrize(("precision", "bound"), [("float64", 1e-10), ("float32", 2e-2)])
def test_many_steps_into_the_end_stops_equal_the_plants(precision, bound):
    arm = five_dof()
    q, v, u = scattered(arm)
    found, failed = run(
        Kernel(arm, options(precision=precision)), arm, q, 5 * v, 12 * u, 1e-4, 5000
    )
    assert (failed == -1).all()
    hit = 0
    for i in range(LANES):
        end = expected_end(arm, q[i], 5 * v[i], 12 * u[i], 1e-4, 5000)
        np.testing.assert_allclose(found[i], end, atol=bound * max(1, np.abs(end).max()))
        hit += bool((end[:5] > arm.upper).any() or (end[:5] < arm.lower).any())
    assert hit > 2


@pytest.mark.slow
def test_every_term_with_parameter_variation():
    """Actuator states, stiction; payload, masses, motors and friction vary by rollout."""
    arm, random = with_every_term(), np.random.default_rng(3)
    near = lambda values: np.array(values) * random.uniform(0.8, 1.2, (LANES, arm.nv))  # noqa: E731
    varied = {
        "payload": random.uniform(0, 0.5, (LANES, 1)),
        "link.mass": near([i.mass for i in list(arm.links.inertias)[1:]]),
        "link.center_x": 0.02 * random.normal(size=(LANES, arm.nv)),
        "link.center_z": 0.02 * random.normal(size=(LANES, arm.nv)),
        "link.iyy": near(variation.nominal_values(arm, "link.iyy")),
        "link.ixz": 1e-3 * random.normal(size=(LANES, arm.nv)),
        "link.inertia": near(np.ones(3)),
        "motor.kt": near(np.full(3, 5.0)),
        "motor.rotor_inertia": near(np.full(3, 1e-3)),
        "motor.coulomb_friction": near(np.full(3, 0.05)),
        "joint.friction": near([0, 0.1, 4.0]),
        "joint.damping": near([0.1, 0, 0.1]),
    }
    kernel = Kernel(arm, options(vary=tuple(varied)))
    q, v, u = scattered(arm, 4)
    found, _ = run(kernel, arm, q, v, 6 * u, 1e-4, 400, **varied)
    for i in range(LANES):
        own = variation.rollout_arm(arm, {name: values[i] for name, values in varied.items()})
        end = expected_end(own, q[i], v[i], 6 * u[i], 1e-4, 400)
        np.testing.assert_allclose(found[i], end, rtol=1e-9, atol=1e-10)
    assert (found[:, 3:6] == 0).any()  # some joints stick, exactly


def test_a_diverged_rollout_is_named_and_the_others_continue():
    arm = five_dof()
    kernel = Kernel(arm, options())
    q, v, u = scattered(arm)
    v[2, 1] = 1e200
    found, failed = run(kernel, arm, q, v, u, 1e-4, 50)
    assert failed[2] >= 1
    assert (np.delete(failed, 2) == -1).all()
    assert np.isfinite(np.delete(found, 2, axis=0)).all()


# Rejected input -------------------------------------------------------------------------------


def test_rejections_list_the_accepted_values():
    arm = five_dof()
    with pytest.raises(
        InvalidValue, match="integrator = 'implicit_midpoint'; expected one of explicit"
    ):
        trace_step(arm, "implicit_midpoint", "voltage", ())
    with pytest.raises(UnknownName, match=r"variation 'motor.color'; known: .*motor.kt"):
        trace_step(arm, "semi_implicit_euler", "voltage", ("motor.color",))
    with pytest.raises(UnknownName, match=r"motor\.inductance"):
        trace_step(arm, "semi_implicit_euler", "voltage", ("motor.inductance",))
    with pytest.raises(InvalidValue, match="precision = 'float16'; expected float64 or"):
        KernelOptions(precision="float16")
    with pytest.raises(InvalidValue, match="lanes = 0; expected at least 1"):
        KernelOptions(lanes=0)


def test_payload_variation_equals_with_payload():
    arm = five_dof().with_payload(0.0, (0.01, 0.02, 0.03))
    i = variation.rollout_arm(arm, {"payload": [0.4]})
    expected = arm.with_payload(0.4, (0.01, 0.02, 0.03))
    last = zip(list(i.model.inertias), list(expected.model.inertias), strict=True)
    assert all(isinstance(a, pin.Inertia) and a.isApprox(b) for a, b in last)


def test_arms_that_differ_in_constants_use_the_same_compiled_code():
    """Other friction and gravity need no compilation; each kernel equals its own plant."""
    arm = with_every_term().with_joint("J3", friction=4.1, damping=0.17)
    other = arm.with_joint("J3", friction=3.7, damping=0.31).with_gravity((0.0, 0.0, -3.71))
    options = KernelOptions(interface="voltage", lanes=LANES)
    first, second = Kernel(arm, options), Kernel(other, options)
    assert second._module.rollout is first._module.rollout
    check_kernel(first._module, arm, options)
    check_kernel(second._module, other, options)
    with pytest.raises(KernelRejected):
        check_kernel(first._module, other, options)
