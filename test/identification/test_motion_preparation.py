"""Preparation of recorded motion: segments, resampling, delay, quality of the motion."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arm_dynamics import load_arm
from arm_dynamics.core import InvalidValue
from arm_dynamics.identification import nominal_parameters, prepare_motion, regressor
from arm_dynamics.recording import MotionData
from arm_dynamics.recording.motions.motion_data import GAP_PERIODS

ARM = load_arm("two_link")
RATE = 500.0


def waves(time):
    """Return positions, velocities and accelerations (n, 2) of two joints."""
    parts = np.zeros((3, len(time), 2))
    for joint, terms in enumerate(([(0.6, 0.3), (0.3, 0.7)], [(0.5, 0.4), (0.4, 1.1)])):
        for size, frequency in terms:
            w = 2 * np.pi * frequency
            parts[0, :, joint] += size * np.sin(w * time + joint)
            parts[1, :, joint] += size * w * np.cos(w * time + joint)
            parts[2, :, joint] -= size * w**2 * np.sin(w * time + joint)
    return parts


def motion(time, *, delay=0.0, noise=0.0, seed=0):
    """Return a recording with late efforts, noisy positions [rad] and 16 bits per turn."""
    random = np.random.default_rng(seed)
    q = waves(time)[0]
    if noise:
        bit = 2 * np.pi / 2**16
        q = bit * np.round((q + noise * random.normal(size=q.shape)) / bit)
    past = waves(time - delay)
    effort = regressor(ARM, *past) @ nominal_parameters(ARM)
    effort += 0.01 * noise * 1e4 * effort.std(axis=0) * random.normal(size=effort.shape)
    return MotionData(ARM.joint_names, time, q, effort, "run")


TIME = np.arange(0, 20, 1 / RATE)


def effort_error(prepared):
    """Return the RMS error (nv,) of the exact parameters over the RMS effort."""
    equations = prepared.equations
    error = equations.effort - equations.rows(np.zeros(2, dtype=int)) @ nominal_parameters(ARM)
    counted = equations.counted(np.zeros(2, dtype=int))
    return np.sqrt(
        np.sum(counted * error**2, axis=0) / np.sum(counted * equations.effort**2, axis=0)
    )


def test_velocities_and_the_delay_of_a_noisy_motion():
    prepared = prepare_motion(ARM, motion(TIME, delay=0.005, noise=1e-4))
    assert prepared.delay == pytest.approx(0.005, abs=5e-4)
    exact = waves(prepared.time)[1]
    assert np.abs(prepared.v - exact).max() < 0.002 * np.abs(exact).max()
    assert effort_error(prepared).max() < 0.01
    assert any("ms, removed" in note and "± 0.0" in note for note in prepared.notes)


def test_efforts_that_are_not_measured_do_not_count():
    """A drive without current sensor reports 0; exact equations would outweigh all others."""
    measured = motion(TIME)
    prepared = prepare_motion(ARM, replace(measured, effort=measured.effort * [1.0, 0.0]))
    assert prepared.equations.valid[:, 0].any()
    assert not prepared.equations.valid[:, 1].any()
    assert any("efforts of joints J2 = constant" in note for note in prepared.notes)


@given(st.integers(0, 2**32 - 1), st.floats(0.0, 0.45), st.floats(100.0, 1000.0))
def test_unequal_stamps_are_resampled(seed, jitter, rate):
    time = np.arange(0, 12, 1 / rate)
    time += jitter / rate * np.random.default_rng(seed).uniform(-1, 1, time.size)
    prepared = prepare_motion(ARM, motion(time), 8.0, 0.0)
    steps = np.diff(prepared.time)
    np.testing.assert_allclose(steps, steps[0], rtol=1e-6)
    np.testing.assert_allclose(prepared.v, waves(prepared.time)[1], atol=0.01)
    assert effort_error(prepared).max() < 0.01


def test_motion_is_not_bridged_over_a_gap():
    keep = (TIME < 8) | (TIME > 12)
    data = motion(TIME[keep], noise=1e-4)
    assert [len(part.time) for part in data.segments()] == [4000, 3999]
    prepared = prepare_motion(ARM, data, 8.0, 0.0)
    assert not ((prepared.time > 8) & (prepared.time < 12)).any()
    assert effort_error(prepared).max() < 0.005
    blocks = prepared.equations.block
    assert set(blocks[prepared.time < 8]).isdisjoint(blocks[prepared.time > 12])
    assert any("2 segments between gaps" in note for note in prepared.notes)


def test_short_gaps_are_interpolated_and_short_segments_dropped():
    near = np.delete(TIME, slice(4000, 4000 + int(GAP_PERIODS) - 1))
    assert len(motion(near).segments()) == 1
    far = TIME[(TIME < 8) | ((TIME > 9) & (TIME < 9.01)) | (TIME > 10)]
    assert len(motion(far).segments()) == 2
    short = TIME[(TIME < 8) | ((TIME > 9) & (TIME < 9.3)) | (TIME > 10)]
    notes = prepare_motion(ARM, motion(short), 8.0, 0.0).notes
    assert any("the first sample; segments too short for the filter = 1" in note for note in notes)


def test_saturated_efforts_do_not_count_and_exceeded_limits_are_not_limits():
    data = motion(TIME)
    limit = 0.3 * np.abs(data.effort).max(axis=0)
    joints = [replace(j, effort=float(x)) for j, x in zip(ARM.joints, limit, strict=True)]
    arm = replace(ARM, joints=tuple(joints))
    cut = replace(data, effort=np.clip(data.effort, -limit, limit))
    assert prepare_motion(arm, data, 8.0, 0.0).equations.valid.all()
    assert not prepare_motion(arm, cut, 8.0, 0.0).equations.valid[:, 0].all()


def test_the_dry_friction_of_a_joint_at_rest_is_unknown_and_at_a_reversal_without_presliding():
    """Whatever the model of the friction: at rest it is anywhere between its bounds."""
    moving = motion(TIME, delay=0.0)
    q = moving.q.copy()
    start, end = 8.0, 11.0  # the first joint rests
    at_rest = (start < TIME) & (end > TIME)
    smooth = np.clip((TIME - start) / 0.5, 0, 1), np.clip((end - TIME) / 0.5, 0, 1)
    fraction = np.where(at_rest, np.minimum(*smooth), 0.0) ** 2
    q[:, 0] = (1 - fraction) * q[:, 0] + fraction * q[np.argmax(at_rest), 0]
    prepared = prepare_motion(ARM, replace(moving, q=q), 8.0, 0.0)
    for model in range(len(prepared.equations.presliding)):
        counted = prepared.equations.counted(np.array([model, model]))
        resting = (start + 0.8 < prepared.time) & (prepared.time < end - 0.8)
        assert not counted[resting, 0].any()
        assert counted[resting, 1].all() or model == 0
        away = (prepared.time < start - 0.5) | (prepared.time > end + 0.5)
        assert counted[away].all() or model == 0
    # The filter of 8 Hz spreads a reversal over a period before and after.
    reversals = TIME[1:][np.diff(np.sign(waves(TIME)[1][:, 1])) != 0]
    distance = np.abs(prepared.time[:, None] - reversals).min(axis=1)
    counted = prepared.equations.counted(np.zeros(2, dtype=int))[:, 1]
    assert not counted[distance < 0.11].any()
    assert counted[distance > 0.14].all()


def test_the_begin_and_the_end_of_all_arrays_are_held_out():
    data = replace(motion(TIME), v=waves(TIME)[1], notes=("a note",))
    part = data.part(slice(10, 20), "end")
    assert part.source == "run (end)"
    np.testing.assert_array_equal(part.v, data.v[10:20])
    assert part.notes == data.notes
    assert part.current is None
    assert not part.q.flags.writeable


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"time": TIME[::-1]}, "run: time = 10000 values; expected at least 2, increasing"),
        ({"q": np.zeros((5, 2))}, r"run: q: shape = \(5, 2\); expected \(10000, 2\)"),
        ({"q": np.full((10000, 2), np.nan)}, "run: q = .nan nan. 0 s after the first sample; exp"),
        ({"current": np.zeros(3)}, r"run: current: shape = \(3,\); expected"),
    ],
)
def test_inconsistent_arrays_are_rejected(change, message):
    with pytest.raises(InvalidValue, match=message):
        replace(motion(TIME), **change)
