"""Excitation trajectories: exact limits, self-collision, information, files and commands."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from conftest import chain, examples, five_dof
from hypothesis import given, settings
from hypothesis import strategies as st

from arm_dynamics import load_arm
from arm_dynamics.cli.main import main
from arm_dynamics.collision.self_collision import SelfCollision
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.core.errors import ConfigError, InvalidValue, TrajectoryRejected
from arm_dynamics.identification import Excitation, excitation_quality, excite
from arm_dynamics.identification.excitation import excitation_search as search
from arm_dynamics.identification.excitation.evolution_strategy import (
    _Constants,
    minimize,
    population,
)
from arm_dynamics.identification.excitation.excitation_information import (
    effort_weights,
    planned_effort,
    unidentifiable,
)
from arm_dynamics.identification.excitation.excitation_limits import (
    MotionLimits,
    extreme_values,
    fourier_extremes,
    scale_to_limits,
)
from arm_dynamics.identification.excitation.excitation_start import (
    checked_excitation,
    excitation_motion,
)
from arm_dynamics.model.load import parse_arm
from arm_dynamics.recording import Recording

BOX = """<collision><origin xyz="{x} 0 0"/><geometry><box size="{size} {size} 0.1"/></geometry>
</collision>"""
FOLDING = """<robot name="folding">
<link name="base">{base}</link>
<joint name="A" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/>
<limit lower="-3" upper="3" effort="50" velocity="3"/></joint>
<link name="a"><inertial><origin xyz="0.25 0 0"/><mass value="1"/>
<inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="B" type="revolute"><parent link="a"/><child link="b"/><origin xyz="0.5 0 0"/>
<axis xyz="0 0 1"/><limit lower="-3" upper="3" effort="20" velocity="3"/></joint>
<link name="b"><inertial><origin xyz="0.25 0 0"/><mass value="1"/>
<inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial>{tip}</link>
</robot>"""


@pytest.fixture(autouse=True)
def few_evaluations(monkeypatch):
    """Search shortly: the limits hold for every search."""
    monkeypatch.setattr(search, "RANDOM_STARTS", 20)
    monkeypatch.setattr(search, "EVALUATIONS", 200)


def folding():
    """Return an arm whose tip hits its base if it folds."""
    base, tip = BOX.format(x=0, size=0.4), BOX.format(x=0.4, size=0.2)
    return parse_arm(FOLDING.format(base=base, tip=tip))


def with_a_slide():
    """Return an arm with a prismatic joint and a continuous one."""
    slide = {"kind": "prismatic", "lower": 0.0, "upper": 0.4}
    return chain(slide, {"kind": "continuous"})


def random_excitation(seed, harmonics=4, nv=2, amplitude=1.0):
    random = np.random.default_rng(seed)
    names = tuple(f"J{i}" for i in range(nv))
    start, center = random.normal(size=(2, nv))
    waves = amplitude * random.normal(size=(2, nv, harmonics))
    return Excitation("arm", names, 12.0, 1.5, 2, start, center, *waves)


def test_derivatives_and_rest():
    motion, h = random_excitation(1), 1e-5
    times = np.random.default_rng(2).uniform(0.01, 11.99, 200)
    q, v, a = motion.sample(times)
    ahead, before = motion.sample(times + h), motion.sample(times - h)
    np.testing.assert_allclose((ahead[0] - before[0]) / (2 * h), v, atol=1e-6)
    np.testing.assert_allclose((ahead[1] - before[1]) / (2 * h), a, atol=1e-4)
    q, v, a = motion.sample(np.array([-1.0, 0.0, 12.0, 13.0]))
    assert (q == motion.start).all()
    assert not v.any()
    assert not a.any()
    near = motion.sample(np.array([1e-6, 12 - 1e-6]))
    assert max(np.abs(near[1]).max(), np.abs(near[2]).max()) < 1e-3
    for knot in (1.5, 10.5):
        for left, right in zip(
            motion.sample(np.array([knot - 1e-9])), motion.sample(np.array([knot + 1e-9])),
            strict=True,
        ):  # fmt: skip
            np.testing.assert_allclose(left, right, atol=1e-5)


@given(st.integers(0, 10**6), st.integers(1, 12), st.floats(1e-6, 1e3))
@settings(max_examples=examples(40), deadline=None)
def test_extremes_are_exact(seed, harmonics, amplitude):
    motion = random_excitation(seed, harmonics, 1, amplitude)
    times = np.linspace(0, motion.duration, 4001)
    for sampled, (low, high) in zip(motion.sample(times), extreme_values(motion), strict=True):
        size = np.abs(sampled).max()
        assert sampled.min() >= low - 1e-9 * size
        assert sampled.max() <= high + 1e-9 * size
        assert low >= sampled.min() - 0.02 * size
        assert high <= sampled.max() + 0.02 * size


@given(st.integers(0, 10**6), st.integers(1, 8))
@settings(max_examples=examples(25), deadline=None)
def test_extremes_of_a_series_with_missing_harmonics(seed, harmonics):
    random = np.random.default_rng(seed)
    present = random.random((2, harmonics)) < 0.5
    sine, cosine = np.where(present, random.normal(size=(2, harmonics)), 0.0)
    k, angles = np.arange(1, harmonics + 1), fourier_extremes(sine, cosine)
    dense = np.linspace(0, 2 * np.pi, 5000)
    exact, sampled = (
        np.sin(np.outer(x, k)) @ sine + np.cos(np.outer(x, k)) @ cosine for x in (angles, dense)
    )
    assert exact.max() >= sampled.max() - 1e-12
    assert exact.min() <= sampled.min() + 1e-12


@given(st.integers(0, 10**6), st.floats(0.2, 20))
@settings(max_examples=examples(25), deadline=None)
def test_scaled_motion_reaches_a_limit_and_exceeds_none(seed, amplitude):
    motion = random_excitation(seed, 3, 2, amplitude)
    motion = motion.with_coefficients(motion.coefficients * [[0], [1]])
    ends = np.abs(motion.start) + 1.0
    limits = MotionLimits(-ends, ends, np.full(2, 1.5), np.full(2, 4.0))
    scaled = scale_to_limits(motion, limits, np.zeros_like(motion.coefficients))
    q, v, a = extreme_values(scaled)
    ratios = [
        (motion.start - q[0]) / (motion.start + ends),
        (q[1] - motion.start) / (ends - motion.start),
        *np.abs(v) / 1.5,
        *np.abs(a) / 4.0,
    ]
    assert np.max(ratios) <= 1 + 1e-12
    if not np.array_equal(scaled.coefficients, motion.coefficients):
        assert np.max([ratio[1] for ratio in ratios]) > 1 - 1e-9


@pytest.mark.quick(1)
@pytest.mark.parametrize("make", [five_dof, with_a_slide, lambda: load_arm("so101")])
def test_limits_hold_at_dense_samples(make):
    arm = make()
    motion = excite(arm, 12.0, seed=3, acceleration_limit=20.0)
    times = np.arange(0, 12, 1e-3)
    q, v, a = motion.sample(times)
    lower = np.where(np.isfinite(arm.lower), arm.lower, -np.pi)
    upper = np.where(np.isfinite(arm.upper), arm.upper, np.pi)
    assert (q >= lower - 1e-9).all()
    assert (q <= upper + 1e-9).all()
    fastest = np.where(np.isfinite(arm.velocity_limit), arm.velocity_limit, search.MAX_VELOCITY)
    assert (np.abs(v) <= search.VELOCITY_FRACTION * fastest + 1e-9).all()
    assert (np.abs(a) <= 20 + 1e-9).all()
    effort = np.abs(planned_effort(arm, q, v, a))
    assert (effort <= search.EFFORT_FRACTION * arm.effort_limit * (1 + 1e-6)).all()
    assert (np.ptp(q, axis=0) > 0).all()
    motion.trajectory().check(arm)


def test_waypoints_are_the_motion():
    motion = random_excitation(4)
    trajectory = motion.trajectory(5.0)
    for time_ in np.random.default_rng(0).uniform(0, 12, 50):
        reference = trajectory.at(5.0 + time_)
        q, v, a = motion.sample(np.array([time_]))
        np.testing.assert_allclose(reference.q, q[0], atol=1e-8)
        np.testing.assert_allclose(reference.v, v[0], atol=1e-6)
        np.testing.assert_allclose(reference.a, a[0], atol=1e-4)


@pytest.mark.parametrize("size", [1e-12, 1e12])
def test_extremes_do_not_depend_on_the_unit(size):
    sine, cosine = np.random.default_rng(4).normal(size=(2, 5))
    angles = fourier_extremes(sine, cosine)
    assert len(angles) == 10
    np.testing.assert_allclose(fourier_extremes(size * sine, size * cosine), angles, atol=1e-9)


def test_the_times_of_an_evaluation_represent_the_whole_motion():
    """The mean of min(t, e, T - t) is e (T - e) / T: one period of the series counts as all."""
    motion = random_excitation(5)
    times, weights = search._evaluation_times(motion)
    T, e = motion.duration, motion.end_time
    value = np.minimum(np.minimum(times, e), T - times)
    assert weights @ weights == pytest.approx(1.0, rel=1e-12)
    assert weights**2 @ value == pytest.approx(e * (T - e) / T, rel=1e-12)


@pytest.mark.parametrize("angle", [-2.8, 2.8])
def test_the_motion_from_either_end_of_the_range_to_its_middle_is_within_the_limits(angle):
    """The middle is too far for the first 1.2 s."""
    motion = excite(chain({}, {}), 6.0, configuration=[angle] * 2, acceleration_limit=1.0)
    acceleration = extreme_values(motion)[2]
    assert np.abs(acceleration).max() <= 1 + 1e-9
    q = motion.sample(np.array([motion.end_time]))[0]
    assert (np.abs(q) < 2.8).all()


def test_start_at_a_position_limit():
    arm = with_a_slide()
    motion = excite(arm, 8.0, configuration=[0.0, 0.2])
    low, high = extreme_values(motion)[0][:, 0]
    assert low >= -1e-12
    assert high > 0.05
    assert motion.start.tolist() == [0.0, 0.2]


@pytest.mark.quick(1)
@pytest.mark.parametrize("limit", ["lower", "upper"])
@pytest.mark.parametrize("seed", range(2))
def test_every_joint_that_starts_at_its_limit_moves(limit, seed):
    arm = load_arm("so101")
    start = getattr(arm, limit)
    motion = excite(arm, 10.0, seed=seed, configuration=start, clearance=1e-4, evaluations=40)
    moved = np.ptp(motion.sample(np.linspace(0, 10, 500))[0], axis=0)
    amplitude = np.abs(motion.coefficients[:, 1:]).sum(axis=1)
    assert (moved > 1e-3).all()
    assert (amplitude > 1e-6).all()


def test_continuous_joint_stays_in_its_turn():
    motion = excite(with_a_slide(), 8.0, configuration=[0.1, 13.0])
    low, high = extreme_values(motion)[0][:, 1]
    assert 4 * np.pi - np.pi <= low
    assert high <= 4 * np.pi + np.pi


@pytest.mark.slow
def test_same_seed_gives_the_same_file():
    arm = five_dof()
    first, second = (excite(arm, 10.0, seed=7).to_yaml() for _ in range(2))
    assert first == second
    assert excite(arm, 10.0, seed=8).to_yaml() != first


def test_a_search_of_few_motions_is_within_the_limits():
    arm, calls = five_dof(), []
    motion = excite(arm, 10.0, evaluations=30, progress=lambda *call: calls.append(call))
    assert calls[-1][0] == calls[-1][1] <= 30
    motion.trajectory().check(arm)
    with pytest.raises(InvalidValue, match="evaluations"):
        excite(arm, 10.0, evaluations=0)


def test_self_collision_is_avoided():
    arm = folding()
    collision = SelfCollision(arm, 0.01, arm.configuration("initial"))
    assert collision.find(np.array([0.0, 0.0])) is None
    assert collision.find(np.array([0.0, 3.0])) == ("base", "b")
    assert collision.depths(np.array([[0.0, 0.0]])) == 0
    assert collision.depths(np.array([[0.0, 3.0]])) > 0.01
    motion = excite(arm, 10.0)
    times = np.arange(0, 10, 2e-3)
    assert not collision.any_of(motion.sample(times)[0])
    free = parse_arm(FOLDING.format(base="", tip=""))
    unaware = (excite(free, 10.0, seed=seed).sample(times)[0] for seed in range(4))
    assert any(collision.any_of(q) for q in unaware)


def test_links_in_contact_at_the_start_are_named():
    arm = folding()
    with pytest.warns(RuntimeWarning, match="links in contact at the start .*'base' and 'b'"):
        SelfCollision(arm, 0.01, np.array([0.0, 3.0]))


def test_missing_meshes_are_named():
    mesh = '<collision><geometry><mesh filename="package://none/arm.stl"/></geometry></collision>'
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arm = parse_arm(FOLDING.format(base=mesh, tip=BOX.format(x=0.4, size=0.2)))
    with pytest.warns(RuntimeWarning, match="collision mesh = 'package://none/arm.stl'"):
        collision = SelfCollision(arm, 0.01, arm.configuration("initial"))
    assert collision.missing == ("package://none/arm.stl",)
    assert collision.pairs == 0
    assert collision.find(np.zeros(2)) is None


def test_meshes_next_to_the_description_are_checked(tmp_path):
    corners = ("0 0 0", "0.2 0 0", "0 0.2 0", "0 0 0.2")
    faces = (
        "facet normal 0 0 0\nouter loop\n"
        + "".join(f"vertex {corner}\n" for corner in corners if corner != omitted)
        + "endloop\nendfacet\n"
        for omitted in corners
    )
    (tmp_path / "tip.stl").write_text(f"solid tip\n{''.join(faces)}endsolid tip\n")
    tip = """<collision><origin xyz="0.3 -0.05 -0.05"/><geometry><mesh filename="tip.stl"/>
</geometry></collision>"""
    text = FOLDING.format(base=BOX.format(x=0, size=0.4), tip=tip)
    arm = parse_arm(text, tmp_path / "arm.urdf")
    collision = SelfCollision(arm, 0.01, arm.configuration("initial"))
    assert collision.missing == ()
    assert collision.find(np.array([0.0, 0.0])) is None
    assert collision.find(np.array([0.0, 3.0])) == ("base", "b")
    assert not collision.any_of(excite(arm, 5.0).sample(np.linspace(0, 5, 2000))[0])


@pytest.mark.slow
def test_better_than_random_motions():
    arm = five_dof()
    start = arm.configuration("initial")
    motion = excite(arm, 20.0)
    limits, random = search.motion_limits(arm, start), np.random.default_rng(0)
    conditions = []
    for _ in range(9):
        x = random.normal(size=motion.coefficients.shape)
        other = scale_to_limits(motion.with_coefficients(x), limits, np.zeros_like(x))
        conditions.append(excitation_quality(arm, other).condition)
    assert excitation_quality(arm, motion).condition < np.median(conditions)
    assert not unidentifiable(arm, motion)


def test_a_motion_of_one_joint_does_not_reveal_the_others():
    arm = five_dof()
    motion = excite(arm, 10.0)
    x = motion.coefficients
    x[1:] = 0.0
    still = motion.with_coefficients(x)
    words = unidentifiable(arm, still)
    assert any(text.startswith("R3.viscous: no effect") for text in words)
    assert not any(text.startswith("R1.viscous") for text in words)
    assert excitation_quality(arm, still).condition == np.inf


def test_yaml_is_read_unchanged(tmp_path):
    motion = random_excitation(5)
    motion.save(tmp_path / "e.yaml")
    read = Excitation.load(tmp_path / "e.yaml")
    assert read.to_yaml() == motion.to_yaml()
    assert read.joint_names == motion.joint_names
    for name in ("start", "center", "sine", "cosine"):
        assert (getattr(read, name) == getattr(motion, name)).all()
        assert not getattr(read, name).flags.writeable


def test_yaml_of_names_with_special_characters(tmp_path):
    waves = np.ones((2, 1, 1))
    names = ('a: "b" #1',)
    motion = Excitation("x\ny", names, 4.0, 1.0, 1, np.zeros(1), np.zeros(1), *waves)
    motion.save(tmp_path / "e.yaml")
    read = Excitation.load(tmp_path / "e.yaml")
    assert read.joint_names == names
    assert read.arm == "x\ny"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("periods: 2", "periods: 0"), "periods = 0; expected an integer of at least 1"),
        (("periods: 2", "periods: 2.5"), "periods = 2.5; expected an integer"),
        (("end_time: 1.5", "end_time: 6.0"), "end_time = 6 s; expected less than half"),
        (("end_time: 1.5", "end_time: -1"), "end_time .* expected above 0"),
        (("duration: 12.0", "duration: far"), "duration .* expected a number"),
        (("duration: 12.0", "longer: 12.0"), "expected arm, duration"),
        (('center:\n  "J0"', 'center:\n  "J9"'), "center = .*one entry per joint J0, J1"),
        (("sine:", "sine: 3\nx:"), "expected arm, duration"),
    ],
)
def test_wrong_files(tmp_path, change, message):
    text = random_excitation(5).to_yaml()
    assert change[0] in text
    file = tmp_path / "e.yaml"
    file.write_text(text.replace(*change, 1))
    with pytest.raises(ConfigError, match=message):
        Excitation.load(file)


@pytest.mark.parametrize(
    ("entry", "value", "message"),
    [
        ("periods", "1000000000000", "periods = 1000000000000; expected at most 3000 with 4"),
        ("periods", "true", "periods = True; expected an integer"),
        ("duration", "1e308", r"duration \[s\] = 1e\+308; expected at most 3600"),
        ("end_time", "true", r"end_time \[s\] = True; expected a number"),
    ],
)
def test_extents_of_a_file_that_no_motion_has(tmp_path, entry, value, message):
    file = tmp_path / "e.yaml"
    lines = random_excitation(5).to_yaml().splitlines()
    changed = [f"{entry}: {value}" if x.startswith(f"{entry}:") else x for x in lines]
    assert changed != lines
    file.write_text("\n".join(changed))
    with pytest.raises(ConfigError, match=message):
        Excitation.load(file)


def test_motion_to_the_start_and_excitation_are_one_trajectory():
    """The waypoints, which ROS receives, are the references of the control loop."""
    arm = five_dof()
    start = np.array([0.3, -0.9, 0.2, 0.0, 0.0])
    sine = np.full((5, 2), 0.05)
    known = Excitation(arm.name, arm.joint_names, 6.0, 1.0, 2, start, start, sine, sine)
    checked = checked_excitation(arm, known)
    for q in (arm.configuration("initial"), start):
        motion = excitation_motion(arm, checked, q, 7.0)
        whole = JointTrajectory(motion.waypoints)
        assert (motion.start, motion.end) == (whole.start, pytest.approx(whole.end))
        for time in np.linspace(7.0, whole.end + 1.0, 200):
            for part in ("q", "v", "a"):
                np.testing.assert_allclose(
                    getattr(motion.at(time), part), getattr(whole.at(time), part), atol=1e-7
                )
        assert np.array_equal(motion.at(7.0).q, q)
    with pytest.raises(TrajectoryRejected, match="joint 'R2': position = "):
        checked_excitation(arm, known.with_coefficients(200 * known.coefficients))


def test_wrong_numbers_of_a_file(tmp_path):
    file, text = tmp_path / "e.yaml", random_excitation(5, 1).to_yaml()
    last = text.rstrip().rsplit("[", 1)
    cases = (("[1.0, 2.0]", "the same count"), ("[.nan]", "finite"), ("[a]", "expected numbers"))
    for numbers, message in cases:
        file.write_text(f"{last[0]}{numbers}\n")
        with pytest.raises(ConfigError, match=message):
            Excitation.load(file)
    file.write_text("")
    with pytest.raises(ConfigError, match="entries = None"):
        Excitation.load(file)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"duration": 1.0}, r"duration \[s\] = 1.0; expected at least 2"),
        ({"duration": np.nan}, "expected a finite number"),
        ({"harmonics": 0}, "harmonics = 0; expected an integer of at least 1"),
        ({"harmonics": 31}, "harmonics = 31; expected at most 30"),
        ({"seed": -1}, "seed = -1"),
        ({"clearance": 0.0}, r"clearance \[m\] = 0.0; expected above 0"),
        ({"configuration": [0.0]}, "start configuration: shape"),
        ({"configuration": [9.0] * 5}, "start configuration: joint 'R2' = 9"),
        ({"acceleration_limit": -1.0}, "acceleration limit = -1.0 .* expected above 0"),
        ({"acceleration_limit": [1.0, 2.0]}, "expected a number or 5"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(InvalidValue, match=message):
        excite(five_dof(), **{"duration": 10.0, **arguments})


def test_start_that_the_motors_do_not_hold():
    with pytest.raises(InvalidValue, match="start configuration: joint 'R2': effort"):
        excite(five_dof().with_payload(60.0), 10.0)


def test_progress_reaches_the_total():
    seen = []
    excite(with_a_slide(), 5.0, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1]
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_efforts_are_weighted_by_their_limit_or_by_their_size_without_one():
    """Two links of 0.5 m: gravity needs up to 9.81 N·m of the first joint; twice the mass, twice
    the effort.
    """
    weights = []
    for mass in (1.0, 2.0):
        body = {"mass": mass, "ixx": 0.02 * mass}
        arm = chain(body, {**body, "effort": 7.0})
        first, second = arm.joints
        arm = replace(arm, joints=(replace(first, effort=np.inf), second))
        weights.append(effort_weights(arm))
    assert weights[0][1] == weights[1][1] == 7.0
    assert 0.7 * 9.81 < weights[0][0] < 2 * 9.81
    assert weights[1][0] == pytest.approx(2 * weights[0][0], rel=1e-9)


def test_evolution_strategy_finds_the_minimum_of_an_ellipsoid():
    p = 12
    scales = np.logspace(0, 3, p)
    cost, x = minimize(
        lambda rows, _: np.sum(scales * (rows - 1.0) ** 2, axis=1),
        np.zeros(p),
        0.3,
        6000 // population(p),
        np.random.default_rng(0),
    )
    assert cost < 1e-8
    np.testing.assert_allclose(x, 1.0, atol=1e-3)


@pytest.mark.parametrize(("p", "selected", "rows", "effective", "first"), [
    (2, 3, 6, 2.0, 0.63), (5, 4, 8, 2.6, 0.52), (10, 5, 10, 3.2, 0.45), (20, 6, 12, 3.7, 0.40),
])  # fmt: skip
def test_evolution_strategy_has_the_weights_of_its_reference(p, selected, rows, effective, first):
    """As pycma prints them: "(5_w,10)-aCMA-ES (mu_w=3.2,w_1=45%) in dimension 10"."""
    found = _Constants.of(p)
    assert (len(found.weights), found.count) == (selected, rows)
    assert found.effective == pytest.approx(effective, abs=0.05)
    assert found.weights[0] == pytest.approx(first, abs=0.01)
    assert found.weights.sum() == pytest.approx(1.0)
    assert found.expected_norm == pytest.approx(scipy.stats.chi(p).mean(), rel=1e-3)


def test_command_and_recording(tmp_path, capsys):
    pytest.importorskip("rosbags", reason="rosbags is not installed")
    file, picture = tmp_path / "e.yaml", tmp_path / "e.png"
    words = ["excite", "five_dof", "--seconds", "3", "--harmonics", "2", "--output", str(file)]
    with pytest.raises(SystemExit) as end:
        main([*words, "--figure", str(picture)])
    assert end.value.code == 0
    assert picture.stat().st_size > 10_000
    printed = capsys.readouterr().out
    assert "condition number" in printed
    assert "not checked: the floor and objects" in printed
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 2
    assert "exists already; expected a new file" in capsys.readouterr().err
    with pytest.raises(SystemExit) as end:
        main(["record", str(tmp_path / "run"), "--arm", "five_dof", "--excitation", str(file)])
    assert end.value.code == 0
    recording, motion = Recording.load(tmp_path / "run"), Excitation.load(file)
    assert recording.time[-1] == pytest.approx(4.0, abs=0.01)
    assert np.abs(recording.q - motion.sample(recording.time - 0.5)[0]).max() < 0.1


def test_record_moves_to_the_start_first(tmp_path, capsys):
    pytest.importorskip("rosbags", reason="rosbags is not installed")
    arm = five_dof()
    file = tmp_path / "e.yaml"
    excite(arm, 2.0, harmonics=1, configuration=[0.3, -0.9, 0.2, 0.0, 0.0]).save(file)
    folder = str(tmp_path / "run")
    with pytest.raises(SystemExit) as end:
        main(["record", folder, "--arm", "five_dof", "--excitation", str(file)])
    assert end.value.code == 0
    recording, motion = Recording.load(folder), Excitation.load(file)
    begin = recording.time[-1] - 0.5 - motion.duration
    assert begin == pytest.approx(2.0)  # rest, the motion to the start, rest
    assert np.abs(recording.q - motion.sample(recording.time - begin)[0])[-500:].max() < 0.1
    with pytest.raises(SystemExit) as end:
        main(["record", f"{folder}2", "--arm", "two_link", "--excitation", str(file)])
    assert end.value.code == 2
    assert "excitation: joints = R1, R2" in capsys.readouterr().err


@pytest.mark.slow
def test_the_search_conditions_the_regressor_of_six_joints(monkeypatch):
    monkeypatch.undo()
    motion = excite(load_arm("puma560"), 40.0, evaluations=1000)
    assert excitation_quality(load_arm("puma560"), motion).condition < 20


def test_a_start_that_friction_alone_prevents_is_rejected():
    arm = load_arm("two_link").with_joint("J1", friction=170.0)
    with pytest.raises(InvalidValue, match="limit 200 N·m less its friction 170"):
        excite(arm, 5.0, evaluations=1)
