"""Plausibility of CAN replies: implausible changes need a second reply."""

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


def requests(*answers):
    """Return a ``request`` function with these replies of motor 1, one per call."""
    left = list(answers)

    def request(ids):
        assert set(ids) == {1}
        return {1: MotorReply(0.004, left.pop(0))} if left[0] is not None else {}

    request.left = left
    return request


def initialized_filter(feedback=USUAL):
    reply_filter = ReplyFilter({1: Ranges(12.5, 30.0, 10.0)})
    assert reply_filter.filter({1: MotorReply(0.0, feedback)}, requests(feedback))
    return reply_filter


def filtered(reply_filter, feedback, request):
    return reply_filter.filter({1: MotorReply(0.002, feedback)}, request).get(1)


def test_the_first_reply_is_requested_twice():
    reply_filter = ReplyFilter({1: Ranges(12.5, 30.0, 10.0)})
    assert filtered(reply_filter, USUAL, requests(replace(USUAL, position=-7.0))) is None
    assert filtered(reply_filter, USUAL, requests(USUAL)).feedback == USUAL


@pytest.mark.parametrize("q", [1.0, 1.1, 0.9])
def test_a_plausible_reply_is_accepted_immediately(q):
    """30 rad/s for 2 ms, plus 0.06 rad."""
    assert (
        filtered(
            initialized_filter(), replace(USUAL, position=q, torque=-9.0), None
        ).feedback.position
        == q
    )


@pytest.mark.parametrize("change", CHANGES)
def test_an_implausible_change_is_accepted_if_repeated(change):
    changed = replace(USUAL, **change)
    assert filtered(initialized_filter(), changed, requests(changed)).feedback == changed


@pytest.mark.parametrize("change", CHANGES)
def test_an_implausible_change_that_is_not_repeated_is_discarded(change):
    assert (
        filtered(initialized_filter(), replace(USUAL, **change), requests(USUAL)).feedback == USUAL
    )


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("again", [None, replace(USUAL, position=-11.0)])
def test_without_a_consistent_second_reply_no_value_is_returned(change, again):
    reply_filter = initialized_filter()
    assert filtered(reply_filter, replace(USUAL, **change), requests(again)) is None
    assert filtered(reply_filter, USUAL, None).feedback == USUAL


def test_after_a_reset_no_previous_value_is_used():
    reply_filter = initialized_filter()
    reply_filter.reset()
    assert filtered(reply_filter, USUAL, requests(None)) is None


def test_a_missing_temperature_is_not_a_change():
    cube = replace(USUAL, enabled=None, drive_temperature=float("nan"))
    assert filtered(initialized_filter(cube), cube, None).feedback is cube
