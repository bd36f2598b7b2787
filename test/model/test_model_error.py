"""Model errors in per cent: scaled and unchanged quantities."""

import numpy as np
import pytest
from conftest import chain, five_dof, heavy_rotors
from hypothesis import given
from hypothesis import strategies as st

from arm_dynamics import load_arm
from arm_dynamics.control.config import build_controller
from arm_dynamics.control.controllers.pid import PidGravity
from arm_dynamics.control.controllers.task_space import TaskSpace
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.dynamics import rigid_body
from arm_dynamics.dynamics.kinematics import frames
from arm_dynamics.model.model_error import require_holdable, with_model_error

Q = np.array([0.3, -0.8, 0.2, 0.5, -0.4])
percents = st.floats(-50, 50)


def same(arm, other):
    """Return whether inverse dynamics and joints of two arms are equal."""
    q, v, a = (np.resize(Q, arm.nv) * scale for scale in (1.0, -1.5, 2.0))
    close = np.allclose(rigid_body.rnea(arm, q, v, a), rigid_body.rnea(other, q, v, a), atol=1e-14)
    return close and arm.joints == other.joints


def test_zero_error_gives_the_same_arm():
    for seed in (None, 3):
        assert same(heavy_rotors(), with_model_error(heavy_rotors(), seed=seed))


@given(error=percents)
def test_gravity_is_proportional_to_masses_and_payload(error):
    arm, factor = heavy_rotors(), 1 + error / 100
    wrong = with_model_error(arm, mass=error)
    np.testing.assert_allclose(
        rigid_body.gravity(wrong, Q), factor * rigid_body.gravity(arm, Q), atol=1e-12
    )
    assert wrong.payload.mass == pytest.approx(0.5 * factor)


@given(error=percents)
def test_distances_scale_with_the_length_error(error):
    arm, factor = five_dof(), 1 + error / 100
    wrong = with_model_error(arm, length=error)
    for points in (frames.tool_position, frames.joint_origins, rigid_body.gravity):
        np.testing.assert_allclose(points(wrong, Q), factor * points(arm, Q), atol=1e-12)


@given(mass=percents, length=percents, inertia=percents)
def test_the_mass_matrix_of_one_body_in_closed_form(mass, length, inertia):
    """M = I + m l² of a bar about its end."""
    arm = chain({"mass": 2.0, "center": "0.25 0 0", "ixx": 0.02})
    wrong = with_model_error(arm, mass=mass, length=length, inertia=inertia)
    m, lever, moment = (1 + error / 100 for error in (mass, length, inertia))
    expected = 0.02 * moment + 2 * m * (0.25 * lever) ** 2
    assert rigid_body.mass_matrix(wrong, [0.4])[0, 0] == pytest.approx(expected)


def test_friction_error_changes_only_joint_and_motor_friction():
    arm = heavy_rotors().with_motors(viscous_friction=0.01, coulomb_friction=0.2, stiction=0.3)
    arm = arm.with_joint("R2", damping=0.4, friction=0.6)
    wrong = with_model_error(arm, friction=10)
    assert wrong.joints[1].damping == pytest.approx(0.44)
    assert wrong.joints[1].friction == pytest.approx(0.66)
    for own, other in zip(arm.actuators, wrong.actuators, strict=True):
        assert other.viscous_friction == pytest.approx(1.1 * own.viscous_friction)
        assert other.armature == own.armature
        changed = {n for n in own.constants if other.constants[n] != own.constants[n]}
        assert changed == {"viscous_friction", "coulomb_friction", "stiction"}
    np.testing.assert_array_equal(rigid_body.mass_matrix(wrong, Q), rigid_body.mass_matrix(arm, Q))


def test_a_seed_draws_every_link_within_the_error():
    arm = load_arm("puma560")
    every = {"mass": 5, "length": 4, "inertia": 3, "friction": 20}
    one, again, two = (with_model_error(arm, **every, seed=s) for s in (1, 1, 2))
    assert same(one, again)
    assert not same(one, two)
    bodies = list(zip(one.links.inertias, arm.links.inertias, strict=True))[1:]
    ratios = np.array([wrong.mass / own.mass for wrong, own in bodies])
    assert (np.abs(ratios - 1) <= 0.05).all()
    assert np.unique(ratios).size == arm.nv
    moments = [np.trace(wrong.inertia) / np.trace(own.inertia) for wrong, own in bodies]
    assert (np.abs(np.array(moments) - 1) <= 0.03 + 1e-12).all()
    masses = with_model_error(arm, mass=5, seed=1)  # other errors do not change its random numbers
    drawn = [wrong.mass for wrong, _ in bodies]
    assert drawn == [body.mass for body in masses.links.inertias][1:]


def test_the_original_arm_is_not_changed():
    arm, before = five_dof(), rigid_body.rnea(five_dof(), Q, Q, Q)
    with_model_error(arm, mass=9, length=9, inertia=9, friction=9, seed=0)
    np.testing.assert_array_equal(rigid_body.rnea(arm, Q, Q, Q), before)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"mass": -100}, r"mass error \[%\] = -100.0; expected above -100"),
        ({"length": np.nan}, "length error"),
        ({"inertia": "5"}, "inertia error"),
        ({"friction": 100, "seed": 1}, "friction error .*with a seed"),
        ({"mass": 5, "seed": 0.5}, "seed = 0.5"),
    ],
)
def test_invalid_errors_are_rejected(given, text):
    with pytest.raises(InvalidValue, match=text):
        with_model_error(five_dof(), **given)


# Effort limits ----------------------------------------------------------------------------------


def test_a_model_beyond_the_effort_limits_at_the_initial_configuration_is_rejected_by_name():
    arm = five_dof()
    home = arm.configuration("initial")
    own, one = (rigid_body.gravity(arm.with_payload(m), home) for m in (0.0, 1.0))
    most = ((arm.effort_limit - np.abs(own)) / np.abs(one - own).clip(1e-9)).min()
    assert require_holdable(arm.with_payload(0.99 * most)).payload.mass > 0
    message = r"payload of .* kg: joint 'R5': gravity torque = .* N·m .* expected at most 12 N·m"
    for controller in (PidGravity(arm), TaskSpace(arm)):
        with pytest.raises(InvalidValue, match=message):
            controller.set_model(arm.with_payload(1.01 * most))
        assert controller.arm is arm
    for error in ({"mass": 2000}, {"length": 2000}):
        with pytest.raises(InvalidValue, match="gravity torque = "):
            with_model_error(arm, **error)


def test_an_arm_that_cannot_hold_itself_gets_no_advice_of_a_smaller_payload():
    """A controller of such an arm can be built, with a warning."""
    weak = chain({"effort": 0.0})
    message = r"arm 'chain': joint 'J1': gravity torque = .* expected at most 0 N·m.* in the URDF$"
    for payload, text in (
        (0.0, message),
        (0.5, message.replace("'chain'", "'chain' with .* 0.5 kg")),
    ):
        with pytest.raises(InvalidValue, match=text):
            require_holdable(weak.with_payload(payload))
    with pytest.warns(RuntimeWarning, match=message):
        build_controller(weak, period=None)


def test_an_arm_beyond_its_effort_limits_may_have_a_model_error():
    heavy = five_dof().with_payload(50.0)
    assert with_model_error(heavy, mass=10).payload.mass == pytest.approx(55.0)
