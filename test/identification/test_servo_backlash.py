"""Backlash in the fit of servos: recovery, arms without it, joints whose load keeps its sign."""

import math
from dataclasses import replace

import numpy as np
import pytest

from arm_dynamics import load_arm
from arm_dynamics.batch.rollouts.closed_loop import rollout_closed_loop
from arm_dynamics.cli import audit, identify
from arm_dynamics.core import Command, InvalidValue, State
from arm_dynamics.identification import identify_servos, servo_loops
from arm_dynamics.identification.servos.servo_backlash import INJECTION_TIME, with_contact
from arm_dynamics.identification.servos.servo_fit import CONTACT_ERROR, ServoFit
from arm_dynamics.identification.servos.servo_simulation import ServoSimulation
from arm_dynamics.identification.servos.servo_variation import ServoVariation
from arm_dynamics.recording import MotionData
from arm_dynamics.simulation.plant import Plant

JOINTS = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper")
STEP = 2 * math.pi / 4096
RATE = 50


def one_joint(name):
    return load_arm("so101", [joint for joint in JOINTS if joint != name])


PAN = one_joint("shoulder_pan")


def hidden(arm, seed):
    """Return the hidden parameters θ without backlash."""
    size = len(ServoVariation.of(arm, servo_loops(arm)).names)
    theta = np.clip(0.4 * np.random.default_rng(seed).normal(size=size), -0.8, 0.8)
    theta[-1] = 0.4
    return theta


def recorded(arm, backlash, center=0.0, amplitude=1.15, seed=1, seconds=20.0):
    """Return a motion with hidden friction, gain and backlash, in the steps of the encoder.

    The teeth are softer than those of the fit; the time step is 0.1 ms.
    """
    variation, rng = ServoVariation.of(arm, servo_loops(arm)), np.random.default_rng(seed)
    theta = hidden(arm, rng)
    time = np.arange(int(seconds * RATE)) / RATE
    w, phase = rng.uniform((0.5, 0.0), (3.5, 6.3), (5, 2)).T
    waves = np.sin(w * time[:, None] + phase).mean(axis=1) * np.minimum(1, time)
    goals = np.round((center + amplitude * waves[:, None]) / STEP) * STEP
    varied, delay = variation.varied(theta[None])
    plant = variation.arm
    if backlash:
        plant = plant.with_motor(
            arm.joint_names[0], backlash=backlash, gear_stiffness=3000.0, gear_damping=2.0
        )
    motion = MotionData(arm.joint_names, time, np.tile(goals[0], (time.size, 1)), None)
    motion = replace(motion, command_position=goals)
    servo = ServoSimulation(plant, variation.loops, motion)
    servo._steps = 10
    (q,) = servo.positions(varied, delay)
    q = np.round((q + 1e-4 * rng.normal(size=q.shape)) / STEP) * STEP
    return replace(motion, q=q).part(slice(RATE, None))  # without the start at rest


def found_backlash(result):
    return [one for one in result.quantities if one.name.endswith("backlash")]


@pytest.mark.parametrize("resistance", [0.4, 2.5])
@pytest.mark.parametrize("limit", [np.inf, 0.8])
def test_a_motor_without_a_current_limit_has_none_in_the_fitted_arm(limit, resistance):
    arm = PAN.with_motor("shoulder_pan", current_limit=limit, resistance=resistance)
    variation = ServoVariation.of(arm, servo_loops(arm))
    exists = dict(zip(variation.names, variation.exists, strict=True))
    assert exists["shoulder_pan.current_limit"] == np.isfinite(limit)
    found = variation.with_free(variation.exists).arm_of(np.zeros(len(exists)))
    assert found.actuators[0].constants["current_limit"] == pytest.approx(limit, rel=1e-12)


def test_all_backlash_is_simulated_by_one_kernel():
    """Its constants are the same for all fits; an arm with rigid gears remains one."""
    rigid, q = ServoVariation.of(PAN, servo_loops(PAN)), np.zeros((1, 1))
    small, large = (
        rigid.with_backlash(with_contact(rigid.arm, {0: play}, q), [0]) for play in (0.001, 0.04)
    )
    assert small.arm.actuators[0].constants != large.arm.actuators[0].constants
    motors = [x.simulated_arm.actuators[0].constants for x in (small, large, rigid)]
    assert motors[0] == motors[1]
    assert [motor["backlash"] > 0 for motor in motors] == [True, True, False]


def test_prediction_errors_show_backlash_where_output_errors_do_not():
    """The loop of seed 3 is stiff and oscillates in the gap: two simulations soon differ."""
    motion, theta = recorded(PAN, 0.02, seed=3), hidden(PAN, seed=3)
    rigid = ServoVariation.of(PAN, servo_loops(PAN))
    variation = rigid.with_backlash(with_contact(rigid.arm, {0: 0.02}, motion.q), [0])
    cases = np.tile(theta, (3, 1))
    cases[:, rigid.backlash_entries[0]] = np.log([0.25, 1.0, 2.0])

    def rms(injection):
        residuals = ServoFit(variation, [motion], injection).residuals(cases)
        return np.sqrt(np.mean(residuals**2, axis=(1, 2)))

    output, prediction = rms(None), rms(INJECTION_TIME)
    assert output.argmin() == 0
    assert prediction[1] < 0.8 * min(prediction[0], prediction[2])


def test_no_backlash_is_found_in_a_rigid_gear():
    result = identify_servos(PAN, [recorded(PAN, 0.0)])
    assert all(one.value == 0 for one in found_backlash(result))
    assert result.notes[-1] == "backlash fitted: none"
    assert result.identified.actuators[0].constants["gear_stiffness"] == 0


@pytest.mark.slow
def test_a_joint_whose_load_keeps_its_sign_does_not_reveal_backlash():
    arm = one_joint("shoulder_lift")
    result = identify_servos(arm, [recorded(arm, 0.01, center=1.0, amplitude=0.4)])
    assert all(one.value == 0 for one in found_backlash(result))
    assert "not identifiable: shoulder_lift" in result.notes[-1]


@pytest.mark.slow
def test_hidden_backlash_is_found_and_written_into_the_urdf(tmp_path, capsys):
    """This motion determines it; some others do not (docs/identification_results.md)."""
    motion, path, output = recorded(PAN, 0.01, seed=5), tmp_path / "run.csv", tmp_path / "mine.urdf"
    np.savetxt(
        path, np.column_stack((motion.time, motion.q, motion.command_position)), delimiter=",",
        header="time,position.shoulder_pan,action.shoulder_pan", comments="",
    )  # fmt: skip
    locks = [word for joint in JOINTS[1:] for word in ("--lock", joint)]
    assert identify.run(["so101", str(path), "--output", str(output), *locks]) == 0
    text = capsys.readouterr().out
    assert "shoulder_pan.backlash" in text
    assert "backlash fitted: shoulder_pan" in text
    assert audit.run([str(output)]) == 0
    arm = load_arm(output, JOINTS[1:])
    constants = arm.actuators[0].constants
    assert constants["backlash"] == pytest.approx(0.01, rel=0.4)
    assert constants["rotor_inertia"] > 0
    plant, state = Plant(arm), State.of([0.0])
    plant.require_stable(state.q, 1e-3)
    state = plant.step(state, Command.checked("voltage", [2.0], 1), 1e-3, 200)
    assert state.q[0] > 0.01
    (found,) = found_backlash(identify_servos(PAN, [motion]))
    assert found.deviation > 100 * CONTACT_ERROR
    assert abs(100 * math.log(found.value / 0.01)) < 3 * found.deviation


def test_backlash_varies_between_the_rollouts_of_an_arm_that_has_it():
    arm = PAN.with_motor("shoulder_pan", backlash=0.01, gear_stiffness=1e3, gear_damping=1.0)
    variation = ServoVariation.of(arm, servo_loops(arm))
    table, start = np.full((200, 1), 0.3), np.zeros((1, 4))

    def end(one, **vary):
        return rollout_closed_loop(
            one, start, variation.loops.controller(one), table, 5e-4, 1e-3, 0.2,
            interface="voltage", vary=vary, outputs=("q",),
        ).q[:, -1, 0]  # fmt: skip

    varied = end(arm, **{"motor.backlash": np.array([[0.005], [0.02]])})
    each = [end(arm.with_motor("shoulder_pan", backlash=play))[0] for play in (0.005, 0.02)]
    np.testing.assert_allclose(varied, each, rtol=1e-9)
    assert varied[0] != varied[1]
    with pytest.raises(InvalidValue, match="backlash = 0 rad; expected above 0"):
        end(arm, **{"motor.backlash": np.array([[0.0], [0.02]])})
