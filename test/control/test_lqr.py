"""Linear-quadratic regulation: the Riccati equation, published gains, gain tables."""

import json
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from io import BytesIO
from zipfile import ZipFile

import numpy as np
import pytest
from conftest import chain
from continuous import DATA, columns, simulate_continuous, table
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import solve_continuous_are, solve_continuous_lyapunov

from arm_dynamics import load_arm
from arm_dynamics.cli import gain_table as gains_cli
from arm_dynamics.control.config import build_controller
from arm_dynamics.control.controllers.lqr import MAX_RATE, Lqr
from arm_dynamics.control.lqr_design.gain_table import (
    PARTS,
    GainTable,
    build_gain_table,
    load_gain_table,
)
from arm_dynamics.control.lqr_design.lqr_gain import (
    LqrWeights,
    linear_dynamics,
    lqr_gain,
    require_static_effort,
    solve_riccati,
)
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.core.errors import CommandRejected, ConfigError, InvalidValue, UnknownName
from arm_dynamics.core.state import Reference, State
from arm_dynamics.dynamics import rigid_body
from arm_dynamics.model.model_error import with_model_error

DATASET = json.loads((DATA / "four_joint/lqr.json").read_text())
(REACH,) = DATASET["configs"]
ARM = load_arm("four_joint")
Q, R = np.diag(DATASET["Q_diag"]), np.diag(DATASET["R_diag"])
WEIGHTS = LqrWeights(np.diag(Q)[:4], np.diag(Q)[4:], np.diag(R))
GAINS = {
    name: {"position_weight": 100.0, "velocity_weight": 1.0, "effort_weight": 1.0}
    for name in ARM.joint_names
}
GRID = {"J2": (-0.6, 1.2, 5), "J3": (0.2, 1.6, 5), "J4": (-0.8, 1.0, 5)}
ARMS = [load_arm(n) for n in ("five_dof", "four_joint", "puma560", "two_link", "three_link")]
seeds = st.integers(0, 2**32 - 1)


def cost(K, x):
    """Return ∫ (xᵀ Q x + uᵀ R u) dt of the nonlinear arm from ``x`` with u = -K x."""
    A, B = linear_dynamics(ARM, REACH["theta"])
    return x @ solve_continuous_lyapunov((A - B @ K).T, -(Q + K.T @ R @ K)) @ x


def displaced():
    first = table("four_joint/lqr_closed_loop_reach.csv")[0]
    return np.array(list(first)[1:]) - np.r_[REACH["theta"], np.zeros(4)]


def hurwitz(arm, q, K):
    A, B = linear_dynamics(arm, q)
    return np.linalg.eigvals(A - B @ K).real.max() < 0


# The gain -------------------------------------------------------------------------------------


def test_linearization_and_gain_equal_the_published_ones():
    A, B = linear_dynamics(ARM, REACH["theta"])
    np.testing.assert_allclose(A, REACH["A"], rtol=1e-11, atol=1e-10)
    np.testing.assert_allclose(B, REACH["B"], rtol=1e-11, atol=1e-10)
    K, expected = lqr_gain(ARM, REACH["theta"], WEIGHTS), np.array(REACH["K"])
    np.testing.assert_allclose(K, expected, rtol=1e-7, atol=1e-7 * np.abs(expected).max())
    rates = np.sort_complex(np.linalg.eigvals(A - B @ K))
    published = np.sort_complex([complex(*pair) for pair in REACH["closed_loop_eigs"]])
    np.testing.assert_allclose(rates, published, rtol=1e-8)


def test_gains_of_a_diagonal_inertia_cost_more():
    """The published approximation diag(M) of M costs 12 % more from the published start."""
    A, _ = linear_dynamics(ARM, REACH["theta"])
    M = rigid_body.mass_matrix(ARM, REACH["theta"])
    inverse = np.diag(1 / np.diag(M))
    short, drive = A.copy(), np.vstack([np.zeros((4, 4)), inverse])
    short[4:] = inverse @ M @ A[4:]
    K = drive.T @ solve_riccati(short, drive @ drive.T, Q)
    published = np.array(REACH["K_diagonal_inertia_model"])
    np.testing.assert_allclose(K, published, rtol=1e-7, atol=1e-7 * np.abs(published).max())
    best = cost(lqr_gain(ARM, REACH["theta"], WEIGHTS), displaced())
    assert best == pytest.approx(REACH["cost_opt"], rel=1e-9)
    assert cost(K, displaced()) == pytest.approx(REACH["cost_diag_model"], rel=1e-9)


@given(seeds, st.sampled_from(ARMS))
def test_gains_solve_the_equation_and_stabilise(seed, arm):
    """Compared with another solver in random configurations; A with differences of the dynamics."""
    rng = np.random.default_rng(seed)
    q, nv = rng.uniform(-2, 2, arm.nv), arm.nv
    weights = LqrWeights(*rng.uniform(0.5, 5, (3, nv)))
    A, B = linear_dynamics(arm, q)
    tau, still = rigid_body.gravity(arm, q), np.zeros(nv)
    ends = [[rigid_body.aba(arm, q + h, still, tau) for h in s * np.eye(nv)] for s in (1e-6, -1e-6)]
    near = 1e-6 * (1 + np.abs(A).max())
    np.testing.assert_allclose(A[nv:, :nv], np.subtract(*ends).T / 2e-6, atol=near)
    cost_of_x = np.diag(np.concatenate([weights.position, weights.velocity]))
    P = solve_continuous_are(A, B, cost_of_x, np.diag(weights.effort))
    K = lqr_gain(arm, q, weights)
    expected = B.T @ P / weights.effort[:, None]
    np.testing.assert_allclose(K, expected, atol=1e-6 * np.abs(expected).max())
    assert hurwitz(arm, q, K)


def test_one_joint_in_closed_form():
    """m ë = u: k = √(q/r), d = √(2 m k + v/r); friction b enters A."""
    arm = chain({"mass": 2.0, "center": "0 0 0", "ixx": 0.3})
    K = lqr_gain(arm, [0.4], LqrWeights(np.array([8.0]), np.array([3.0]), np.array([2.0])))
    np.testing.assert_allclose(K, [[2.0, np.sqrt(2 * 0.3 * 2 + 1.5)]], rtol=1e-12)
    A, _ = linear_dynamics(chain({"center": "0 0 0", "ixx": 0.3, "damping": 0.6}), [0.4])
    np.testing.assert_allclose(A, [[0, 1], [0, -2]], atol=1e-15)


# Not stabilizable -----------------------------------------------------------------------------


def with_passive_joint(arm, name):
    """Return the arm with a joint without effort command."""
    j = arm.index(name)
    joint = replace(arm.joints[j], effort=0.0)
    return replace(arm, joints=(*arm.joints[:j], joint, *arm.joints[j + 1 :]))


def test_a_passive_joint_is_balanced_by_coupling():
    """An acrobot upright: unstable under gravity, stabilized by one torque."""
    arm = with_passive_joint(chain({}, {}), "J1")
    up = [-np.pi / 2, 0.0]
    K = lqr_gain(arm, up, LqrWeights(np.ones(2), np.ones(2), np.ones(2)))
    assert not K[0].any()
    assert np.linalg.eigvals(linear_dynamics(arm, up)[0]).real.max() > 1
    assert hurwitz(arm, up, K)


def test_a_configuration_that_is_not_stabilizable_is_rejected_by_name():
    """Rotation of the first joint does not move the passive one."""
    arm = with_passive_joint(chain({"axis": "0 0 1"}, {"axis": "1 0 0", "center": "0 0 0"}), "J2")
    with pytest.raises(InvalidValue, match=r"not stabilizable .* motion of joint 'J2'"):
        lqr_gain(arm, [0.1, 0.0], LqrWeights(np.ones(2), np.ones(2), np.ones(2)))
    with pytest.raises(InvalidValue, match="joint 'J2'"):
        Lqr(arm)


def test_a_gravity_torque_beyond_the_effort_limit_is_not_an_equilibrium():
    arm = chain({"mass": 60.0, "effort": 100.0})
    with pytest.raises(
        InvalidValue,
        match=r"gravity torque of joint 'J1' = -147.2 N·m; expected within its effort limit 100",
    ):
        require_static_effort(arm, [0.0])
    require_static_effort(arm, [1.5])
    with pytest.raises(InvalidValue, match="torque of joint 'J1' = "):
        build_gain_table(arm, LqrWeights(*np.ones((3, 1))), {"J1": (0.0, 1.5, 3)})


# Controller -----------------------------------------------------------------------------------


def test_the_published_motion_reaches_its_target():
    expected = table("four_joint/lqr_closed_loop_reach.csv")
    controller, goal = Lqr(ARM, GAINS), JointTrajectory.hold(REACH["theta"])
    start = np.array(REACH["theta"]) + displaced()[:4]
    q, v, _ = simulate_continuous(ARM, controller, goal, start, expected["t"])
    np.testing.assert_allclose(q, columns(expected, "th1", "th2", "th3", "th4"), atol=1e-7)
    np.testing.assert_allclose(v, columns(expected, "w1", "w2", "w3", "w4"), atol=1e-7)


def test_on_the_reference_the_command_is_inverse_dynamics_with_friction():
    arm = load_arm("two_link")
    controller, rng = Lqr(arm), np.random.default_rng(2)
    q, v, a = rng.normal(size=(3, 2))
    tau = controller.update(State.of(q, v), Reference(q, v, a), 0.0).value
    np.testing.assert_allclose(tau, rigid_body.rnea(arm, q, v, a) + 0.1 * v, atol=1e-12)


@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm.name)
def test_default_weights_are_stable_and_not_too_fast(arm):
    q = arm.configuration("initial")
    A, B = linear_dynamics(arm, q)
    rates = np.linalg.eigvals(A - B @ Lqr(arm).gain(q))
    assert rates.real.max() < 0
    assert np.abs(rates).max() < 1.2 * MAX_RATE


def test_a_reference_that_no_gain_stabilizes_is_rejected():
    """The passive link level where M_12 = 0: it has neither inertial nor gravity coupling."""
    arm = with_passive_joint(
        chain({"center": "0 0 0.25"}, {"xyz": "0 0 0.5", "center": "0 0 0.25"}), "J2"
    )
    controller, fold = Lqr(arm), np.arccos(-(0.02 + 0.25**2) / (0.5 * 0.25))
    level = np.array([np.pi / 2 - fold, fold])
    assert rigid_body.mass_matrix(arm, level)[0, 1] == pytest.approx(0, abs=1e-15)
    with pytest.raises(CommandRejected, match="motion of joint 'J2'"):
        controller.update(State.of(level), Reference.hold(level), 0.0)
    controller.update(State.of(level), Reference.hold(level + 0.1), 0.0)


# Tables ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gains():
    return build_gain_table(ARM, WEIGHTS, GRID)


def test_a_table_is_exact_at_its_grid_and_close_between(gains):
    for J2, J3, J4 in ((-0.6, 0.2, -0.8), (1.2, 1.6, 1.0), (0.3, 0.55, 0.1)):
        q = np.array([0.0, J2, J3, J4])
        np.testing.assert_allclose(gains.at(q), lqr_gain(ARM, q, WEIGHTS), atol=1e-9)
    finer = build_gain_table(ARM, WEIGHTS, {n: (*ends, 9) for n, (*ends, _) in GRID.items()})
    rng = np.random.default_rng(5)
    worst = [0.0, 0.0]
    for q in rng.uniform([-3, -0.6, 0.2, -0.8], [3, 1.2, 1.6, 1.0], (60, 4)):
        exact = lqr_gain(ARM, q, WEIGHTS)
        worst = [
            max(w, np.abs(t.at(q) - exact).max())
            for w, t in zip(worst, (gains, finer), strict=True)
        ]
        assert hurwitz(ARM, q, gains.at(q))
    assert worst[1] < 0.4 * worst[0]  # second order in the spacing


def test_outside_the_grid_the_controller_solves_the_riccati_equation(gains):
    outside, controller = np.array([0.0, 1.3, 0.5, 0.0]), Lqr(ARM, GAINS)
    controller.set_gain_table(gains)
    assert gains.at(outside) is None
    np.testing.assert_array_equal(controller.gain(outside), lqr_gain(ARM, outside, WEIGHTS))
    turned = np.array([0.0, 0.4 + 2 * np.pi, 0.5 - 2 * np.pi, 0.0])
    np.testing.assert_allclose(
        gains.at(turned), gains.at(np.array([0.0, 0.4, 0.5, 0.0])), atol=1e-12
    )


def test_the_controller_reaches_the_target_from_anywhere_in_its_table(gains):
    controller, rng = Lqr(ARM, GAINS), np.random.default_rng(1)
    controller.set_gain_table(gains)
    assert controller.gain(ARM.configuration("initial")) is not None
    for q, start in rng.uniform([-1, -0.6, 0.2, -0.8], [1, 1.2, 1.6, 1.0], (4, 2, 4)):
        reached, _, _ = simulate_continuous(
            ARM, controller, JointTrajectory.hold(q), start, np.array([0.0, 4.0]), 1e-7
        )
        np.testing.assert_allclose(reached[-1], q, atol=1e-3)


def test_a_table_is_saved_and_loaded(gains, tmp_path):
    gains.save(tmp_path / "gains.npz")
    q = np.array([0.2, 0.1, 0.9, 0.3])
    np.testing.assert_array_equal(
        load_gain_table(tmp_path / "gains.npz", ARM, WEIGHTS).at(q), gains.at(q)
    )
    others = (
        with_model_error(ARM, mass=0.1),
        ARM.with_payload(0.1),
        ARM.with_joint("J1", damping=0.1),
    )
    for arm in others:
        with pytest.raises(ConfigError, match="another arm than 'four_joint'"):
            load_gain_table(tmp_path / "gains.npz", arm, WEIGHTS)
    with pytest.raises(ConfigError, match="other weights"):
        load_gain_table(tmp_path / "gains.npz", ARM, replace(WEIGHTS, effort=2 * WEIGHTS.effort))
    (tmp_path / "text.npz").write_text("no table")
    for name in ("text.npz", "missing.npz"):
        with pytest.raises(ConfigError, match=name):
            load_gain_table(tmp_path / name, ARM, WEIGHTS)
    with pytest.raises(ConfigError, match="nowhere"):
        gains.save(tmp_path / "nowhere" / "gains.npz")


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Return the bytes of a valid table's file."""
    file = tmp_path_factory.mktemp("small") / "gains.npz"
    build_gain_table(ARM, WEIGHTS, {"J2": (0.0, 1.0, 2), "J3": (0.5, 1.0, 3)}).save(file)
    return file.read_bytes()


def test_a_damaged_table_is_one_kind_of_error(small, tmp_path):
    """Truncated or with flipped bytes: rejected by name, or read with the original values."""
    file, rng, rejected = tmp_path / "damaged.npz", np.random.default_rng(0), 0
    good = np.load(BytesIO(small))
    damaged = [small[:n] for n in range(0, len(small), 97)]
    for place in rng.integers(0, len(small), 400).tolist():
        flipped = small[place] ^ int(rng.integers(1, 256))
        damaged.append(small[:place] + bytes([flipped]) + small[place + 1 :])
    for data in damaged:
        file.write_bytes(data)
        try:
            np.testing.assert_array_equal(load_gain_table(file, ARM, WEIGHTS).gains, good["gains"])
        except ConfigError:
            rejected += 1
    assert rejected > 0.8 * len(damaged)


MUTATED = {
    "joint beyond the arm": {"joints": np.array([1, 10**6])},
    "negative joint": {"joints": np.array([-(10**6), 2])},
    "joint twice": {"joints": np.array([1, 1])},
    "joints as floats": {"joints": np.array([1.0, 2.0])},
    "too many joints": {"joints": np.array([0, 1, 2])},
    "too few ends": {"lower": np.array([0.0])},
    "ends in descending order": {"upper": np.array([1.0, 0.1])},
    "ends not finite": {"upper": np.array([1.0, np.inf])},
    "no number": {"lower": np.array([0.0, np.nan])},
    "turn differs": {"turn": np.array([2 * np.pi, 1.0])},
    "a turn of none": {"turn": np.array([np.inf, 0.0])},
    "gains of another arm": {"gains": np.zeros((2, 3, 5, 10))},
    "gains without axes": {"gains": np.zeros((4, 8))},
    "flat gains": {"gains": np.zeros(192)},
    "one pose": {"gains": np.zeros((1, 3, 4, 8))},
    "gains not finite": {"gains": np.full((2, 3, 4, 8), np.nan)},
    "gains as text": {"gains": np.full((2, 3, 4, 8), "1")},
    "complex gains": {"gains": np.zeros((2, 3, 4, 8), complex)},
    "objects": {"gains": np.full((2, 3, 4, 8), None)},
    "another part": {"more": np.zeros(3)},
    "a part missing": {"turn": None},
    "another key": {"key": np.array("0" * 64)},
}


@pytest.mark.parametrize("case", MUTATED)
def test_a_table_with_inconsistent_parts_is_rejected(case, small, tmp_path):
    file, parts = tmp_path / "mutated.npz", dict(np.load(BytesIO(small))) | MUTATED[case]
    np.savez(file, **{name: part for name, part in parts.items() if part is not None})
    with pytest.raises(ConfigError, match=r"mutated\.npz"):
        load_gain_table(file, ARM, WEIGHTS)
    parts["key"] = str(parts["key"])
    if case not in (
        "another part",
        "a part missing",
        "another key",
        "turn differs",
        "gains of another arm",
    ):
        with pytest.raises(InvalidValue):
            GainTable(**parts)


def test_a_small_file_that_unpacks_to_a_huge_one_is_not_unpacked(small, tmp_path):
    """The header claims 10^12 numbers; the file contains the bytes of four."""
    file, parts = tmp_path / "bomb.npz", dict(np.load(BytesIO(small)))
    for shape, text in (((10**6, 10**6, 4, 8), "expected at most 1e\\+08"), ((10**9,), "expected")):
        with ZipFile(file, "w") as out:
            for name, part in parts.items():
                with out.open(f"{name}.npy", "w") as member:
                    if name == "gains":
                        head = {"descr": "<f8", "fortran_order": False, "shape": shape}
                        np.lib.format.write_array_header_1_0(member, head)
                    np.lib.format.write_array(member, part)
        with pytest.raises(ConfigError, match=f"bomb.npz.*{text}"):
            load_gain_table(file, ARM, WEIGHTS)


def test_a_configuration_of_another_size_is_rejected(gains):
    with pytest.raises(InvalidValue, match=r"q: shape = \(2,\); expected \(4,\)"):
        gains.at(np.zeros(2))


def test_a_table_of_another_arm_is_rejected(gains):
    controller = Lqr(ARM, GAINS)
    controller.set_gain_table(gains)
    q = np.array([0.0, 0.1, 0.9, 0.3])
    assert np.abs(controller.gain(q) - lqr_gain(ARM, q, WEIGHTS)).max() > 0
    controller.set_model(ARM.with_payload(0.2))
    np.testing.assert_array_equal(controller.gain(q), lqr_gain(ARM.with_payload(0.2), q, WEIGHTS))
    with pytest.raises(InvalidValue, match=r"controller\.arm and controller\.weights"):
        controller.set_gain_table(gains)


def test_parallel_processes_compute_the_same_table_and_report_progress(gains):
    progress = []
    with ProcessPoolExecutor(2) as executor:
        again = build_gain_table(
            ARM, WEIGHTS, GRID, executor=executor, progress=lambda *done: progress.append(done)
        )
    np.testing.assert_array_equal(again.gains, gains.gains)
    assert progress[-1] == (125, 125)
    assert len(progress) <= PARTS
    assert [done for done, _ in progress] == sorted({done for done, _ in progress})


@pytest.mark.parametrize(
    ("grid", "error", "text"),
    [
        ({}, InvalidValue, "at least one joint"),
        ({"J9": (0.0, 1.0, 3)}, UnknownName, "J9"),
        ({"J2": (1.0, 1.0, 3)}, InvalidValue, "'J2': upper = 1.0; expected above 1.0"),
        ({"J2": (0.0, 1.0, 1)}, InvalidValue, "'J2': count = 1"),
        ({"J2": (0.0, 1.0)}, InvalidValue, "'J2'.*lower, upper, count"),
        (
            {"J2": (0.0, 1.0, 10**5), "J3": (0.0, 1.0, 10**5)},
            InvalidValue,
            "10000000000 configurations; expected at most 3125000",
        ),
    ],
)
def test_an_invalid_grid_is_rejected(grid, error, text):
    with pytest.raises(error, match=text):
        build_gain_table(ARM, WEIGHTS, grid)


@pytest.mark.slow
def test_the_command_line_writes_a_gain_table(tmp_path, capsys):
    file = tmp_path / "reach.npz"
    axes = ["J2=0:1:2", "J3=0.5:1:2"]
    assert (
        gains_cli.run(["four_joint", "--grid", *axes, "--workers", "2", "--output", str(file)]) == 0
    )
    assert "4 configurations" in capsys.readouterr().out
    controller = build_controller(ARM, "lqr")
    controller.set_gain_table(load_gain_table(file, controller.arm, controller.weights))
    q = np.array([0.0, 1.0, 0.5, ARM.configuration("initial")[3]])
    np.testing.assert_allclose(controller.gain(q), lqr_gain(ARM, q, controller.weights), atol=1e-9)
    with pytest.raises(ConfigError, match="--grid = J2=0:1;"):
        gains_cli.run(["four_joint", "--grid", "J2=0:1"])
    with pytest.raises(ConfigError, match="axes of joint 'J2' = 2"):
        gains_cli.run(["four_joint", "--grid", "J2=0:1:2", "J2=0:1:3"])
