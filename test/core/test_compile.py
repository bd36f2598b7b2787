"""No compilation, load of compiled code or import while torque is enabled or a controller is
active.
"""

import json
import os
import pickle
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numba
import numpy as np
import pytest
from compile_watch import CompileWatch
from motor_rig import Rig

from arm_dynamics.control.controller_warm_up import warm_up_controller
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.core import compiled_math
from arm_dynamics.core.compiled_math import (
    INDICES,
    MATRIX,
    NUMBER,
    VECTOR,
    VECTOR_OUT,
    Kind,
    compiled_for,
    direct_call,
)
from arm_dynamics.core.errors import CommandRejected, DriverFault
from arm_dynamics.core.plugins import BUILT_IN
from arm_dynamics.core.state import Command, Reference, State
from arm_dynamics.hardware import activation
from arm_dynamics.hardware.driver import DriverState

ROWS = Kind("float64", 2, layout="C")
TEST = Path(__file__).resolve().parents[1]
TRIPS = {
    "command_timeout", "position_limit", "velocity_limit", "over_temperature", "motor_fault",
    "feedback_missing", "feedback_stale", "connection_lost", "torque_lost", "oscillation",
    "controlled_stop", "emergency_stop",
}  # fmt: skip


def run_script(script, *words, **environment):
    """Return the JSON result of a separate process: its dispatchers are empty at the start."""
    paths = os.pathsep.join([str(TEST), str(TEST.parent), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(TEST / script), *words],
        env={**os.environ, "PYTHONPATH": paths, **environment},
        check=False, capture_output=True, text=True, timeout=570,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_every_interface_stop_and_trip_without_any_cache(tmp_path):
    """No cache folder is trusted: the first configuration compiles everything in memory."""
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o777)
    cache.chmod(0o777)
    result = run_script("compile_cases.py", "still", "pid_gravity", XDG_CACHE_HOME=str(cache))
    assert result["found"] == []
    assert set(result["trips"]) >= TRIPS
    assert not list(cache.rglob("*.nb?"))


@pytest.mark.slow
def test_every_controller_and_change_of_controller_under_torque():
    result = run_script("compile_cases.py", "still", *BUILT_IN["controllers"])
    assert result["found"] == []
    assert set(result["trips"]) >= TRIPS


@pytest.mark.slow
def test_after_the_command_compile_no_controller_compiles():
    of_one_arm = {"mpc", "task_space_mpc"}  # their kernels
    names = set(BUILT_IN["controllers"]) - of_one_arm
    result = run_script("first_use_cases.py", *sorted(names))
    assert result["found"] == []
    assert result["cycles"] >= 100


@pytest.mark.slow
def test_emulated_motors_of_all_manufacturers_under_faults():
    result = run_script("compile_cases.py", "emulated")
    assert result["found"] == []
    assert result["cases"] > 25


@pytest.mark.slow
@pytest.mark.skipif(find_spec("rclpy") is None, reason="rclpy is not installed")
def test_controller_nodes_compile_before_the_first_command_or_in_the_background():
    result = run_script("ros/compile_cases.py")
    assert result["found"] == []
    assert {"PidGravity", "ComputedTorque", "Lqr", "TaskSpace"} <= set(result["seen"])


def broken(*_):
    raise RuntimeError("no compiler")


@pytest.mark.parametrize(
    ("part", "does", "message"),
    [
        ("warm_up", broken, "compilation failed: no compiler"),
        ("cold", lambda: ["near_limits"], "functions not compiled = near_limits; expected none"),
    ],
)
def test_an_arm_is_not_activated_before_everything_is_compiled(monkeypatch, part, does, message):
    rig = Rig()
    rig.driver.configure()
    rig.look()
    with monkeypatch.context() as patch:
        patch.setattr(activation, part, does)
        with pytest.raises(DriverFault, match=message):
            rig.driver.activate()
    assert rig.driver.status is DriverState.INACTIVE
    assert rig.torque == [False] * 3
    rig.driver.activate()
    assert rig.driver.status is DriverState.ACTIVE


def test_functions_declared_after_configure_are_compiled_before_torque():
    rig = Rig()
    rig.driver.configure()

    @compiled_for(NUMBER)
    def late(x):
        return 2.0 * x

    assert f"{__name__}.late" in compiled_math.cold()
    rig.look()
    rig.driver.activate()
    assert compiled_math.cold() == []
    assert len(late.signatures) == 1


ON_DEMAND = """
import json
import arm_dynamics.control.controller_warm_up
from arm_dynamics.core import compiled_math as scalar, plugins
plugins.load_class("controllers", "computed_torque")
before = scalar.cold()
plugins.load_class("controllers", "task_space")
added = sorted(set(scalar.cold()) - set(before))
scalar.warm_up()
print(json.dumps([before, added, scalar.cold()]))
"""


def test_inverse_kinematics_is_compiled_only_for_task_space_controllers(tmp_path):
    script = tmp_path / "on_demand.py"
    script.write_text(ON_DEMAND)
    before, added, cold = run_script(script)
    rates = "arm_dynamics.dynamics.kinematics.closed_loop_ik.clik_step"
    assert before
    assert rates not in before
    assert rates in added
    assert cold == []


@pytest.mark.parametrize("direct", [False, True])
def test_a_declared_function_has_one_version_for_all_arrays(direct):
    @compiled_for(VECTOR, NUMBER, VECTOR_OUT, direct=direct)
    def scaled(x, factor, out):
        for i in range(x.size):
            out[i] = factor * x[i]

    @numba.njit
    def caller(x, out):
        scaled(x, 2.0, out)

    fixed, wide = np.arange(3.0), np.arange(6.0)
    fixed.flags.writeable = False
    matrix = np.asfortranarray(np.arange(9.0).reshape(3, 3))
    given = (np.arange(3.0), fixed, wide[::2], matrix[1], matrix[:, 1], wide[::-2])
    for x in given:
        for factor in (2, 2.0, np.float64(2.0)):
            out = np.empty(6)[::2]
            scaled(x, factor, out)
            assert np.array_equal(out, 2 * x)
        caller(x, out)
        assert np.array_equal(out, 2 * x)
    assert len(scaled.signatures) == 1
    with pytest.raises(TypeError):
        scaled(np.arange(3), 2.0, np.empty(3))  # integers would need another version
    with pytest.raises(TypeError):
        scaled(fixed, 2.0, fixed)  # is not written to


def test_a_direct_call_reads_arrays_in_place_and_rejects_everything_else():
    """Equal dtypes of another process are other objects; each rejected value is named."""

    @compiled_for((VECTOR, MATRIX), INDICES, ROWS, NUMBER, VECTOR_OUT, direct=True)
    def mixed(pair, indices, rows, factor, out):
        (x, matrix), total = pair, 0.0
        for i in range(indices.size):
            total += matrix[indices[i], 1] + rows[1, i]
        for i in range(x.size):
            out[i] = factor * x[i] + total
        return total > 0.0

    call = direct_call(mixed)
    matrix, rows = np.asfortranarray(np.arange(9.0).reshape(3, 3)), np.arange(6.0).reshape(2, 3)
    x, indices, out = np.arange(5.0)[::2], np.array([0, 2]), np.empty(6)[1::2]
    x.flags.writeable = False
    good = ((x, matrix), indices, rows, 2.0, out)
    sent = pickle.loads(pickle.dumps(good[:3]))
    assert sent[0][0].dtype is not x.dtype
    for given in (good, (*sent, 2, out)):
        before = [sys.getrefcount(array) for array in given[1:3]]
        assert call(*given) is True
        assert np.array_equal(out, 2.0 * np.arange(0.0, 5.0, 2.0) + 15.0)
        assert [sys.getrefcount(array) for array in given[1:3]] == before
    unaligned = np.frombuffer(bytearray(25), np.uint8)[1:].view(float)
    for k, values in {
        0: [(x, matrix[0]), (x[None], matrix), (x.astype(">f8"), matrix),
            (x.astype(np.float32), matrix), (x.astype(int), matrix), (x.astype(object), matrix),
            ([1.0], matrix), (None, matrix), (1.0, matrix), (unaligned, matrix)],
        1: [indices.astype(np.int32), indices.astype(float), indices > 0],
        2: [rows.T, rows[:, ::2]],
        4: [x, "out", out.view(np.recarray)],
    }.items():  # fmt: skip
        for value in values:
            with pytest.raises(TypeError):
                call(*good[:k], value, *good[k + 1 :])


def test_a_tuple_is_one_argument_with_one_version_for_all_arrays():
    @compiled_for((VECTOR, NUMBER), (VECTOR_OUT, VECTOR))
    def scaled(given, written):
        (x, factor), (out, offset) = given, written
        for i in range(x.size):
            out[i] = factor * x[i] + offset[i]

    fixed, wide = np.arange(3.0), np.arange(6.0)
    fixed.flags.writeable = False
    for x, offset in ((np.arange(3.0), fixed), (fixed, wide[::2]), (wide[::-2], np.arange(3.0))):
        out = np.empty(6)[::2]
        scaled((x, 2), (out, offset))
        assert np.array_equal(out, 2 * x + offset)
    assert len(scaled.signatures) == 1
    with pytest.raises(TypeError):
        scaled((fixed, 2.0), (fixed, fixed))  # is not written to


class UserController(Controller):
    """Controller with a function that numba compiles at its first call."""

    rejects = False

    def update(self, state, reference, dt):
        if self.rejects:
            raise CommandRejected("not here")
        return Command("effort", self.compiled_equation(state.q, reference.q, dt), state.time)

    def __init__(self, arm, gains=None):
        super().__init__(arm, gains)

        @numba.njit
        def compiled_equation(q, desired, dt):
            return (desired - q) * dt

        self.compiled_equation = compiled_equation


INTERRUPTED_COMPILATION = """
import os, signal, sys
import numpy as np
from arm_dynamics.core.compiled_math import is_finite

def interrupt(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_name == "_object_compiled_hook":
        if "is_finite" in frame.f_locals["ll_module"].name:
            sys.setprofile(None)
            for _ in range(int(sys.argv[1])):
                os.kill(os.getpid(), signal.SIGINT)

sys.setprofile(interrupt)
try:
    is_finite(np.zeros(2))
except KeyboardInterrupt:
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert is_finite(np.zeros(2))
    print("interrupted")
"""
"""Compilation that receives SIGINT in LLVM's callback, which discards exceptions."""


@pytest.mark.quick(1)
@pytest.mark.parametrize("count", [1, 2])
def test_ctrl_c_during_a_compilation_raises_keyboard_interrupt(tmp_path, count):
    """Numba would raise RuntimeError: no compiled object yet. A second Ctrl-C is immediate."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_COMPILATION, str(count)],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
        check=False, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr
    assert ("KeyboardInterrupt" in done.stderr) == (count == 2)


def test_ctrl_c_during_a_compilation_ends_a_command_immediately(tmp_path):
    handler = """
from arm_dynamics.core import signals
signals.install(signals.Interrupt(signals.EndProcess(130, "interrupted")), signal.SIGINT)
assert not signals.compiling
"""
    done = subprocess.run(
        [sys.executable, "-c", handler.join(INTERRUPTED_COMPILATION.split("\n\n", 1)), "1"],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
        check=False, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL, print])
def test_a_handler_of_the_program_acts_during_a_compilation(handler):
    """A command next to hardware stops the arm by its own handler."""
    delayed, before = compiled_math._DelayedInterrupt(), signal.signal(signal.SIGINT, handler)
    try:
        delayed.start()
        assert signal.getsignal(signal.SIGINT) is handler
        delayed.end()
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_warm_up_compiles_a_users_controller():
    controller, watch = UserController(Rig().driver.arm), CompileWatch()
    state = State.of(np.zeros(3))
    try:
        warm_up_controller(controller)
        watch.armed = True
        controller.update(state, Reference.hold(state.q), 0.01)
        assert watch.found == []
        controller.rejects = True
        warm_up_controller(controller)  # the loop reports the error
    finally:
        watch.end()
