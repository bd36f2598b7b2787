"""Background tasks of services: the latest request counts; rejections are reported by topic."""

from threading import Event

import pytest

from arm_dynamics.core.errors import TrajectoryRejected
from arm_dynamics.core.loop_requests import BackgroundTask

SOON = 10.0


class Session:
    """A background task with its executed actions and reported errors."""

    def __init__(self):
        self.done, self.errors, self.over = [], [], Event()
        self.task = BackgroundTask(self._rejected)

    def _rejected(self, topic, error):
        self.errors.append((topic, str(error)))
        self.over.set()

    def execute(self, deed):
        self.done.append(deed)
        self.over.set()

    def wait(self):
        assert self.over.wait(SOON)


@pytest.fixture
def session():
    found = Session()
    yield found
    found.task.cancel()


def test_a_finished_check_executes_its_action(session):
    def work(pause):
        for _ in range(5):
            pause()
        return lambda: session.execute("path")

    session.task.start("path", work)
    session.wait()
    assert (session.done, session.errors) == (["path"], [])


def test_a_rejection_of_the_check_is_reported_with_its_topic(session):
    def work(pause):
        pause()
        raise TrajectoryRejected("too far")

    session.task.start("path", work)
    session.wait()
    assert (session.done, session.errors) == ([], [("path", "too far")])


@pytest.mark.parametrize("paused", [True, False])
def test_a_newer_request_cancels_the_running_check_and_reports_it(session, paused):
    """Also if the check has already returned its action."""
    begun, spoken = Event(), Event()

    def work(pause):
        begun.set()
        assert spoken.wait(SOON)
        if paused:
            pause()
        return lambda: session.execute("path")

    session.task.start("path", work)
    assert begun.wait(SOON)
    session.task.run_now(lambda: session.done.append("pose"))
    spoken.set()
    session.wait()
    assert session.done == ["pose"]
    assert session.errors == [("path", "canceled: another target was received during the check")]


def test_cancel_ends_the_running_check(session):
    begun, left = Event(), Event()

    def work(pause):
        begun.set()
        try:
            while True:
                pause()
        finally:
            left.set()

    session.task.start("path", work)
    assert begun.wait(SOON)
    session.task.cancel()
    assert left.is_set()
