"""Every function of a generated module is compared with the plant and controller before use."""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from conftest import chain

from arm_dynamics.batch.kernels import kernel_check
from arm_dynamics.batch.kernels.kernel import Kernel
from arm_dynamics.batch.kernels.kernel_cache import KernelOptions, KernelRejected
from arm_dynamics.batch.kernels.layout import Layout
from arm_dynamics.batch.kernels.pid_spec import PidSpec
from arm_dynamics.core.errors import InvalidValue

ARM = chain({"axis": "0 1 0", "friction": 0.1}, {"axis": "0 1 0"})
LANES = 4
WRONG = {"float64": 1e-9, "float32": 1e-2}
"""Disturbance beyond rounding errors."""


def options(precision, delay=False):
    pid = PidSpec(ARM, gravity=True, voltage=False, delay=delay, noise=True)
    return KernelOptions(precision=precision, lanes=LANES, pid=pid)


@cache
def kernel_module(precision, delay=False):
    return Kernel(ARM, options(precision, delay))._module


def altered(module, entry, name, wrong):
    """Return the module with ``wrong`` added to the rows ``name`` after ``entry`` has run."""
    layout = Layout.of(module.LAYOUT)

    def run(x, *more):
        answer = getattr(module, entry)(x, *more)
        x.reshape(layout.rows, -1)[layout.block(name)] += wrong
        return answer

    entries = {e: getattr(module, e) for e in ("step", "tick", "score", "rollout")}
    return SimpleNamespace(
        LAYOUT=module.LAYOUT, CONSTANTS=module.CONSTANTS, **{**entries, entry: run}
    )


ENTRIES = [
    ("step", "q", "q after a step"),
    ("step", "v", "v after a step"),
    ("step", "effort", "effort of a step"),
    ("tick", "command", "command of tick 0"),
    ("tick", "integral", "command of tick 1"),
    ("score", "iae", "metric iae"),
    ("score", "peak_effort", "metric peak_effort"),
    ("score", "overshoot", "metric overshoot"),
    ("score", "residual_error", "metric residual_error"),
    ("rollout", "v", "v of a rollout"),
    ("rollout", "integral", "integral of a rollout"),
]


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize(("entry", "name", "words"), ENTRIES)
def test_a_wrong_entry_is_rejected_by_name(entry, name, words, precision):
    module = kernel_module(precision)
    kernel_check.check_kernel(module, ARM, options(precision))
    with pytest.raises(KernelRejected, match=words):
        kernel_check.check_kernel(
            altered(module, entry, name, WRONG[precision]), ARM, options(precision)
        )


@pytest.mark.slow
def test_a_wrong_delayed_command_is_rejected():
    module = kernel_module("float64", delay=True)
    kernel_check.check_kernel(module, ARM, options("float64", delay=True))
    with pytest.raises(KernelRejected, match="command of tick 0"):
        kernel_check.check_kernel(
            altered(module, "tick", "pending", 1e-9), ARM, options("float64", delay=True)
        )


def test_records_and_failures_of_a_rollout_are_checked():
    module = kernel_module("float64")

    def rollout(x, inputs, steps, record_every, count, rows, records, failed):
        module.rollout(x, inputs, steps, record_every, count, rows, records, failed)
        records[-1, 0] += record
        failed[0] += step

    entries = {e: getattr(module, e) for e in ("LAYOUT", "CONSTANTS", "step", "tick", "score")}
    wrong = SimpleNamespace(rollout=rollout, **entries)
    record, step = 1e-9, 0
    with pytest.raises(KernelRejected, match="last record of a rollout"):
        kernel_check.check_kernel(wrong, ARM, options("float64"))
    record, step = 0.0, 3
    with pytest.raises(KernelRejected, match="failed lanes of a rollout"):
        kernel_check.check_kernel(wrong, ARM, options("float64"))


def test_a_kernel_is_checked_once(monkeypatch):
    """A kernel that passed is loaded without another check."""
    kernel_module("float64")
    monkeypatch.setattr(
        "arm_dynamics.batch.kernels.kernel.check_kernel",
        lambda *given: pytest.fail("checked a second time"),
    )
    again = Kernel(ARM, options("float64"))
    x = again.block({"dt": np.array([kernel_check.TRIAL_STEP])})
    assert not again.step(x)


def test_voltage_commands_need_a_motor_model():
    with pytest.raises(
        InvalidValue, match=r"controller model, joint '\w+': actuator = Ideal; expected dc_motor"
    ):
        PidSpec(ARM, gravity=False, voltage=True, delay=False, noise=False)
