"""Arms of several tests."""

import itertools
import signal
from collections import Counter
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from arm_dynamics import load_arm
from arm_dynamics.core.signals import STOP_SIGNALS
from arm_dynamics.demos import registry
from arm_dynamics.model.load import parse_arm

# A background job of a shell ignores SIGINT, one of nohup SIGHUP, and so do its children.
for number, handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

# No deadline: controllers compile at their first call. The examples are the same in every run: they
# do not depend on constants of the modules that a process has imported.
settings.register_profile("project", deadline=None, derandomize=True)
settings.register_profile("quick", parent=settings.get_profile("project"), max_examples=25)
settings.load_profile("project")
with suppress(ImportError):  # older versions do not collect such constants
    from hypothesis.internal.conjecture import providers

    providers._get_local_constants = lambda: providers._local_constants


@pytest.fixture(autouse=True)
def _signal_handlers():
    """Restore the signal handlers of a process that a test ends within this one."""
    before = {number: signal.getsignal(number) for number in (*STOP_SIGNALS, signal.SIGUSR1)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def examples(count):
    """Return the number of examples of a test that has its own: a quarter in the quick profile."""
    return max(1, count * settings.default.max_examples // 100)


ROS = Path(__file__).parent / "ros"
FIRST_FILE = Path(__file__).parent / "cli" / "test_hardware_cli.py"
"""Of the tests in real time: it begins first, so that no process runs it alone at the end."""
LIMIT = '<limit lower="{lower}" upper="{upper}" effort="{effort}" velocity="100"/>'
FREE = '<limit effort="{effort}" velocity="100"/>'
LINK = """<link name="{name}_link"><inertial><origin xyz="{center}"/><mass value="{mass}"/>
<inertia ixx="{ixx}" iyy="{ixx}" izz="{ixx}" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
JOINT = """<joint name="{name}" type="{kind}"><origin xyz="{xyz}"/><parent link="{parent}"/>
<child link="{name}_link"/><axis xyz="{axis}"/>{limit}
<dynamics damping="{damping}" friction="{friction}"/></joint>"""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark the tests of ros/, and as slow cases beyond ``quick`` and the first of ``kernels``.

    Cases of arms that ``kernels`` does not name are deselected. Files that take long run first.
    """
    cases, deselected = Counter(), []
    for item in items:
        if item.path.parent == ROS:
            item.add_marker(pytest.mark.ros)
        quick = item.get_closest_marker("quick")
        kernels = item.get_closest_marker("kernels")
        arm = item.callspec.params.get("name", kernels.args[0]) if kernels else None
        if kernels and arm != kernels.args[0]:
            item.add_marker(pytest.mark.slow)
            if arm not in kernels.args:
                deselected.append(item)
            continue
        test = item.nodeid.partition("[")[0]
        cases[test] += 1
        if quick is not None and cases[test] > quick.args[0]:
            item.add_marker(pytest.mark.slow)
    config.hook.pytest_deselected(items=deselected)
    items[:] = [item for item in items if item not in set(deselected)]
    tests = Counter(item.path for item in items)
    hardware = {item.path for item in items if item.get_closest_marker("hardware")}
    slow = {item.path for item in items if item.get_closest_marker("slow")}

    def order(item):
        path = item.path
        first = path.parent == ROS or path in hardware & slow
        count = tests[path] if path in slow and path != FIRST_FILE else -tests[path]
        return not first, path not in slow, count

    items.sort(key=order)


unread = []
"""Test files that could not be imported."""


def pytest_collectreport(report):
    """Note a file that cannot be imported: a repetition of failed tests would not contain it."""
    if report.failed:
        unread.append(report.nodeid)


def pytest_sessionfinish(session):
    """End with the code of an interruption if a file could not be imported."""
    if unread and session.exitstatus == pytest.ExitCode.TESTS_FAILED:
        session.exitstatus = pytest.ExitCode.INTERRUPTED


def chain_urdf(*joints, more=""):
    """Return the URDF of a serial chain; each joint is a dict that changes these defaults."""
    text, parent = ['<link name="base"/>'], "base"
    for i, changes in enumerate(joints):
        values = {
            "name": f"J{i + 1}", "kind": "revolute", "parent": parent, "axis": "0 1 0",
            "xyz": "0.5 0 0" if i else "0 0 0", "center": "0.25 0 0", "mass": 1.0, "ixx": 0.02,
            "lower": -3.0, "upper": 3.0, "effort": 100.0, "damping": 0.0, "friction": 0.0,
        } | changes  # fmt: skip
        limit = (FREE if values["kind"] == "continuous" else LIMIT).format(**values)
        text += [LINK.format(**values), JOINT.format(**values, limit=limit)]
        parent = f"{values['name']}_link"
    return f'<robot name="chain">{"".join(text)}{more}</robot>'


def chain(*joints, more=""):
    return parse_arm(chain_urdf(*joints, more=more))


@cache
def five_dof():
    return load_arm("five_dof")


@cache
def heavy_rotors():
    """Return five_dof with geared motors and 0.5 kg at its tool."""
    arm = five_dof().with_motors(gear_ratio=20.0, rotor_inertia=2e-5)
    for name, k in zip(arm.joint_names, (10, 10, 10, 1, 1), strict=True):
        arm = arm.with_motor(name, kt=k / 20, ke=k / 20)
    return arm.with_payload(0.5, (0.01, 0.02, -0.03))


@cache
def shown(name):
    """Return the figures ``name`` of the demonstrations and the gallery, computed once."""
    from draw import GALLERY  # of examples/gallery: scripts import this file without that folder

    return registry.load_demo(name, registry.DEMOS | GALLERY).show()


def displaced():
    """Yield all starts 0.2 rad away from the initial configuration in R2, R3, R5, within limits."""
    arm = five_dof()
    for signs in itertools.product((0.2, -0.2), repeat=3):
        q = np.array(arm.configuration("initial"))
        q[[1, 2, 4]] += signs
        if (arm.lower <= q).all() and (q <= arm.upper).all():
            yield q
