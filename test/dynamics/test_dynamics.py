"""Rigid-body dynamics: published values, and identities of any arm."""

import json
import threading
from pathlib import Path

import numpy as np
import pytest
from conftest import chain, examples, five_dof, heavy_rotors
from hypothesis import given, settings
from hypothesis import strategies as st

from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.dynamics import rigid_body
from arm_dynamics.model.load import parse_arm

SAMPLES = json.loads(
    (Path(__file__).parents[1] / "data/five_dof/mass_gravity_bias.json").read_text()
)
ARMS = (five_dof(), heavy_rotors(), chain({}, {"kind": "prismatic", "axis": "1 0 0"}, {}))

seeds = st.integers(0, 2**32 - 1)
arms = st.sampled_from(ARMS)
exactly = settings(max_examples=examples(60))


def random_state(arm, seed):
    rng = np.random.default_rng(seed)
    return rng.uniform(-3, 3, arm.nv), rng.uniform(-5, 5, arm.nv), rng.uniform(-20, 20, arm.nv)


def central_difference(function, x, h=1e-6):
    """Return the central difference of ``function`` in each entry of ``x``, last axis."""
    steps = np.eye(x.size) * h
    return np.stack([(function(x + e) - function(x - e)) / (2 * h) for e in steps], axis=-1)


@pytest.mark.parametrize("sample", SAMPLES)
def test_results_equal_published_values(sample):
    arm, q, v = five_dof(), sample["q"], sample["qd"]
    near = {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(rigid_body.mass_matrix(arm, q), sample["M"], **near)
    np.testing.assert_allclose(rigid_body.gravity(arm, q), sample["g"], **near)
    np.testing.assert_allclose(rigid_body.nle(arm, q, v), sample["bias"], **near)
    assert rigid_body.kinetic_energy(arm, q, v) == pytest.approx(sample["kinetic"], rel=1e-12)
    assert rigid_body.potential_energy(arm, q) == pytest.approx(sample["potential"], rel=1e-12)


def test_pendulum_closed_form():
    arm = chain({"mass": 2.0, "center": "0.25 0 0", "ixx": 0.03})
    inertia = 0.03 + 2 * 0.25**2
    np.testing.assert_allclose(rigid_body.mass_matrix(arm, [0.7]), [[inertia]], rtol=1e-14)
    # y points away from the viewer: positive q lowers the link from +x.
    np.testing.assert_allclose(
        rigid_body.gravity(arm, [0.7]), [-2 * 9.81 * 0.25 * np.cos(0.7)], rtol=1e-14
    )
    assert rigid_body.potential_energy(arm, [0.7]) == pytest.approx(-2 * 9.81 * 0.25 * np.sin(0.7))


@exactly
@given(arms, seeds)
def test_mass_matrix_is_symmetric_and_positive_definite(arm, seed):
    q, v, _ = random_state(arm, seed)
    M = rigid_body.mass_matrix(arm, q)
    assert (M == M.T).all()
    assert np.linalg.eigvalsh(M).min() > 0
    assert rigid_body.kinetic_energy(arm, q, v) == pytest.approx(0.5 * v @ M @ v, rel=1e-13)


@exactly
@given(arms, seeds)
def test_forward_dynamics_inverts_inverse_dynamics(arm, seed):
    q, v, a = random_state(arm, seed)
    tau = rigid_body.rnea(arm, q, v, a)
    condition = np.linalg.cond(rigid_body.mass_matrix(arm, q))
    np.testing.assert_allclose(rigid_body.aba(arm, q, v, tau), a, atol=1e-12 * condition)
    by_parts = rigid_body.mass_matrix(arm, q) @ a + rigid_body.nle(arm, q, v)
    np.testing.assert_allclose(tau, by_parts, rtol=1e-11, atol=1e-11)


@exactly
@given(arms, seeds)
def test_coriolis_matrix(arm, seed):
    q, v, _ = random_state(arm, seed)
    C = rigid_body.coriolis_matrix(arm, q, v)
    bias = C @ v + rigid_body.gravity(arm, q)
    np.testing.assert_allclose(bias, rigid_body.nle(arm, q, v), rtol=1e-11, atol=1e-11)
    M_dot = central_difference(lambda x: np.array(rigid_body.mass_matrix(arm, x)), q) @ v
    skew = M_dot - 2 * C
    np.testing.assert_allclose(skew, -skew.T, atol=1e-7)


@exactly
@given(arms, seeds)
def test_gravity_is_the_gradient_of_potential_energy(arm, seed):
    q, _, _ = random_state(arm, seed)
    numeric = central_difference(lambda x: rigid_body.potential_energy(arm, x), q)
    np.testing.assert_allclose(rigid_body.gravity(arm, q), numeric, atol=1e-7)


@exactly
@given(arms, seeds)
def test_joint_power_is_the_rate_of_energy(arm, seed):
    q, v, tau = random_state(arm, seed)
    a, h = rigid_body.aba(arm, q, v, tau), 1e-6

    def energy(t):
        at, speed = q + t * v + t * t / 2 * a, v + t * a
        return rigid_body.kinetic_energy(arm, at, speed) + rigid_body.potential_energy(arm, at)

    rate, noise = (energy(h) - energy(-h)) / (2 * h), 1e-9 * (1 + abs(energy(0)))
    assert rate == pytest.approx(v @ tau, rel=1e-6, abs=noise + 1e-4 * h * np.abs(a).max() ** 2)


def test_rotors_add_only_to_the_diagonal():
    plain, geared = five_dof(), five_dof().with_motors(gear_ratio=20.0, rotor_inertia=2e-5)
    q, v = random_state(plain, 3)[:2]
    added = rigid_body.mass_matrix(geared, q) - rigid_body.mass_matrix(plain, q)
    np.testing.assert_allclose(added, 20**2 * 2e-5 * np.eye(5), atol=1e-15)
    np.testing.assert_array_equal(rigid_body.nle(geared, q, v), rigid_body.nle(plain, q, v))


@exactly
@given(seeds, st.floats(1e-3, 5), st.tuples(*[st.floats(-0.3, 0.3)] * 3))
def test_payload_equals_a_mass_welded_to_the_tool(seed, mass, center):
    text = five_dof().urdf.replace(
        "</robot>",
        f"""<link name="load"><inertial><mass value="{mass!r}"/>
        <inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial></link>
        <joint name="weld" type="fixed"><parent link="tool"/><child link="load"/>
        <origin xyz="{center[0]!r} {center[1]!r} {center[2]!r}"/></joint></robot>""",
    )
    welded, loaded = parse_arm(text), five_dof().with_payload(mass, center)
    q, v, a = random_state(loaded, seed)
    for function, inputs in (
        (rigid_body.mass_matrix, (q,)),
        (rigid_body.rnea, (q, v, a)),
        (rigid_body.potential_energy, (q,)),
    ):
        np.testing.assert_allclose(
            function(loaded, *inputs), function(welded, *inputs), rtol=1e-11, atol=1e-11
        )


def test_a_payload_can_be_added_and_removed():
    arm = five_dof()
    again = arm.with_payload(2.0).with_payload(0.0)
    q = random_state(arm, 1)[0]
    np.testing.assert_array_equal(rigid_body.mass_matrix(again, q), rigid_body.mass_matrix(arm, q))


def test_gravity_depends_on_the_gravity_vector():
    q = random_state(five_dof(), 5)[0]
    g = rigid_body.gravity(five_dof(), q)
    np.testing.assert_allclose(
        rigid_body.gravity(five_dof().with_gravity([0, 0, 9.81]), q), -g, atol=1e-12
    )
    assert (rigid_body.gravity(five_dof().with_gravity([0, 0, 0]), q) == 0).all()
    for change in (lambda a: a.with_joint("R2", damping=1.0), lambda a: a.with_payload(0.0)):
        tilted = change(five_dof().with_gravity([0, 0, -1.62]))
        np.testing.assert_allclose(rigid_body.gravity(tilted, q), g * 1.62 / 9.81, atol=1e-12)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (rigid_body.mass_matrix, ["q"]),
        (rigid_body.gravity, ["q"]),
        (rigid_body.potential_energy, ["q"]),
        (rigid_body.coriolis_matrix, ["q", "v"]),
        (rigid_body.nle, ["q", "v"]),
        (rigid_body.kinetic_energy, ["q", "v"]),
        (rigid_body.rnea, ["q", "v", "a"]),
        (rigid_body.aba, ["q", "v", "tau"]),
    ],
)
def test_errors_name_the_cause(function, arguments):
    good = {name: [0.1] * 5 for name in arguments}
    assert np.isfinite(function(five_dof(), *good.values())).all()
    for name in arguments:
        for bad, message in (
            ([0.1] * 4, rf"^{name}: shape = \(4,\); expected \(5,\)"),
            ([0.1, 0.2, np.nan, 0, 0], rf"^{name}\[2\] = nan"),
            ([0.1, 0.2, 0, 0, np.inf], rf"^{name}\[4\] = inf"),
            (["a"] * 5, rf"^{name} = "),
        ):
            with pytest.raises(InvalidValue, match=message):
                function(five_dof(), *(good | {name: bad}).values())


def test_results_are_read_only_and_thread_safe():
    arm, (q, v, a) = heavy_rotors(), random_state(heavy_rotors(), 9)
    alone = rigid_body.rnea(arm, q, v, a)
    assert not alone.flags.writeable
    wrong = []

    def work(seed):
        other = random_state(arm, seed)
        expected = rigid_body.rnea(arm, *other)
        wrong.extend(i for i in range(300) if (rigid_body.rnea(arm, *other) != expected).any())

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@exactly
@given(arms, seeds)
def test_derivatives_of_forward_dynamics(arm, seed):
    """Compared with central differences; M⁻¹ with the mass matrix."""
    q, v, tau = random_state(arm, seed)
    by_q, by_v, by_tau = rigid_body.aba_derivatives(arm, q, v, tau)
    for found, expected in (
        (by_q, central_difference(lambda x: rigid_body.aba(arm, x, v, tau), q)),
        (by_v, central_difference(lambda x: rigid_body.aba(arm, q, x, tau), v)),
    ):
        np.testing.assert_allclose(found, expected, atol=1e-5 * (1 + np.abs(found).max()))
    unit = by_tau @ rigid_body.mass_matrix(arm, q)
    np.testing.assert_allclose(unit, np.eye(arm.nv), atol=1e-8)


def test_batch_inverse_dynamics_equals_single_calls():
    arm = five_dof()
    q, v, a = np.random.default_rng(0).uniform(-1, 1, (3, 6, 5))
    each = [rigid_body.rnea(arm, *row) for row in zip(q, v, a, strict=True)]
    np.testing.assert_array_equal(rigid_body.rnea_batch(arm, q, v, a), each)


@exactly
@given(arms, seeds)
def test_results_of_one_method_outlast_calls_of_the_others(arm, seed):
    dynamics = rigid_body.RigidBodyDynamics(arm)
    q, v, a = random_state(arm, seed)
    mass, gravity = dynamics.upper_mass_matrix(q), dynamics.gravity(q)
    bias, effort = dynamics.nle(q, v), dynamics.rnea(q, v, a)
    near = {"rtol": 1e-10, "atol": 1e-10}
    whole = np.triu(mass) + np.triu(mass, 1).T
    np.testing.assert_allclose(whole, rigid_body.mass_matrix(arm, q), **near)
    np.testing.assert_allclose(gravity, rigid_body.gravity(arm, q), **near)
    np.testing.assert_allclose(bias, rigid_body.nle(arm, q, v), **near)
    np.testing.assert_allclose(effort, whole @ a + bias, **near)
