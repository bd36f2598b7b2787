"""Work aside from the services: the latest word counts, and refusals are told."""

from threading import Event

import pytest

from arm_dynamics.core.errors import TrajectoryRejected
from arm_dynamics.ros.loop_requests import BackgroundTask

SOON = 10.0


class Session:
    """An aside, the deeds that were done and the refusals that were told."""

    def __init__(self):
        self.done, self.told, self.over = [], [], Event()
        self.aside = BackgroundTask(self._refused)

    def _refused(self, topic, error):
        self.told.append((topic, str(error)))
        self.over.set()

    def do(self, deed):
        self.done.append(deed)
        self.over.set()

    def wait(self):
        assert self.over.wait(SOON)


@pytest.fixture
def session():
    found = Session()
    yield found
    found.aside.cancel()


def test_work_ends_in_its_deed(session):
    def work(pause):
        for _ in range(5):
            pause()
        return lambda: session.do("path")

    session.aside.start("path", work)
    session.wait()
    assert (session.done, session.told) == (["path"], [])


def test_what_the_work_refuses_is_told_with_its_topic(session):
    def work(pause):
        pause()
        raise TrajectoryRejected("too far")

    session.aside.start("path", work)
    session.wait()
    assert (session.done, session.told) == ([], [("path", "too far")])


@pytest.mark.parametrize("paused", [True, False])
def test_work_that_a_word_overtakes_does_nothing_and_says_so(session, paused):
    """Also where it had come to its deed without another pause."""
    begun, spoken = Event(), Event()

    def work(pause):
        begun.set()
        assert spoken.wait(SOON)
        if paused:
            pause()
        return lambda: session.do("path")

    session.aside.start("path", work)
    assert begun.wait(SOON)
    session.aside.run_now(lambda: session.done.append("pose"))
    spoken.set()
    session.wait()
    assert session.done == ["pose"]
    assert session.told == [("path", "canceled: another target was received during the check")]


def test_at_the_end_no_work_is_under_way(session):
    begun, left = Event(), Event()

    def work(pause):
        begun.set()
        try:
            while True:
                pause()
        finally:
            left.set()

    session.aside.start("path", work)
    assert begun.wait(SOON)
    session.aside.cancel()
    assert left.is_set()
