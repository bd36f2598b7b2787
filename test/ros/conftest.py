"""Fixtures of the ROS tests; the output of the nodes is shown when a test fails.

Nodes of a module with ``FRESH = True`` are processes of ``python -m``, not forks.
"""

import pytest


@pytest.fixture
def ros(request):
    """Use a separate ROS domain for one test."""
    from .link import Ros

    link = Ros(getattr(request.module, "FRESH", False))
    yield link
    link.close()


@pytest.fixture(scope="module")
def shared(request):
    """Use one ROS domain for the tests of a module."""
    from .link import Ros

    link = Ros(getattr(request.module, "FRESH", False))
    yield link
    link.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed:
        for name in ("ros", "shared"):
            link = getattr(item, "funcargs", {}).get(name)
            if link is not None:
                report.sections.append(("output of the nodes", link.report("")))
    return report
