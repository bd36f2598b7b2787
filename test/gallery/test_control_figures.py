"""Demonstrations of control: equations and published results."""

import json
from functools import cache
from pathlib import Path

import five_dof_task
import four_joint_lqr
import identified_square
import numpy as np
import pytest
import two_link_hold
import two_link_joints
import two_link_tool
from two_link_tool import JOINT, LINES, TASK

from arm_dynamics.control.lqr_design.lqr_gain import lqr_gain
from arm_dynamics.dynamics import rigid_body
from arm_dynamics.identification import nominal_parameters
from arm_dynamics.model.load import load_arm

DATA = Path(__file__).parents[1] / "data"
DATASET = json.loads((DATA / "four_joint/lqr.json").read_text())
(REACH,) = DATASET["configs"]


def table(name):
    return np.genfromtxt(DATA / name, delimiter=",", names=True)


@cache
def joints(name):
    return two_link_joints.simulate(name)


@cache
def square(run):
    return five_dof_task.simulate(run)


@cache
def experiment():
    return identified_square.experiment()


@cache
def package_controller(name):
    return two_link_tool.simulate_package_controller(LINES[name])


# --- two_link: joints ---


@pytest.mark.parametrize(
    ("name", "published", "digit"),
    [
        ("PID", (-0.063, -0.035), 1e-3),
        ("PID + g(q)", (7e-4, 5e-4), 1e-4),
        ("PID + g(q), 5 % error", (6.6e-3, 3.1e-3), 1e-4),
    ],
)
def test_errors_after_five_seconds_as_published(name, published, digit):
    errors = two_link_joints.errors(joints(name))[-1]
    np.testing.assert_allclose(errors, published, atol=0.51 * digit)


def test_a_loop_of_500_hz_is_close_to_the_independent_solution():
    """A zero-order hold of 2 ms changes the motion by a few hundredths of a degree."""
    rows, trace = table("two_link/jointspace_pid_g.csv"), joints("PID + g(q)")
    expected = np.stack([rows["q1"], rows["q2"]], axis=1)
    found = np.array([np.interp(rows["t"], trace.time, q) for q in trace.q.T]).T
    shown = rows["t"] <= trace.time[-1]
    np.testing.assert_allclose(found[shown], expected[shown], atol=3e-4)


def test_torques_at_rest_balance_gravity():
    """In the end kx (q_ref - q) + s g(q) = g(q), with the gravity scale s, once q̇ is 0."""
    trace = joints("PID")
    weight = rigid_body.gravity(trace.arm, trace.q[-1])
    np.testing.assert_allclose(trace.tau[-1], weight, atol=0.05)
    kx = [two_link_joints.GAINS[name]["kx"] for name in trace.arm.joint_names]
    np.testing.assert_allclose(-two_link_joints.errors(trace)[-1] * kx, weight, atol=0.05)


# --- two_link: task space ---


@pytest.mark.parametrize("name", LINES)
def test_the_package_controller_reaches_the_target_within_its_limits(name):
    trace, line = package_controller(name), LINES[name]
    assert two_link_tool.tool_error(line, trace)[-1] < 1e-6
    assert (np.abs(trace.tau) < trace.arm.effort_limit).all()


def test_the_package_controller_returns_to_the_reachable_part_before_the_published_one():
    """The published task-space controller by reference data; the tool error is smaller where
    reachable.
    """
    rows, line, trace = table("two_link/traj_B_hole_task.csv"), LINES["B"], package_controller("B")
    radius = np.hypot(*trace.tool[:, [0, 2]].T)
    inner, outer = two_link_tool.workspace_radii(line.arm)
    assert ((radius > inner - 1e-9) & (radius < outer + 1e-9)).all()
    theirs = np.hypot(*(np.stack([rows["x"], rows["y"]], axis=1) - line.at(rows["t"])).T)
    ours = np.interp(rows["t"], trace.time, two_link_tool.tool_error(line, trace))
    back = (rows["t"] > 2.2) & (rows["t"] <= trace.time[-1])
    assert (ours[back & (rows["t"] < 3)] < theirs[back & (rows["t"] < 3)]).all()
    assert np.abs(trace.tau).max() < 0.6 * max(abs(rows["tau1"]).max(), abs(rows["tau2"]).max())


def test_line_b_is_unreachable_inside_the_inner_radius():
    line = LINES["B"]
    assert two_link_tool.out_of_reach(LINES["A"]) == []
    ((begin, end),) = two_link_tool.out_of_reach(line)
    inner, _ = two_link_tool.workspace_radii(line.arm)
    np.testing.assert_allclose(inner, 0.4)
    radii = np.linalg.norm(line.at(np.array([begin, end])), axis=1)
    np.testing.assert_allclose(radii, inner, atol=1e-3)


def test_published_controllers_equal_the_independent_solutions(monkeypatch):
    """During the first half second."""
    monkeypatch.setattr(two_link_tool, "SECONDS", 0.5)
    for name, controller, file in (
        ("A", TASK, "traj_A_unit_task"),
        ("B", TASK, "traj_B_hole_task"),
        ("B", JOINT, "traj_B_hole_joint"),
    ):
        rows, trace = (
            table(f"two_link/{file}.csv"),
            two_link_tool.simulate_published_controller(LINES[name], controller),
        )
        known = rows["t"] <= 0.5
        for column, values in (("q1", trace.q[:, 0]), ("q2", trace.q[:, 1])):
            found = np.interp(rows["t"][known], trace.time, values)
            np.testing.assert_allclose(found, rows[column][known], atol=2e-6)


# --- two_link: gravity compensation ---


@pytest.mark.parametrize("error", two_link_hold.ERRORS.values())
def test_gravity_compensation_holds_or_settles_upright_or_hanging(error):
    trace = two_link_hold.simulate(error)
    np.testing.assert_allclose(trace.q[-1], [np.sign(error) * np.pi / 2, 0], atol=1e-3)
    assert np.abs(trace.q).max() < np.pi


def test_the_drift_equals_an_independent_solution():
    rows, trace = table("two_link/gravcomp_mass_0.1pct_high.csv"), two_link_hold.simulate(0.1)
    both, here, there = np.intersect1d(trace.time.round(9), rows["t"].round(9), return_indices=True)
    assert both.size > 10
    expected = np.stack([rows["q1"], rows["q2"]], axis=1)
    np.testing.assert_allclose(trace.q[here], expected[there], atol=1e-6)


# --- four_joint: LQR ---


def test_published_reach_and_gains():
    start, target = four_joint_lqr.PUBLISHED
    np.testing.assert_allclose(target, REACH["theta"], atol=1e-12)
    first = table("four_joint/lqr_closed_loop_reach.csv")[0]
    np.testing.assert_allclose(start, list(first)[1:5], atol=1e-12)
    controller = four_joint_lqr.lqr_controller(four_joint_lqr.Shortcut)
    expected = np.array(REACH["K_diagonal_inertia_model"])
    np.testing.assert_allclose(
        controller.gain(target), expected, atol=1e-7 * np.abs(expected).max()
    )


def test_costs_along_the_motion_equal_the_published_ones():
    """Costs of the linearized arm; at 0.2 rad the nonlinear gravity torque adds some per cent."""
    both, weights = four_joint_lqr.pair(), four_joint_lqr.lqr_controller().weights
    target = four_joint_lqr.PUBLISHED[1]
    for trace, name in zip(both, ("cost_opt", "cost_diag_model"), strict=True):
        cost = four_joint_lqr.cost(trace, weights, target)
        assert cost[-1] == pytest.approx(REACH[name], rel=0.03)
        assert (np.diff(cost) >= 0).all()


def test_the_diagonal_mass_matrix_costs_more_everywhere():
    extra = [four_joint_lqr.extra_cost(q) for q in four_joint_lqr.postures(20, 2)]
    assert min(extra) > 0
    assert max(extra) < 0.12


def test_gains_of_the_table_reach_the_target_from_its_corners():
    controller = four_joint_lqr.lqr_controller()
    controller.set_gain_table(four_joint_lqr.gain_table(4))
    corner = [0.0, *(upper for _, upper in four_joint_lqr.RANGE.values())]
    trace = four_joint_lqr.reaching_motion(controller, np.array(corner))
    np.testing.assert_allclose(trace.q[-1], four_joint_lqr.TARGET, atol=1e-3)


def test_size_and_error_of_tables():
    """n³ gains of 4 x 8; the error decreases with the square of the spacing."""
    tables = [four_joint_lqr.gain_table(n) for n in (4, 7)]
    assert [four_joint_lqr.table_bytes(t) for t in tables] == [n**3 * 256 for n in (4, 7)]
    coarse, fine = (four_joint_lqr.interpolation_error(t) for t in tables)
    assert 3 < coarse / fine < 5.5
    q = four_joint_lqr.postures(1, 9)[0]
    controller = four_joint_lqr.lqr_controller()
    turned = q + np.array([2.0, 0, 0, 0])
    np.testing.assert_allclose(
        lqr_gain(controller.arm, turned, controller.weights),
        lqr_gain(controller.arm, q, controller.weights),
        atol=1e-8,
    )  # fmt: skip


# --- five_dof: the square ---


def test_the_reference_is_a_square():
    line = five_dof_task.square()
    corners = np.array([line.at(t).position for t in (0.75, 2.25, 3.75, 5.25)])
    sides = np.diff(np.vstack([corners, corners[:1]]), axis=0)
    np.testing.assert_allclose(np.linalg.norm(sides, axis=1), five_dof_task.SIDE, atol=1e-12)
    np.testing.assert_allclose((sides[:-1] * sides[1:]).sum(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(line.at(line.end).position, line.position, atol=1e-12)


@pytest.mark.quick(1)
@pytest.mark.parametrize("run", ["empty", "0.5 kg, modeled"])
def test_an_exact_model_follows_the_square(run):
    assert five_dof_task.tool_error(square(run)).max() < 1e-4


def test_an_unmodeled_payload_deflects_the_tool_by_weight_over_stiffness():
    """At rest Jᵀ Λ p e = g of the payload, in the tool's three axes."""
    trace = square("0.5 kg, unmodeled")
    carried = trace.arm
    q, path = trace.q[-1], five_dof_task.square()
    controller = five_dof_task.TaskSpace(carried.with_payload(0.0))
    weight = rigid_body.gravity(carried, q) - rigid_body.gravity(controller.arm, q)
    J = controller.tool.motion(q, np.zeros(5)).jacobian[:3]
    apparent = np.linalg.inv(J @ np.linalg.solve(rigid_body.mass_matrix(controller.arm, q), J.T))
    error = path.at(path.end).position - trace.tool[-1]
    force = five_dof_task.GAINS["p"] * apparent @ error
    np.testing.assert_allclose(force, np.linalg.lstsq(J.T, weight, rcond=None)[0], atol=0.3)
    np.testing.assert_allclose(force, [0, 0, 9.81 * five_dof_task.PAYLOAD], atol=0.3)


# --- puma560: identification ---


def test_the_description_is_wrong_by_a_fifth_and_has_no_friction():
    values, actual = (
        nominal_parameters(arm) for arm in (identified_square.described(), load_arm("puma560"))
    )
    friction = slice(66, 78)
    np.testing.assert_allclose(values[:66], 1.2 * actual[:66], rtol=1e-9)
    assert (actual[friction] > 0).all()
    assert not values[friction].any()


@pytest.mark.slow
def test_the_identified_model_follows_the_held_out_square():
    before, after = (
        np.sqrt(np.mean(experiment().tool_error(run) ** 2)) for run in experiment().squares
    )
    assert before > 3e-3
    assert after < 5e-5


def test_the_identified_model_predicts_the_held_out_efforts():
    before, after = (prediction.relative_error for prediction in experiment().predictions.values())
    assert before.max() > 0.9
    assert after.max() < 0.02


def test_the_hidden_friction_is_found():
    """Within 5 % of the actual viscous and Coulomb friction."""
    actual, found = (
        nominal_parameters(arm)[66:78]
        for arm in (load_arm("puma560"), experiment().identification.identified)
    )
    np.testing.assert_allclose(found, actual, rtol=0.05)
