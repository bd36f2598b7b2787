"""Work in another process: result, progress, errors, end."""

import os

import pytest

from arm_dynamics.core.background_process import BackgroundProcess
from arm_dynamics.core.errors import ConfigError, InvalidValue


def add(report, a, b):
    report(f"adding {a}")
    return a + b, os.getpid()


def reject(report):
    raise InvalidValue("a = 1; expected 2")


def fail(report):
    raise KeyError("x")


def result(process):
    while (found := process.poll()) is None:
        process._process.join(0.02)
    return found[0]


def test_work_in_another_process_returns_its_result_or_its_error():
    process = BackgroundProcess(add, 1, 2)
    others = [(BackgroundProcess(reject), InvalidValue), (BackgroundProcess(fail), ConfigError)]
    total, pid = result(process)
    assert (total, process.progress) == (3, "adding 1")
    assert pid != os.getpid()
    for other, error in others:
        with pytest.raises(error, match=r"a = 1; expected 2|KeyError\('x'\)"):
            result(other)


def test_a_canceled_process_ends():
    process = BackgroundProcess(add, 1, 2)
    process.cancel()
    assert not process._process.is_alive()
