"""Velocity profiles: from rest to rest, consistent derivatives, limits, minimum time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arm_dynamics.control.trajectories.profiles import cubic, quintic, trapezoidal
from arm_dynamics.core.errors import InvalidValue

durations = st.floats(0.05, 20)
profiles = st.one_of(
    durations.map(cubic),
    durations.map(quintic),
    st.builds(trapezoidal, st.floats(0.05, 20), st.floats(0.05, 20)),
    st.builds(lambda a, T: trapezoidal(1.0, a).stretched_to(11 + T), st.floats(0.1, 9), durations),
)


@given(profiles)
def test_profiles_go_from_rest_at_0_to_rest_at_1(profile):
    T = profile.duration
    assert profile.at(-1.0) == profile.at(0.0) == (0.0, 0.0, 0.0)
    assert profile.at(T) == profile.at(T + 1.0) == (1.0, 0.0, 0.0)
    before, after = profile.at(T * 1e-9), profile.at(T * (1 - 1e-9))
    assert (before[0], before[1] * T) == pytest.approx((0.0, 0.0), abs=1e-5)
    assert (after[0], after[1] * T) == pytest.approx((1.0, 0.0), abs=1e-5)


@given(profiles, st.floats(0.01, 0.99))
def test_speed_and_acceleration_are_the_derivatives(profile, fraction):
    t, h = fraction * profile.duration, 1e-6 * profile.duration
    if min(abs(t - x) for x in profile.times) < 2 * h:
        return  # the acceleration of a trapezoid is discontinuous there
    (s0, v0, _), (_, v, a), (s1, v1, _) = (profile.at(x) for x in (t - h, t, t + h))
    T = profile.duration
    scale = max(1.0, profile.at(profile.times[1])[2] * T * T if len(profile.times) > 1 else 1.0)
    assert (s1 - s0) / (2 * h) * T == pytest.approx(v * T, abs=1e-8 * scale)
    assert (v1 - v0) / (2 * h) * T * T == pytest.approx(a * T * T, abs=1e-6 * scale)


@given(st.floats(0.05, 20), st.floats(0.05, 20))
def test_a_trapezoid_keeps_its_limits_in_minimum_time(v, a):
    """1/v + v/a with a cruise; without, 2/√a, the minimum time of the double integrator."""
    profile = trapezoidal(v, a)
    assert profile.duration == pytest.approx(1 / v + v / a if v * v < a else 2 / np.sqrt(a))
    samples = np.array([profile.at(t) for t in np.linspace(0, profile.duration, 201)])
    assert np.abs(samples[:, 1]).max() <= v * (1 + 1e-12)
    assert np.abs(samples[:, 2]).max() <= a * (1 + 1e-12)
    assert (np.diff(samples[:, 0]) >= -1e-12).all()


def test_peaks_by_hand():
    assert cubic(2.0).at(1.0)[1] == pytest.approx(1.5 / 2)
    assert cubic(2.0).at(1e-12)[2] == pytest.approx(6 / 4)
    assert quintic(2.0).at(1.0)[1] == pytest.approx(1.875 / 2)
    assert quintic(2.0).at(1e-12)[2] == pytest.approx(0.0, abs=1e-9)


@given(st.floats(0.1, 10), st.floats(0.1, 10), st.floats(1, 4))
def test_a_stretched_profile_is_the_same_path_at_lower_velocity(v, a, ratio):
    fast = trapezoidal(v, a)
    slow = fast.stretched_to(ratio * fast.duration)
    for fraction in (0.1, 0.4, 0.8):
        s, speed, _ = slow.at(fraction * slow.duration)
        expected = fast.at(fraction * fast.duration)
        assert (s, speed * ratio) == pytest.approx(expected[:2], abs=1e-9)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf, "1", None])
def test_invalid_numbers_are_rejected(bad):
    for make in (cubic, quintic, lambda x: trapezoidal(x, 1.0), lambda x: trapezoidal(1.0, x)):
        with pytest.raises(InvalidValue):
            make(bad)
    with pytest.raises(InvalidValue, match="duration"):
        trapezoidal(1.0, 1.0).stretched_to(bad)


def test_a_too_short_duration_names_the_minimum():
    with pytest.raises(InvalidValue, match=r"duration = 1 s; expected at least 2 s"):
        trapezoidal(1.0, 1.0).stretched_to(1.0)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: trapezoidal(1e-300, 1.0), "velocity .* = 1e-300; expected at least 1e-30"),
        (lambda: trapezoidal(1.0, 1e-300), "acceleration .* = 1e-300; expected at least 1e-60"),
        (lambda: trapezoidal(1.0, 1e300), "acceleration .* expected at most 1e\\+60"),
        (lambda: cubic(1e-300), "duration .* = 1e-300; expected at least 1e-30"),
        (lambda: quintic(1e300), "duration .* expected at most 1e\\+30"),
        (lambda: cubic(1.0).stretched_to(1e300), "duration .* expected at most 1e\\+30"),
    ],
)
def test_overflowing_profiles_are_rejected(make, text):
    with pytest.raises(InvalidValue, match=text):
        make()


@pytest.mark.parametrize("extreme", [1e-30, 1e30])
def test_extreme_valid_profiles_are_finite(extreme):
    for profile in (cubic(extreme), quintic(extreme), trapezoidal(extreme, 1.0)):
        for fraction in (1e-3, 0.5, 0.999):
            assert np.isfinite(profile.at(fraction * profile.duration)).all()


def test_a_time_that_is_not_a_number_is_rejected():
    for profile in (cubic(1.0), trapezoidal(1.0, 1.0)):
        with pytest.raises(InvalidValue, match="time = nan s; expected a number"):
            profile.at(np.nan)
