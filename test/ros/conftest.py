"""Fixtures of the tests over ROS; what the nodes said is shown when a test fails."""

import pytest


@pytest.fixture
def ros():
    """A domain of its own for one test."""
    from .link import Ros

    link = Ros()
    yield link
    link.close()


@pytest.fixture(scope="module")
def shared():
    """A domain that the tests of one module share."""
    from .link import Ros

    link = Ros()
    yield link
    link.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed:
        for name in ("ros", "shared"):
            link = getattr(item, "funcargs", {}).get(name)
            if link is not None:
                report.sections.append(("output of the nodes", link.told("")))
    return report
