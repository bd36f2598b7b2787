"""Servos with positions alone: recovery of hidden values, position errors, readers, rejections."""

import math
from dataclasses import replace

import numpy as np
import pytest

from arm_dynamics import load_arm
from arm_dynamics.cli import compare, identify
from arm_dynamics.core import Command, ConfigError, InvalidValue, State, UnknownName
from arm_dynamics.dynamics import gravity
from arm_dynamics.hardware.emulation.emulated_arm import EmulatedArm
from arm_dynamics.hardware.emulation.emulated_motors import Shaft
from arm_dynamics.hardware.emulation.feetech_servos import EmulatedFeetech
from arm_dynamics.identification import (
    compare_servos,
    identify_servos,
    nominal_parameters,
    servo_loops,
)
from arm_dynamics.identification.servos import servo_fit, servo_identification
from arm_dynamics.identification.servos.position_loops import with_servo_gains
from arm_dynamics.identification.servos.servo_fit import ServoFit, servo_windows
from arm_dynamics.identification.servos.servo_simulation import ServoSimulation
from arm_dynamics.identification.servos.servo_variation import ServoVariation
from arm_dynamics.model.load import parse_arm
from arm_dynamics.recording import MotionData, load_motion
from arm_dynamics.recording.recorder import StateLog
from arm_dynamics.safety.events import Events

LOCKED = ("shoulder_pan", "wrist_flex", "wrist_roll", "gripper")
ARM = load_arm("so101", LOCKED)
STEP = 2 * math.pi / 4096
QUANTIZATION = STEP / math.sqrt(12)
EMULATED_GAIN = 0.032 / STEP * 12.0  # duty per step of the emulated servos, 12 V
RATE = 50


def targets(seed, seconds, arm=ARM):
    """Return stamps and target positions: a sum of sines in the steps of the servo."""
    rng = np.random.default_rng(seed)
    time = np.arange(int(seconds * RATE)) / RATE
    w, phase = rng.uniform((0.5, 0.0), (3.5, 6.3), (5, arm.nv, 2)).T
    waves = np.sin(w.T[:, None] * time[None, :, None] + phase.T[:, None]).mean(axis=0)
    q = 0.6 * waves * np.minimum(1, time)[:, None] * (arm.upper - arm.lower) / 2
    return time, np.round(q / STEP) * STEP


def emulated(arm, seed, seconds):
    """Return the motion of an arm with emulated STS3215 servos, in steps of 12 bits."""
    time, goals = targets(seed, seconds)
    motors = EmulatedFeetech([Shaft(i + 1, "sts3215") for i in range(arm.nv)])
    body = EmulatedArm(arm, motors, goals[0], step=1e-3, hands=False)
    for servo in motors.servos:
        servo.write(40, b"\1")
    q = []
    for now, goal in zip(time, goals, strict=True):
        body.advance(now + 1e-9)
        q.append([servo.steps() * STEP - math.pi for servo in motors.servos])
        for servo, x in zip(motors.servos, goal, strict=True):
            servo.put(servo.memory, 42, round(x / STEP) + 2048)
    return MotionData(arm.joint_names, time, np.array(q), None, command_position=goals)


def hidden():
    """Return the arm with other friction, rotors and an unknown payload."""
    arm = ARM.with_payload(0.1)
    for joint, factor in zip(arm.joint_names, (2.0, 1.5), strict=True):
        known = arm.actuators[arm.index(joint)].constants
        arm = arm.with_motor(
            joint,
            coulomb_friction=factor * known["coulomb_friction"],
            rotor_inertia=(1.7 - factor / 2) * known["rotor_inertia"],
        )
    return arm


@pytest.fixture(scope="module")
def actual_arm():
    return hidden()


@pytest.fixture(scope="module")
def motions(actual_arm):
    return emulated(actual_arm, 1, 14.0), emulated(actual_arm, 2, 8.0)


@pytest.fixture(scope="module")
def result(motions):
    return identify_servos(ARM, [motions[0]], [motions[1]])


def test_emulated_servos_are_predicted_to_the_quantization_of_their_positions(result):
    assert (result.after.rms < 2 * QUANTIZATION).all()
    assert (result.after.rms < 0.5 * result.before.rms).all()


def test_gains_friction_rotors_and_payload_of_emulated_servos_are_found(result, actual_arm):
    nv = ARM.nv
    np.testing.assert_allclose(result.loop_gain, EMULATED_GAIN, rtol=0.1)
    assert result.delay == pytest.approx(1 / RATE, abs=3e-3)  # a goal acts until the next sample
    actual = np.array(nominal_parameters(actual_arm))
    for first in (10 * nv, 12 * nv):  # rotors, Coulomb friction
        own = slice(first, first + nv)
        assert (
            np.abs(result.parameters[own] - actual[own])
            < 4 * result.deviation[own] + 0.05 * actual[own]
        ).all()
    found = {one.name: one for one in result.quantities}
    for k, joint in enumerate(ARM.joint_names):
        rotor = found[f"{joint}.armature"]
        assert np.isfinite(rotor.deviation)
        expected = rotor.value * rotor.deviation / 100
        assert result.deviation[10 * nv + k] == pytest.approx(expected, rel=0.02)
    assert np.isinf(result.deviation[13 * nv :]).all()  # no motion of servos shows effort offsets
    q = np.random.default_rng(0).uniform(ARM.lower, ARM.upper, (20, nv))
    before, after = (
        np.abs([gravity(arm, x) - gravity(actual_arm, x) for x in q]).max()
        for arm in (ARM, result.identified)
    )
    assert after < 0.2 * before


def test_pauses_of_a_busy_machine_do_not_divide_a_recording():
    time = np.arange(2500) / 250
    q = np.sin(time)[:, None] * np.ones(ARM.nv)
    whole = MotionData(ARM.joint_names, time, q, None, command_position=q)

    def spans(pause):
        used = np.ones(time.size, dtype=bool)
        used[1250 : 1250 + round(250 * pause)] = False
        return [np.ptp(window.time) for window in servo_windows([whole.part(used)])]

    assert spans(0.09) == pytest.approx([time[-1]])
    assert spans(0.12) == pytest.approx([4.996, 4.876], abs=1e-9)


PAYLOADS, FRICTIONS = (0.03, 0.1, 0.06, 0.2), (1.5, 0.6, 1.0, 2.5)


def simulated(arm, case):
    """Return the unknowns of a simulated arm of servos, their values and the motion.

    Payload and friction differ from case to case, and all other quantities within their tolerances.
    """
    variation, rng = ServoVariation.of(arm, servo_loops(arm)), np.random.default_rng(100 + case)
    names, sigma, own = np.array(variation.names), variation.sigma, variation.start
    theta = np.clip(0.5 * rng.normal(size=names.size), -1.2, 1.2)
    theta[-1] = rng.uniform(0.2, 0.8)
    dry = np.char.endswith(names, "coulomb")
    factor = FRICTIONS[(case + case // 4) % 4]
    theta[dry] = math.log(factor) / sigma[dry] + 0.2 * rng.normal(size=dry.sum())
    theta[-2] = math.log(PAYLOADS[case % 4] / own[-2]) / sigma[-2]
    time, goals = targets(case, 14.0, arm)
    rest = MotionData(arm.joint_names, time, np.tile(goals[0], (time.size, 1)), None)
    rest = replace(rest, command_position=goals)
    (q,) = ServoSimulation(variation.arm, variation.loops, rest).positions(
        *variation.varied(theta[None])
    )
    q = np.round((q + 1e-4 * rng.normal(size=q.shape)) / STEP) * STEP
    return variation, theta, replace(rest, q=q)


def errors_over_deviations(arm, cases):
    """Return the names of the determined quantities, and their errors over the deviations."""
    found = []
    for case in cases:
        variation, theta, motion = simulated(arm, case)
        actual = dict(zip(variation.names, variation.values(theta[None])[0], strict=True))
        fit = identify_servos(arm, [motion])
        limits = [one for one in fit.quantities if one.name.endswith("current_limit")]
        assert all(one.value < 1e3 for one in limits), "a motor without a limit has no quantity"
        found += [
            (one.name, 100 * math.log(one.value / actual[one.name]) / one.deviation)
            for one in fit.quantities[:-1]
            if one.is_determined
        ]
    return found


@pytest.mark.slow
def test_95_percent_of_the_errors_are_within_three_stated_deviations():
    cases = range(3)
    found = errors_over_deviations(load_arm("so101", LOCKED), cases)
    payloads = [abs(error) for name, error in found if name == "payload"]
    assert len(payloads) >= len(cases) - 1
    assert max(payloads) < 3
    errors = np.abs([error for _, error in found])
    assert len(errors) > 8 * len(cases)
    assert np.mean(errors < 3) >= 0.95


def test_the_deviations_contain_the_distance_to_the_minimum(monkeypatch):
    """After two steps the estimate is wrong by more than the deviations of the minimum."""
    monkeypatch.setattr(servo_fit, "STEPS", 2)
    variation, theta, motion = simulated(ARM, 3)
    fit = ServoFit(variation, [motion])
    found = fit.minimum(fit.first_guess(), turns=1)
    of_minimum, _ = fit.deviations(found)
    determined = of_minimum < servo_fit.UNDETERMINED
    error = np.abs(found - theta)[determined]
    assert (error > 3 * of_minimum[determined]).any()
    assert (error < 3 * np.sqrt(np.diag(fit.covariance))[determined]).all()


def test_a_current_limit_that_the_description_does_not_have_has_no_prior():
    variation = ServoVariation.of(ARM, servo_loops(ARM, ()))
    values = variation.values(np.zeros((1, len(variation.names))))[0]
    limited = ARM.with_motor(ARM.joint_names[0], current_limit=1.5)
    for arm, expected in ((ARM, math.nan), (limited, 1.5)):
        variation = ServoVariation.of(arm, servo_loops(arm, ()))
        rows = servo_identification._quantities(variation, values, np.full(values.size, 0.1))
        found = {one.name: one for one in rows}
        limit = found[f"{arm.joint_names[0]}.current_limit"]
        assert limit.prior == pytest.approx(expected, nan_ok=True)
        assert all(one.unit for one in rows)


def test_a_servo_recording_does_not_check_its_own_fit(motions):
    with pytest.raises(InvalidValue, match="motion and motion: two recordings are identical"):
        identify_servos(ARM, motions[:1], motions[:1])


@pytest.mark.slow
def test_residuals_that_the_model_does_not_explain_widen_the_deviations(result, motions):
    """A slow error of the positions, as of an elastic arm: each value is within 4 deviations."""
    motion = motions[0]
    wave = np.sin(2.0 * motion.time)[:, None] * motion.q[:, ::-1]
    disturbed = identify_servos(ARM, [replace(motion, q=motion.q + 0.01 * wave)], motions[1:])
    widths = []
    for one, other in zip(result.quantities, disturbed.quantities, strict=True):
        if one.is_determined and other.is_determined and one.name != "delay":
            shift = 100 * abs(math.log(other.value / one.value))
            assert shift < 4 * math.hypot(one.deviation, other.deviation), one.name
            widths.append(other.deviation / one.deviation)
    assert np.median(widths) > 1.5


def test_the_ratio_of_torque_constant_and_back_emf_is_not_assumed_known(result):
    """With a known ratio, damping by back-EMF would determine the scale of masses and friction."""
    found = {one.name: one for one in result.quantities}
    assert found["payload"].deviation > 3
    scale = found["payload"].value / 0.1, *result.loop_gain / EMULATED_GAIN
    widths = (
        found["payload"].deviation,
        *(found[f"{j}.loop_gain"].deviation for j in ARM.joint_names),
    )
    assert all(abs(100 * math.log(x)) < 3 * w for x, w in zip(scale, widths, strict=True))


def test_the_command_writes_a_urdf_that_predicts_another_recording(motions, tmp_path, capsys):
    paths = [tmp_path / f"run{k}.csv" for k in (1, 2)]
    for path, motion in zip(paths, motions, strict=True):
        heads = [f"{part}.{joint}" for part in ("position", "action") for joint in ARM.joint_names]
        np.savetxt(
            path, np.column_stack((motion.time, motion.q, motion.command_position)),
            delimiter=",", header=",".join(("time", *heads)), comments="",
        )  # fmt: skip
    output = tmp_path / "mine.urdf"
    locks = [word for joint in LOCKED for word in ("--lock", joint)]
    held_out = "--held-out", str(paths[1])
    files = "--output", str(output), "--report", str(tmp_path / "report.html")
    assert identify.run(["so101", str(paths[0]), *held_out, *files, *locks]) == 0
    printed = capsys.readouterr().out
    assert "mrad" in printed
    assert "shoulder_lift.loop_gain" in printed
    assert "measured and predicted position" in (tmp_path / "report.html").read_text()
    errors = {}
    for arm in ("so101", str(output)):
        assert compare.run([arm, str(paths[1]), *locks]) == 0
        rows = [line for line in capsys.readouterr().out.splitlines() if "mrad" in line]
        errors[arm] = [float(row.split("│")[-2].replace("%", "")) for row in rows]
    assert max(errors[str(output)]) < 0.2 * min(errors["so101"])
    found = servo_loops(load_arm(output, LOCKED)).gain
    np.testing.assert_allclose(found, EMULATED_GAIN, rtol=0.1)
    text = with_servo_gains(output.read_text(), ARM, 2 * found)
    np.testing.assert_allclose(servo_loops(parse_arm(text)).gain[1:3], 2 * found, rtol=1e-4)


def test_target_positions_are_recommended_if_efforts_are_predicted_poorly(
    motions, tmp_path, capsys
):
    """Of noise; half of the seeds give one that is correlated with opposite efforts."""
    motion, path = motions[1], tmp_path / "run.csv"
    noise = np.random.default_rng(1).normal(size=motion.q.shape)
    parts = {"position": motion.q, "action": motion.command_position, "effort": noise}
    heads = [f"{part}.{joint}" for part in parts for joint in ARM.joint_names]
    np.savetxt(
        path, np.column_stack((motion.time, *parts.values())),
        delimiter=",", header=",".join(("time", *heads)), comments="",
    )  # fmt: skip
    locks = [word for joint in LOCKED for word in ("--lock", joint)]
    assert identify.run(["efforts", "so101", str(path), "--no-simulation", *locks]) == 1
    assert "arm-dynamics identify servos --servo NAME" in capsys.readouterr().out


# Readers ---------------------------------------------------------------------------------------


def test_recordings_of_hardware_have_the_target_before_each_state(tmp_path):
    log = StateLog(ARM, tmp_path / "run", Events())
    q = 0.3 * np.sin(np.arange(30)[:, None] * (0.1, 0.2))
    for k, row in enumerate(q):
        log.state(1 + 0.01 * k, State(1 + 0.01 * k, row, 0 * row, np.full(2, np.nan)))
        log.command(1 + 0.01 * k, Command.checked("position", row + 0.1, 2))
    log.close()
    motion = load_motion(ARM, tmp_path / "run")
    assert motion.effort is None
    assert np.isnan(motion.command_position[0]).all()
    np.testing.assert_allclose(motion.command_position[1:], q[:-1] + 0.1, atol=1e-12)


def test_a_target_is_held_until_the_next_one():
    time, goals = targets(1, 3.0)
    motion = MotionData(ARM.joint_names, time, goals, None, command_position=goals)
    delays = np.array([0.0, 0.012, -0.012])
    table = ServoSimulation(ARM, servo_loops(ARM), motion)._reference(delays)
    per_sample = table.shape[1] // (time.size - 1)
    held = np.repeat(goals[1:], per_sample, axis=0)
    np.testing.assert_allclose(table[0], held, atol=1e-12)
    late = round(0.012 * RATE * per_sample)
    np.testing.assert_allclose(table[1, late:], held[:-late], atol=1e-12)
    np.testing.assert_allclose(table[2, :-late], held[late:], atol=1e-12)
    assert (goals[0] != goals[1]).any()
    assert (goals[-1] != goals[-2]).any()
    np.testing.assert_allclose(table[1, :late], np.tile(goals[0], (late, 1)), atol=1e-12)
    np.testing.assert_allclose(table[2, -late:], np.tile(goals[-1], (late, 1)), atol=1e-12)


# Rejections ------------------------------------------------------------------------------------


def at_rest(motion):
    return replace(motion, q=np.tile(motion.q[0], (len(motion.time), 1)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda m: replace(m, command_position=None),
            "no efforts or target positions in the recording",
        ),
        (at_rest, r"motion = 0 rad; expected more than 0.05 rad"),
        (
            lambda m: replace(m, command_position=np.degrees(m.command_position)),
            r"median distance of joint 'shoulder_lift' from its target = .* units of the targets",
        ),
        (lambda m: m.part(slice(0, 60)), "expected at least 2 s without a gap of 0.1 s; record"),
        (
            lambda m: replace(m, command_position=m.command_position * (np.nan, 1.0)),
            "no target positions of joints shoulder_lift in the recording",
        ),
    ],
)
def test_recordings_that_determine_nothing_are_rejected(motions, change, message):
    with pytest.raises(InvalidValue, match=message):
        identify_servos(ARM, [change(motions[0])], [motions[1]])


def test_arms_without_known_servos_are_rejected(motions):
    with pytest.raises(InvalidValue, match="motions = 0; expected at least one recording"):
        identify_servos(ARM, [])
    with pytest.raises(InvalidValue, match="actuator = ideal; expected dc_motor"):
        servo_loops(load_arm("two_link"), ["sts3215"])
    with pytest.raises(ConfigError, match=r"servos = not named in the URDF; .* --servo NAME"):
        servo_loops(load_arm("five_dof"))
    with pytest.raises(UnknownName, match="DM8009"):
        servo_loops(load_arm("seven_dof_can"))
    with pytest.raises(UnknownName, match="joint of arm 'so101' 'J9'"):
        servo_loops(ARM, ["J9=sts3215"])
    gains = servo_loops(ARM, ["elbow_flex=XM430-W350"]).gain
    assert gains[0] == servo_loops(ARM).gain[0] != gains[1]


def test_positions_alone_are_not_compared(motions):
    with pytest.raises(
        InvalidValue, match=r"no efforts or target positions in the .* record efforts"
    ):
        compare_servos(ARM, replace(motions[0], command_position=None))
