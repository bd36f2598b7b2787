"""Joint targets of displays: the newest one is sent. The demo motion follows the reference."""

from types import SimpleNamespace

import numpy as np

from arm_dynamics import load_arm
from arm_dynamics.control import joint_motions
from arm_dynamics.control.joint_motions import DemoMotion, JointTargets
from arm_dynamics.core.status_summary import StatusSummary


class Output:
    """Controller that accepts every motion."""

    ready = True

    def __init__(self):
        self.sent = []

    def send(self, points):
        self.sent.append([point.q.tolist() for point in points])


class Feedback:
    """Results of actions."""

    def __init__(self):
        self.results = []

    done = rejected = note = lambda self, text: self.results.append(text)


def test_a_target_during_an_emergency_stop_is_rejected(monkeypatch):
    """The arm must not move to an old target when the stop is reset."""
    monkeypatch.setattr(joint_motions, "SETTLING_TIME", 0.0)
    arm, output, rejected = load_arm("two_link"), Output(), []
    status, feedback = StatusSummary(), SimpleNamespace(rejected=rejected.append)
    targets = JointTargets(output, arm, status, lambda: True, feedback)
    status.messages["simulator"] = "emergency stop by topic emergency_stop"
    targets.go([0.1, 0.0])
    targets.update(np.zeros(2))
    assert rejected == ["emergency stop by topic emergency_stop; reset it before a target"]
    status.messages["simulator"] = "running"
    targets.update(np.zeros(2))
    assert not output.sent
    assert not targets.under_way


def test_a_target_given_while_an_older_one_is_sent_is_not_lost(monkeypatch):
    monkeypatch.setattr(joint_motions, "SETTLING_TIME", 0.0)
    arm, output = load_arm("two_link"), Output()
    newer = [[0.2, 0.3]]

    def clear():
        if newer:  # a user moves a slider at this moment
            targets.go(newer.pop())
        return True

    targets = JointTargets(output, arm, StatusSummary(), clear, Feedback())
    targets.go([0.1, 0.0])
    for _ in range(3):
        targets.update(np.zeros(2))
    assert [points[-1] for points in output.sent] == [[0.2, 0.3]]


def test_the_demo_motion_repeats_stops_and_waits_after_an_interruption():
    arm, output = load_arm("two_link"), Output()
    reference = [np.zeros(2), np.array([0.3, 0.0])]
    demo = DemoMotion(arm, output, lambda: tuple(reference))
    demo.continue_motion(0.0, 0.0)
    assert not output.sent
    assert demo.set_running(True) == "demo running"
    demo.continue_motion(1.0, *(0.0,) * len(joint_motions.INTERRUPTED))
    demo.continue_motion(1.1, *(0.0,) * len(joint_motions.INTERRUPTED))
    assert len(output.sent) == 1
    demo.continue_motion(1.2, 1.0, *(0.0,) * (len(joint_motions.INTERRUPTED) - 1))
    assert len(output.sent) == 1  # the reference may be that from before the restart
    demo.continue_motion(1.3, 1.0, *(0.0,) * (len(joint_motions.INTERRUPTED) - 1))
    assert len(output.sent) == 2
    assert demo.set_running(False) == "demo stopped"
    assert output.sent[-1][-1][0] == 0.3 * joint_motions.STOP_TIME / 3
