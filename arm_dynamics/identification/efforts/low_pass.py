"""Zero-phase low-pass filter, and its cut-off frequency from the spectrum of the positions.

References
----------
M. Gautier, Dynamic identification of robots with power model, ICRA 1997, section 4.

"""

from __future__ import annotations

import numpy as np
import scipy  # loads scipy.signal, which takes long, at its first use

from arm_dynamics.core.arrays import FloatArray, Matrix

FILTER_ORDER = 4
CUTOFF_RATIO = 10.0
"""Cut-off over the highest frequency of the motion, as by Gautier 1997."""
ABOVE_NOISE = 30.0
"""Power over that of the noise above which a frequency belongs to the motion."""
MIN_CUTOFF = 2.0
"""[Hz]."""
MOTION_POWER = 0.95
"""Part of the power of the velocities that is motion; the rest is noise."""


def low_pass(values: FloatArray, cutoff: float, rate: float) -> FloatArray:
    """Return ``values`` (n, ...) after a zero-phase low-pass filter; itself near the rate."""
    if cutoff > 0.4 * rate:
        return values
    sections = scipy.signal.butter(FILTER_ORDER, cutoff, fs=rate, output="sos")
    found: FloatArray = scipy.signal.sosfiltfilt(sections, values, axis=0)
    return found


def motion_cutoff(q: Matrix, rate: float) -> float:
    """Return CUTOFF_RATIO times the highest frequency [Hz] of the motion (n, nv).

    The motion reaches from 0 to where the spectrum falls to the noise of the positions; within,
    its highest frequency has MOTION_POWER of the power of the velocities below it.
    """
    window = np.hanning(len(q))[:, None]
    power = np.abs(np.fft.rfft((q - q.mean(axis=0)) * window, axis=0)) ** 2
    frequency = np.fft.rfftfreq(len(q), 1 / rate)
    smooth = scipy.ndimage.uniform_filter1d(power, max(3, int(0.5 * len(q) / rate)), axis=0)
    noise = np.median(smooth[2 * len(smooth) // 3 :], axis=0)
    is_motion = np.logical_and.accumulate(smooth > ABOVE_NOISE * noise, axis=0)
    velocity = np.where(is_motion, power, 0.0) * frequency[:, None] ** 2
    total = velocity.sum(axis=0)
    fraction = np.cumsum(velocity, axis=0) / np.where(total > 0, total, np.inf)
    highest = np.where(total > 0, frequency[np.argmax(fraction >= MOTION_POWER, axis=0)], 0.0)
    return float(max(CUTOFF_RATIO * highest.max(), MIN_CUTOFF))
