"""Training data that are fitted, and validation data that check the fit."""

from __future__ import annotations

from collections.abc import Sequence

from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.recording.motions.motion_checks import require_different
from arm_dynamics.recording.motions.motion_data import MotionData

VALIDATION = 0.3
"""Fraction of a recording, at its end, that checks the fit without other validation data."""
TRAINING_NAME = f"first {100 * (1 - VALIDATION):.0f} %"
VALIDATION_NAME = f"last {100 * VALIDATION:.0f} %"
"""Names of the parts in messages and reports."""


def training_and_validation(
    motions: Sequence[MotionData],
    held_out: Sequence[MotionData],
    others: Sequence[MotionData] = (),
) -> tuple[list[MotionData], list[MotionData]]:
    """Return training and validation data: by default the end of each motion is held out.

    Raises
    ------
    InvalidValue
        Without a motion, and for two identical ones, ``others`` included.

    """
    require_different([*motions, *held_out, *others])
    if not motions:
        raise InvalidValue("motions = 0; expected at least one recording")
    if held_out:
        return list(motions), list(held_out)
    ends = [int((1 - VALIDATION) * len(motion.time)) for motion in motions]
    pairs = list(zip(motions, ends, strict=True))
    training = [motion.part(slice(k), TRAINING_NAME) for motion, k in pairs]
    return training, [motion.part(slice(k, None), VALIDATION_NAME) for motion, k in pairs]
