"""Rigid bodies with the tree as data, and the compiled step around them, beside Pinocchio's."""

import numpy as np
import pytest
from conftest import chain, five_dof, heavy_rotors
from hypothesis import given, settings
from hypothesis import strategies as st

from arm_dynamics import load_arm
from arm_dynamics.batch.rollout.batch_stepper import PlantStepper
from arm_dynamics.batch.rollout.inputs import initial_states
from arm_dynamics.batch.rollout.tree_stepper import INTEGRATORS, TreeStepper, inverse_mass
from arm_dynamics.dynamics import rigid_body
from arm_dynamics.dynamics.bodies import bodies
from arm_dynamics.dynamics.tree import accelerations, tree

MIXED = chain(
    {"axis": "0.6 0 0.8", "kind": "revolute"},
    {"axis": "0 1 0", "kind": "prismatic"},
    {"axis": "0 0.6 -0.8", "kind": "prismatic"},
    {"axis": "-1 0 0", "kind": "continuous"},
)
BRANCHED = chain(
    {"name": "A"}, {"name": "B", "axis": "1 0 0"},
    {"name": "C", "parent": "A_link", "kind": "prismatic"}, {"name": "D", "parent": "C_link"},
)  # fmt: skip
ARMS = [load_arm("five_dof"), load_arm("puma560"), heavy_rotors(), MIXED, BRANCHED]


@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm.name)
@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1))
def test_accelerations_and_inverse_mass_are_pinocchios(arm, seed):
    q, v, tau = np.random.default_rng(seed).normal(size=(3, arm.nv))
    table = tree(bodies(arm), arm.gravity)
    expected = rigid_body.aba(arm, q, v, tau)
    found = accelerations(table, q, v, tau, table.gravity)
    np.testing.assert_allclose(found, expected, atol=1e-12 * np.abs(expected).max())
    unity = inverse_mass(table, q) @ rigid_body.mass_matrix(arm, q)
    np.testing.assert_allclose(unity, np.eye(arm.nv), atol=1e-10)


def test_the_branched_arm_has_branches():
    assert [body.parent for body in bodies(BRANCHED)] == [-1, 0, 0, 2]


def losses():
    """Own states, gear play on one joint, stiction, brushes, gear losses."""
    arm = five_dof().with_motors(
        gear_ratio=2.0, current_limit=6.0, brush_drop=0.7, brush_half_voltage=0.4,
        rotor_inertia=1e-3, viscous_friction=2e-3, coulomb_friction=0.05, stiction=0.08,
        inductance=1e-3, thermal_resistance=2.0, efficiency=0.8, back_efficiency=0.6,
    )  # fmt: skip
    play = {"backlash": 0.02, "gear_stiffness": 500.0, "gear_damping": 0.5}
    return arm.with_motor("R4", **play).with_joint("R3", friction=0.3, damping=0.1)


@pytest.mark.parametrize("method", INTEGRATORS)
@pytest.mark.parametrize("make", [five_dof, losses])
def test_steps_are_the_plants(make, method):
    arm, random = make(), np.random.default_rng(2)
    shape = (4, arm.nv)
    q = np.array(arm.configuration("initial")) + 0.3 * random.normal(size=shape)
    rest = np.tile(arm.initial_act, (4, 1))
    start = initial_states(arm, np.concatenate([q, 3 * random.normal(size=shape), rest], axis=1))
    told = 6 * random.normal(size=(4, 3, arm.nv))
    both = [
        kind(arm, method, "voltage", start, np.full(4, 1e-4), {})
        for kind in (TreeStepper, PlantStepper)
    ]
    for lanes in both:
        lanes.advance(told, 100, 1000, {})
    for found, expected in zip(both[0].state(), both[1].state(), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-11)
