"""Nothing is compiled, loaded or imported while motors have torque or a controller commands."""

import json
import os
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
from arm_dynamics.core.compiled_math import NUMBER, VECTOR, VECTOR_OUT, compiled_for
from arm_dynamics.core.errors import CommandRejected, DriverFault
from arm_dynamics.core.plugins import BUILT_IN
from arm_dynamics.core.state import Command, Reference, State
from arm_dynamics.hardware import activation
from arm_dynamics.hardware.driver import DriverState

TEST = Path(__file__).resolve().parent
TRIPS = {
    "command_timeout", "position_limit", "velocity_limit", "over_temperature", "motor_fault",
    "feedback_missing", "feedback_stale", "connection_lost", "torque_lost", "oscillation",
    "controlled_stop", "emergency_stop",
}  # fmt: skip


def found_by(script, *words, **environment):
    """What a process of its own told: its dispatchers are empty when it begins."""
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
    """No folder is trusted: the first configuration compiles all, in memory."""
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o777)
    cache.chmod(0o777)
    told = found_by("compile_cases.py", "still", "pid_gravity", XDG_CACHE_HOME=str(cache))
    assert told["found"] == []
    assert set(told["trips"]) >= TRIPS
    assert not list(cache.rglob("*.nb?"))


@pytest.mark.slow
def test_every_controller_and_change_of_controller_under_torque():
    told = found_by("compile_cases.py", "still", *BUILT_IN["controllers"])
    assert told["found"] == []
    assert set(told["trips"]) >= TRIPS


@pytest.mark.slow
def test_every_makers_motors_under_faults():
    told = found_by("compile_cases.py", "emulated")
    assert told["found"] == []
    assert told["cases"] > 25


@pytest.mark.slow
@pytest.mark.skipif(find_spec("rclpy") is None, reason="rclpy is not installed")
def test_controller_nodes_compile_before_their_first_command_and_aside_after_it():
    told = found_by("ros/compile_cases.py")
    assert told["found"] == []
    assert {"PidGravity", "ComputedTorque", "Lqr", "TaskSpace"} <= set(told["seen"])


def broken(*_):
    raise RuntimeError("no compiler")


@pytest.mark.parametrize(
    ("part", "does", "said"),
    [
        ("warm_up", broken, "compilation failed: no compiler"),
        ("cold", lambda: ["near_limits"], "functions not compiled = near_limits; expected none"),
    ],
)
def test_an_arm_is_not_activated_before_all_is_compiled(monkeypatch, part, does, said):
    rig = Rig()
    rig.driver.configure()
    rig.look()
    with monkeypatch.context() as patch:
        patch.setattr(activation, part, does)
        with pytest.raises(DriverFault, match=said):
            rig.driver.activate()
    assert rig.driver.status is DriverState.INACTIVE
    assert rig.torque == [False] * 3
    rig.driver.activate()
    assert rig.driver.status is DriverState.ACTIVE


def test_what_is_declared_after_configure_is_compiled_before_torque():
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


def test_inverse_kinematics_of_tool_controllers_are_compiled_for_those_alone(tmp_path):
    script = tmp_path / "on_demand.py"
    script.write_text(ON_DEMAND)
    before, added, cold = found_by(script)
    rates = "arm_dynamics.dynamics.kinematics.closed_loop_ik.clik_step"
    assert before
    assert rates not in before
    assert rates in added
    assert cold == []


def test_a_declared_function_has_one_version_for_all_arrays():
    @compiled_for(VECTOR, NUMBER, VECTOR_OUT)
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
        scaled(np.arange(3), 2.0, np.empty(3))  # whole numbers would need another version
    with pytest.raises(TypeError):
        scaled(fixed, 2.0, fixed)  # is not written to


class Foreign(Controller):
    """A user's controller, with compiled code of its own."""

    refuses = False

    def update(self, state, reference, dt):
        if self.refuses:
            raise CommandRejected("not here")
        return Command("effort", self.law(state.q, reference.q, dt), state.time)

    def __init__(self, arm, gains=None):
        super().__init__(arm, gains)

        @numba.njit
        def law(q, wanted, dt):
            return (wanted - q) * dt

        self.law = law


def test_a_users_controller_is_compiled_by_its_rehearsal():
    law, watch = Foreign(Rig().driver.arm), CompileWatch()
    state = State.of(np.zeros(3))
    try:
        warm_up_controller(law)
        watch.armed = True
        law.update(state, Reference.hold(state.q), 0.01)
        assert watch.found == []
        law.refuses = True
        warm_up_controller(law)  # that is for the loop to report
    finally:
        watch.end()
