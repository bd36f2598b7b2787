"""Fixtures of the tests over ROS; what the nodes said is shown when a test fails."""

from pathlib import Path

import pytest


def pytest_collection_modifyitems(config, items):
    """Nodes in real time: a machine that stood still spoils a test, whose second try shows as R."""
    if config.pluginmanager.hasplugin("rerunfailures"):
        for item in items:
            if item.path.parent == Path(__file__).parent:
                item.add_marker(pytest.mark.flaky(reruns=1))


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
