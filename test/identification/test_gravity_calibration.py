"""Gravity calibration: exactness, sag before and after on simulated arms, poses, rejections."""

import io
from dataclasses import replace

import numpy as np
import pytest
from conftest import examples, five_dof
from hypothesis import given, settings
from hypothesis import strategies as st

from arm_dynamics import ControlLoop, Plant, Simulation, load_arm
from arm_dynamics.cli.hardware import calibrate_gravity as command
from arm_dynamics.collision.self_collision import SelfCollision
from arm_dynamics.control.controllers.pid import PidGravity
from arm_dynamics.core import ArmDynamicsError, ConfigError, InvalidValue, RecordingError
from arm_dynamics.core.state import Reference, State
from arm_dynamics.dynamics import gravity, mass_matrix
from arm_dynamics.hardware.simulation_driver import SimulationDriver
from arm_dynamics.identification import (
    calibrate_gravity,
    nominal_parameters,
    read_poses,
    with_parameters,
    write_poses,
)
from arm_dynamics.identification.gravity.gravity_calibration import (
    StaticPose,
    least_pose_count,
    pose_condition,
    random_configurations,
    static_rows,
)
from arm_dynamics.identification.gravity.pose_measurement import measure_poses, plan_legs
from arm_dynamics.identification.gravity.pose_selection import approach_distance, choose_poses
from arm_dynamics.identification.gravity.recorded_poses import is_pose_table
from arm_dynamics.identification.gravity.recorded_poses import static_poses as poses_of_recording
from arm_dynamics.identification.parameters.identified_urdf import identified_urdf
from arm_dynamics.identification.parameters.pseudo_inertia import is_consistent
from arm_dynamics.model.load import parse_arm
from arm_dynamics.model.model_error import with_model_error
from arm_dynamics.recording import MotionData

PAYLOADS = {"two_link": 0.2, "five_dof": 0.2, "puma560": 0.2, "so101": 0.1}
CENTER = (0.02, 0.01, 0.03)
NOISE, READINGS = 0.01, 10
BEFORE, AFTER = 20e-3, 3e-3
_chosen = {}


def poses_of(name):
    """Return the chosen poses of a bundled arm with masses 5 % too large."""
    if name not in _chosen:
        _chosen[name] = choose_poses(with_model_error(load_arm(name), mass=5.0))
    return _chosen[name]


def rough(arm):
    """Return the arm with dry friction in every joint, at least 2 % of its gravity torque."""
    values = np.array(nominal_parameters(arm))
    q = random_configurations(arm, 50, 3)
    largest = np.abs([gravity(arm, x) for x in q]).max()
    part = slice(12 * arm.nv, 13 * arm.nv)
    values[part] = np.maximum(values[part], 0.02 * largest)
    return with_parameters(arm, values)


def coulomb(arm):
    return nominal_parameters(arm)[12 * arm.nv : 13 * arm.nv]


def static_poses(arm, configurations, noise=NOISE, offset=0.0, seed=0, sides=(1.0, -1.0)):
    """Return the efforts of an arm at poses approached from both sides, as means of readings."""
    random = np.random.default_rng(seed)
    found = []
    for q in configurations:
        for side in sides:
            effort = gravity(arm, q) + side * coulomb(arm) + offset
            effort = effort * (1 + noise * random.normal(size=(READINGS, arm.nv)).mean(axis=0))
            found.append(StaticPose(q, effort, np.full(arm.nv, side)))
    return found


def torques(arm, configurations):
    return np.array([gravity(arm, q) for q in configurations])


def gains(arm, stiffness, q):
    """Return PD gains of critical damping."""
    damping = 2 * np.sqrt(stiffness * np.diag(mass_matrix(arm, q)))
    return {
        name: {"p": k, "i": 0.0, "d": d}
        for name, k, d in zip(arm.joint_names, stiffness, damping, strict=True)
    }


def sag(arm, model, stiffness, configurations):
    """Simulate PD control with gravity compensation; return the position errors at rest."""
    plant, errors = Plant(arm), []
    for q in configurations:
        controller = PidGravity(model, gains(arm, stiffness, q))
        state, reference = State.of(q), Reference.hold(q)
        controller.reset(state)
        for _ in range(4000):
            state = plant.step(state, controller.update(state, reference, 1e-3), 1e-3)
        assert np.abs(state.v).max() < 2e-3
        errors.append(q - state.q)
    return np.abs(errors)


# Sag before and after --------------------------------------------------------------------------


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", PAYLOADS)
@pytest.mark.parametrize("error", [5.0, -5.0])
def test_the_sag_under_gravity_compensation_disappears(name, error):
    actual = rough(load_arm(name).with_payload(PAYLOADS[name], CENTER))
    nominal = with_model_error(load_arm(name), mass=error)
    fit = calibrate_gravity(nominal, static_poses(actual, poses_of(name)))
    new = random_configurations(actual, 40, 11)
    change = np.abs(torques(actual, new) - torques(nominal, new))
    loaded = change.max(axis=0) > 0.02 * change.max()
    stiffness = np.where(loaded, change.max(axis=0), change.max()) / 25e-3
    # where the nominal model errs most, joint by joint; dry friction would hide sag
    smooth = np.array(nominal_parameters(actual))
    smooth[12 * actual.nv : 13 * actual.nv] = 0.0
    smooth = with_parameters(actual, smooth)
    worst = new[np.unique(change[:, loaded].argmax(axis=0))]
    before = sag(smooth, nominal, stiffness, worst)
    after = sag(smooth, fit.identified, stiffness, worst)
    assert (before[:, loaded].max(axis=0) >= BEFORE).all()
    assert after.max() <= AFTER
    everywhere = np.abs(torques(actual, new) - torques(fit.identified, new)) / stiffness
    assert everywhere.max() <= AFTER


@pytest.mark.parametrize("name", PAYLOADS)
def test_standard_deviations_contain_the_errors(name):
    actual = rough(load_arm(name).with_payload(PAYLOADS[name], CENTER))
    nominal = with_model_error(load_arm(name), mass=5.0)
    new = random_configurations(actual, 100, 12)
    for seed in range(3):
        fit = calibrate_gravity(nominal, static_poses(actual, poses_of(name), seed=seed))
        error = np.abs(torques(actual, new) - torques(fit.identified, new)).max(axis=0)
        assert (error <= 4 * fit.effort_error + 1e-9).all()
        friction = slice(12 * actual.nv, 13 * actual.nv)
        shown = fit.base.values(fit.parameters - nominal_parameters(actual))
        assert (np.abs(shown) <= 4.5 * fit.base_deviation + 1e-9).all()
        moved = np.isfinite(fit.deviation[friction])
        wrong = np.abs(fit.coulomb - coulomb(actual))[moved]
        assert (wrong <= 4.5 * fit.deviation[friction][moved]).all()


class NoisyDriver(SimulationDriver):
    """Simulated arm whose efforts have 1 % of noise in each reading; ``readings`` are all."""

    def __init__(self, arm, simulation, seed=0):
        super().__init__(arm, simulation)
        self.random, self.readings = np.random.default_rng(seed), {}

    def read(self):
        state = super().read()
        noise = 1 + NOISE * self.random.normal(size=state.tau.size)
        return self.readings.setdefault(state.time, replace(state, tau=state.tau * noise))

    def motion(self):
        rows = self.readings.values()
        q, effort = (np.array([getattr(row, name) for row in rows]) for name in ("q", "tau"))
        return MotionData(self.arm.joint_names, np.array([*self.readings]), q, effort)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two_link", "so101"])
def test_a_simulated_arm_with_noise_measures_and_records_its_poses(name):
    """A joint that approaches a pose slowly stops with sliding friction against its direction."""
    actual = rough(load_arm(name).with_payload(PAYLOADS.get(name, 0.2), CENTER))
    nominal = with_model_error(load_arm(name), mass=5.0)
    start = nominal.configuration("initial")
    inertia = np.diag(mass_matrix(nominal, start))
    stiffness = np.maximum(400 * inertia, 6 * coulomb(actual) / approach_distance(actual))
    driver = NoisyDriver(nominal, Simulation(actual, period=5e-3))
    loop = ControlLoop(driver, PidGravity(nominal, gains(actual, stiffness, start)))
    measured = measure_poses(loop, plan_legs(nominal, poses_of(name), 1.0))
    recorded = poses_of_recording(driver.motion())  # also of pauses between the poses
    assert len(measured) == 24 <= len(recorded)
    new = random_configurations(actual, 40, 11)
    change = np.abs(torques(actual, new) - torques(nominal, new)).max(axis=0)
    for poses in (measured, recorded):
        fit = calibrate_gravity(nominal, poses)
        error = np.abs(torques(actual, new) - torques(fit.identified, new)).max(axis=0)
        stiffness = np.where(change > 0.02 * change.max(), change, change.max()) / 25e-3
        assert (error / stiffness <= AFTER).all()
        assert (error <= 4 * fit.effort_error + 1e-9).all()
        assert (fit.coulomb <= 1.02 * coulomb(actual)).all()  # friction at rest is at most f


def test_the_command_calibrates_a_simulated_arm_without_a_terminal(tmp_path, monkeypatch):
    """No motors, no torque, no keys: an unmodeled payload, which the written URDF contains."""
    monkeypatch.setattr("sys.stdin", io.StringIO())
    output = tmp_path / "mine.urdf"
    words = ["two_link", "--driver", "simulated", "--payload", "0.2", "--output", str(output)]
    assert command.run(words) == 0
    assert "12 static poses of a simulated arm" in output.read_text()
    actual, nominal = load_arm("two_link").with_payload(0.2), load_arm("two_link")
    new = random_configurations(actual, 40, 11)
    before, after = (
        np.abs(torques(actual, new) - torques(arm, new)).max()
        for arm in (nominal, load_arm(output))
    )
    assert after < 0.05 * before
    poses = read_poses(nominal, output.with_suffix(".poses.csv"))
    assert len(poses) == 24
    written = output.read_bytes()
    with pytest.raises(ConfigError, match="exists; expected a new file, or a terminal"):
        command.run(words)
    assert output.read_bytes() == written


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--port", "/dev/ttyUSB0"], "--port = /dev/ttyUSB0; expected without --driver simulated"),
        (["--stiffness", "20"], "--stiffness = 20.0; expected without --driver simulated"),
        (["--poses", "3"], "--poses of arm 'so101' = 3; expected an integer of at least 4"),
    ],
)
def test_the_command_rejects_options_of_motors_for_a_simulated_arm(tmp_path, words, message):
    words = ["so101", "--driver", "simulated", "--output", str(tmp_path / "a.urdf"), *words]
    with pytest.raises(ArmDynamicsError, match=message):
        command.run(words)
    assert not [*tmp_path.iterdir()]


def measured_with(disturb, pose="pose 3 of 8"):
    """Return the poses of an arm, and the counts of its events.

    ``disturb`` is called with the driver and the number of each cycle at ``pose``.
    """
    arm = load_arm("two_link")
    start = arm.configuration("initial")
    stiffness = 400 * np.diag(mass_matrix(arm, start))
    driver, cycles = SimulationDriver(arm, Simulation(arm, period=5e-3)), []
    loop = ControlLoop(driver, PidGravity(arm, gains(arm, stiffness, start)))

    def step(text):
        if text == pose:
            cycles.append(text)
            disturb(driver, len(cycles))
        loop.step()
        return True

    legs = plan_legs(arm, choose_poses(arm, 4), 1.0)
    return measure_poses(loop, legs, step), dict(loop.events.counts)


def pushed(driver, cycle, last=500):
    if cycle <= last and cycle % 10 == 0:
        driver.simulation.push(1.3 * driver.simulation.default_impulse() * (-1) ** (cycle // 10))


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("disturb", "restarts"),
    [
        (lambda driver, cycle: driver.controlled_stop() if cycle == 100 else None, 1),
        (pushed, 0),
    ],
)
def test_a_disturbed_pose_is_repeated(disturb, restarts):
    expected, quiet = measured_with(lambda *_: None)
    found, counts = measured_with(disturb)
    assert "pose_repeated" not in quiet
    assert counts["pose_repeated"] == 1
    assert counts.get("control_restarted", 0) == restarts
    assert len(found) == len(expected) == 8
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.q, other.q, atol=1e-3)
        np.testing.assert_allclose(one.effort, other.effort, atol=0.02)
        np.testing.assert_array_equal(one.direction, other.direction)


@pytest.mark.slow
def test_a_pose_that_is_never_at_rest_is_an_error():
    text = r"pose 3 of 8, 3 attempts: change of position = \S+ rad at rest; expected at most"
    with pytest.raises(InvalidValue, match=text):
        measured_with(lambda driver, cycle: pushed(driver, cycle, last=np.inf))


@pytest.mark.parametrize("name", PAYLOADS)
def test_joints_that_relax_do_not_change_the_gravity_torque(name):
    actual = rough(load_arm(name).with_payload(PAYLOADS[name], CENTER))
    nominal = with_model_error(load_arm(name), mass=5.0)
    poses, random = static_poses(actual, poses_of(name), noise=1e-4), np.random.default_rng(1)
    relaxed = []
    for one, other in zip(poses[::2], poses[1::2], strict=True):
        rest = random.uniform(0.0, 1.5, actual.nv) * coulomb(actual)  # friction f to -f / 2
        relaxed += [replace(p, effort=p.effort - p.direction * rest) for p in (one, other)]
    fit = calibrate_gravity(nominal, relaxed)
    new = random_configurations(actual, 40, 11)
    error = np.abs(torques(actual, new) - torques(fit.identified, new)).max(axis=0)
    before = np.abs(torques(actual, new) - torques(nominal, new)).max()
    assert error.max() < 0.02 * before
    assert (error <= 4 * fit.effort_error + 1e-9).all()


def test_pauses_between_pairs_have_any_friction():
    actual = rough(five_dof().with_payload(0.2))
    poses = static_poses(actual, poses_of("five_dof"))
    exact = calibrate_gravity(five_dof(), poses)
    q = random_configurations(actual, 4, 3)
    pauses = [StaticPose(x, gravity(actual, x), np.sign(x)) for x in q]
    fit = calibrate_gravity(
        five_dof(), [*poses[:7], *pauses, *poses[7:], replace(pauses[0], q=q[1])]
    )
    new = random_configurations(actual, 40, 11)
    error = np.abs(torques(actual, new) - torques(fit.identified, new)).max(axis=0)
    assert (error <= 4 * exact.effort_error + 1e-9).all()
    np.testing.assert_allclose(fit.coulomb, exact.coulomb, rtol=0.02)


# Exactness -------------------------------------------------------------------------------------


@settings(max_examples=examples(12), deadline=None)
@given(
    st.sampled_from(tuple(PAYLOADS)),
    st.floats(-20, 20),
    st.floats(0, 0.5),
    st.lists(st.floats(-0.3, 0.3), min_size=6, max_size=6),
)
def test_efforts_without_noise_give_exact_gravity_torques(name, error, payload, offset):
    actual = rough(load_arm(name).with_payload(payload, CENTER))
    nominal = with_model_error(load_arm(name), mass=error)
    size = np.abs(torques(actual, poses_of(name))).max()
    offset = size * np.array(offset[: actual.nv])
    fit = calibrate_gravity(nominal, static_poses(actual, poses_of(name), noise=0.0, offset=offset))
    new = random_configurations(actual, 30, 13)
    np.testing.assert_allclose(torques(fit.identified, new), torques(actual, new), atol=1e-5 * size)
    np.testing.assert_allclose(fit.coulomb, coulomb(actual), atol=1e-5 * size)
    for body in fit.parameters[: 10 * actual.nv].reshape(-1, 10):
        assert body[0] > 0
        assert is_consistent(body) or name == "two_link"


def test_a_heavy_load_leaves_every_body_consistent():
    arm = load_arm("so101")
    fit = calibrate_gravity(arm, static_poses(arm.with_payload(2.0), poses_of("so101"), noise=0.1))
    assert all(is_consistent(body) for body in fit.parameters[:60].reshape(6, 10))


def test_position_errors_of_a_servo_are_efforts():
    actual = rough(load_arm("so101").with_payload(0.1))
    stiffness = np.linspace(5.0, 15.0, 6)
    poses = static_poses(actual, poses_of("so101"))
    servo = [
        StaticPose.of_servo(p.q, p.q + p.effort / stiffness, stiffness, p.approached) for p in poses
    ]
    for own, other in zip(poses, servo, strict=True):
        np.testing.assert_allclose(own.effort, other.effort, atol=1e-12)
    one, two = (calibrate_gravity(load_arm("so101"), p) for p in (poses, servo))
    np.testing.assert_allclose(one.parameters, two.parameters, rtol=1e-6, atol=1e-9)


def test_without_directions_friction_is_an_error():
    actual = rough(five_dof().with_payload(0.2))
    poses = [replace(p, approached=None) for p in static_poses(actual, poses_of("five_dof"))]
    random = np.random.default_rng(1)
    stuck = [
        StaticPose(p.q, gravity(actual, p.q) + random.uniform(-1, 1, 5) * coulomb(actual))
        for p in poses
    ]
    fit = calibrate_gravity(five_dof(), stuck)
    both = calibrate_gravity(five_dof(), static_poses(actual, poses_of("five_dof")))
    assert {f"{joint}.coulomb" for joint in actual.joint_names} <= set(fit.undetermined)
    np.testing.assert_array_equal(fit.coulomb, coulomb(five_dof()))
    assert (fit.effort_error > 1.5 * both.effort_error)[1:].all()
    new = random_configurations(actual, 40, 11)
    error = np.abs(torques(actual, new) - torques(fit.identified, new)).max(axis=0)
    assert (error <= 4 * fit.effort_error + 1e-9).all()


def test_one_side_does_not_determine_the_friction():
    actual = rough(five_dof())
    fit = calibrate_gravity(five_dof(), static_poses(actual, poses_of("five_dof"), sides=(1.0,)))
    assert {"R1.offset", "R1.coulomb"} <= set(fit.undetermined)


# Result ----------------------------------------------------------------------------------------


def test_a_fit_names_what_poses_do_not_show_and_gives_an_arm_and_a_urdf():
    arm = five_dof()
    actual = rough(arm.with_payload(0.2))
    fit = calibrate_gravity(arm, static_poses(actual, poses_of("five_dof")))
    assert {"R1.m", "R1.viscous", "R3.armature", "R2.Izz"} <= set(fit.undetermined)
    assert "R2.coulomb" not in fit.undetermined
    left = [name in fit.undetermined for name in fit.base.names]
    np.testing.assert_array_equal(np.isinf(fit.deviation), left)
    kept = slice(50, 60)
    np.testing.assert_array_equal(fit.parameters[kept], nominal_parameters(arm)[kept])
    np.testing.assert_allclose(fit.sag(2.0), fit.effort_error / 2)
    np.testing.assert_allclose(fit.sag_before([1, 2, 3, 4, 5])[1], fit.effort_error_before[1] / 2)
    text = identified_urdf(
        arm, fit.parameters, deviations=fit.deviation, date="2026-01-01", sources=["poses"]
    )
    again = parse_arm(text)
    new = random_configurations(arm, 20, 1)
    np.testing.assert_allclose(torques(again, new), torques(fit.identified, new), atol=1e-8)


# Poses -----------------------------------------------------------------------------------------


@pytest.mark.quick(1)
@pytest.mark.parametrize("name", [*PAYLOADS, "seven_dof_can"])
def test_chosen_poses_are_well_conditioned_and_within_limits(name):
    arm = load_arm(name)
    poses = choose_poses(arm, 10, seed=3)
    assert poses.shape == (10, arm.nv)
    delta = approach_distance(arm)
    assert (poses - delta >= arm.lower).all()
    assert (poses + delta <= arm.upper).all()
    assert (np.abs(torques(arm, poses)) <= 0.8 * arm.effort_limit).all()
    collision = SelfCollision(arm, 1e-3, arm.configuration("initial"))
    assert not collision.any_of(poses)
    fit = calibrate_gravity(arm, static_poses(rough(arm), poses))
    assert fit.condition < 30
    random = random_configurations(arm, 10, 5)
    signed = np.repeat([[1.0], [-1.0]], 10, axis=0) * np.ones(arm.nv)
    other = pose_condition(static_rows(arm, np.tile(random, (2, 1)), signed), fit.base)
    assert fit.condition < other
    np.testing.assert_array_equal(choose_poses(arm, 10, seed=3), poses)


# Rejections ------------------------------------------------------------------------------------


def test_too_few_poses_are_rejected():
    arm = rough(five_dof())
    with pytest.raises(InvalidValue, match=r"efforts = 15 of 3 poses; expected at least 3\d"):
        calibrate_gravity(five_dof(), static_poses(arm, poses_of("five_dof"))[:3])
    with pytest.raises(InvalidValue, match="poses = 0"):
        calibrate_gravity(five_dof(), [])


@pytest.mark.quick(1)
@pytest.mark.parametrize("name", ["two_link", "so101"])
def test_fewer_poses_than_the_fit_requires_are_not_chosen(name):
    arm = load_arm(name)
    least = least_pose_count(arm)
    fit = calibrate_gravity(arm, static_poses(rough(arm), choose_poses(arm, least)))
    assert np.isfinite(fit.condition)
    with pytest.raises(InvalidValue, match=r"gravity calibration: efforts = .*measure more poses"):
        calibrate_gravity(arm, static_poses(rough(arm), poses_of(name)[: least - 1]))
    text = f"count of poses of arm '{name}' = {least - 1}; expected an integer of at least {least}"
    with pytest.raises(InvalidValue, match=text):
        choose_poses(arm, least - 1)


def test_poses_with_an_effort_at_its_limit_are_not_used():
    arm = five_dof()
    poses = static_poses(rough(arm), poses_of("five_dof"))
    limit = arm.effort_limit
    full = [StaticPose(poses[k].q, np.sign(poses[k].effort) * limit) for k in (2, 5)]
    saturated = [*poses[:2], full[0], *poses[2:], full[1]]
    fit = calibrate_gravity(arm, saturated)
    assert fit.saturated == (2, len(saturated) - 1)
    np.testing.assert_array_equal(fit.parameters, calibrate_gravity(arm, poses).parameters)
    with pytest.raises(InvalidValue, match=r"effort at its limit = all 6 .* less load"):
        calibrate_gravity(arm, full * 3)
    with pytest.raises(InvalidValue, match=r"without the 2 saturated ones; expected at least"):
        calibrate_gravity(arm, [*full, *poses[:3]])


def test_written_poses_are_read_again(tmp_path):
    arm = five_dof()
    poses = static_poses(rough(arm), poses_of("five_dof"))
    file = write_poses(arm, poses, tmp_path / "poses.csv")
    assert is_pose_table(file)
    found = read_poses(arm, file)
    assert len(found) == len(poses)
    for one, other in zip(found, poses, strict=True):
        for name in ("q", "effort", "direction"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    with pytest.raises(RecordingError, match=r"expected also position.J1.*pass the arm"):
        read_poses(load_arm("two_link"), file)


def test_similar_poses_are_rejected():
    arm = rough(five_dof())
    near = poses_of("five_dof")[0] + np.random.default_rng(0).uniform(-0.03, 0.03, (12, 5))
    with pytest.raises(InvalidValue, match="condition number of the poses"):
        calibrate_gravity(five_dof(), static_poses(arm, near))


def test_poses_of_another_arm_are_rejected():
    poses = static_poses(rough(load_arm("two_link")), poses_of("two_link"))
    with pytest.raises(InvalidValue, match="joints = 2; expected 5 of arm 'five_dof': R1"):
        calibrate_gravity(five_dof(), poses)
    so101 = load_arm("so101")
    degrees = [
        StaticPose(np.degrees(p.q), p.effort) for p in static_poses(so101, poses_of("so101"))
    ]
    with pytest.raises(InvalidValue, match=r"pose 0: joint '.*; check the order of the joints"):
        calibrate_gravity(so101, degrees)


def test_an_arm_without_gravity_torques_is_rejected():
    arm = load_arm("two_link").with_gravity((0, 0, 0))
    with pytest.raises(InvalidValue, match="gravity field"):
        choose_poses(arm)
    with pytest.raises(InvalidValue, match="gravity field"):
        calibrate_gravity(arm, static_poses(arm, poses_of("two_link")))


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (([0, 0], [1]), "effort"),
        (([0, np.nan], [1, 1]), "q"),
        (([0, 0], [1, 1], [1, 0.5]), "approached"),
    ],
)
def test_invalid_poses_are_rejected(values, text):
    with pytest.raises(InvalidValue, match=text):
        StaticPose(*values)


def test_invalid_arguments_are_rejected():
    with pytest.raises(InvalidValue, match="stiffness = -1"):
        StaticPose.of_servo([0, 0], [0, 0], -1.0)
    with pytest.raises(InvalidValue, match="configurations within effort limits"):
        choose_poses(five_dof().with_payload(5000.0))
