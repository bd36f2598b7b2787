"""Answers of CAN motors that cannot follow the last ones."""

from dataclasses import replace

import pytest

from arm_dynamics.hardware.mit_can.can_frames import MitFeedback, Ranges
from arm_dynamics.hardware.mit_can.exchange import MotorReply
from arm_dynamics.hardware.mit_can.reply_checks import ReplyFilter

pytestmark = pytest.mark.hardware

USUAL = MitFeedback(1.0, 0.5, 2.0, "", True, 40.0, 45.0)
CHANGES = [
    {"position": 2.5},
    {"velocity": -9.0},
    {"fault": "overload", "enabled": False},
    {"enabled": False},
    {"rotor_temperature": 61.0},
    {"drive_temperature": 24.0},
]


def asked(*answers):
    """An ``ask`` that gives these answers of motor 1, one a call, and remembers being called."""
    left = list(answers)

    def ask(ids):
        assert set(ids) == {1}
        return {1: MotorReply(0.004, left.pop(0))} if left[0] is not None else {}

    ask.left = left
    return ask


def believing(feedback=USUAL):
    doubt = ReplyFilter({1: Ranges(12.5, 30.0, 10.0)})
    assert doubt.filter({1: MotorReply(0.0, feedback)}, asked(feedback))
    return doubt


def told(doubt, feedback, ask):
    return doubt.filter({1: MotorReply(0.002, feedback)}, ask).get(1)


def test_the_first_answer_is_asked_for_twice():
    doubt = ReplyFilter({1: Ranges(12.5, 30.0, 10.0)})
    assert told(doubt, USUAL, asked(replace(USUAL, position=-7.0))) is None
    assert told(doubt, USUAL, asked(USUAL)).feedback == USUAL


@pytest.mark.parametrize("q", [1.0, 1.1, 0.9])
def test_what_follows_is_believed_at_once(q):
    """30 rad/s for 2 ms, and 0.06 rad more."""
    assert told(believing(), replace(USUAL, position=q, torque=-9.0), None).feedback.position == q


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_believed_when_it_is_said_twice(change):
    changed = replace(USUAL, **change)
    assert told(believing(), changed, asked(changed)).feedback == changed


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_is_taken_back_never_was(change):
    assert told(believing(), replace(USUAL, **change), asked(USUAL)).feedback == USUAL


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("again", [None, replace(USUAL, position=-11.0)])
def test_without_a_second_word_there_is_none(change, again):
    doubt = believing()
    assert told(doubt, replace(USUAL, **change), asked(again)) is None
    assert told(doubt, USUAL, None).feedback == USUAL


def test_nothing_is_believed_of_before():
    doubt = believing()
    doubt.reset()
    assert told(doubt, USUAL, asked(None)) is None


def test_a_temperature_that_is_not_told_is_no_change():
    cube = replace(USUAL, enabled=None, drive_temperature=float("nan"))
    assert told(believing(cube), cube, None).feedback is cube
