"""Arms in separate namespaces: their topics and diagnostics."""

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

from arm_dynamics.ros.topics.diagnostics import DiagnosticsSummary

from .link import _yaml, stamp


def diagnostics_of(name, hardware="arm_dynamics", level=DiagnosticStatus.OK, **values):
    """Return a DiagnosticArray with one status; '__' stands for a space."""
    pairs = [KeyValue(key=k.replace("__", " "), value=v) for k, v in values.items()]
    status = DiagnosticStatus(
        name=name, hardware_id=hardware, level=level, message=f"of {name}", values=pairs
    )
    return DiagnosticArray(status=[status])


ALL = (
    diagnostics_of("simulator", commands__per__second="1"),
    diagnostics_of("left/simulator", commands__per__second="2"),
    diagnostics_of("right/simulator", level=DiagnosticStatus.WARN, commands__per__second="3"),
    diagnostics_of("left/deep/simulator", commands__per__second="4"),
    diagnostics_of("left/joint_controller", commands__per__second="5", joint__of__max__error="R1"),
    diagnostics_of("right/joint_controller", commands__per__second="6", joint__of__max__error="R2"),
    diagnostics_of("left/simulator", hardware="other", commands__per__second="7"),
)


@pytest.mark.parametrize(
    ("namespace", "rate", "joint"),
    [("/", 1, None), ("/left", 2, "R1"), ("/right", 3, "R2"), ("/left/deep", 4, None)],
)
def test_a_status_is_that_of_one_namespace(namespace, rate, joint):
    status = DiagnosticsSummary(namespace)
    for message in ALL:
        status.read(message)
    assert status.number("commands per second") == rate
    assert status.values.get("joint of max error") == joint
    assert status.updates == 1
    assert set(status.messages) == {"simulator"} | ({"joint_controller"} if joint else set())
    assert status.ok["simulator"] is (namespace != "/right")
    assert ("simulator" in status.status_values()) is (namespace == "/right")


@pytest.mark.slow
def test_two_arms_run_side_by_side(ros):
    """Simulator and controller of each namespace find only each other.

    The second arm uses the /clock of the first one. Both report another source of /clock.
    """
    states = {side: ros.record(JointState, f"/{side}/joint_states") for side in ("left", "right")}
    outside = ros.states()
    start(ros, "left", ("simulator", "joint_controller"), update_rate=250.0)
    start(ros, "right", ("composed",), update_rate=125.0, publish_clock=False, use_sim_time=True)
    diagnostics = ros.record(DiagnosticArray, "/diagnostics")

    def status(side):
        found = DiagnosticsSummary(f"/{side}")
        for message in diagnostics.messages():
            found.read(message)
        return found

    for side, rate in {"left": 250, "right": 125}.items():
        ros.wait_for(
            lambda side=side, rate=rate: (
                0.5 * rate < (status(side).number("commands per second") or 0) < 1.5 * rate
            ),
            f"no commands at {rate} Hz in /{side}",
        )
        both = {"simulator", "joint_controller"}  # each reports once a second, not together
        ros.wait_for(
            lambda side=side, both=both: (
                {name.partition(":")[0] for name in status(side).messages} == both
            ),
            f"not both report in /{side}",
        )
        assert states[side].publishers == 1
        assert len(states[side]) > 0
    first, second = (stamp(states[side].newest) for side in ("left", "right"))
    assert first == pytest.approx(second, abs=0.5)
    times = [stamp(m) for m in states["right"].messages()]
    assert np.diff(times) == pytest.approx(0.008)
    ros.publish(Clock(), "/clock")
    for side in ("left", "right"):
        words = ("several publishers on /clock", "/left/simulator", "/test_listener")
        ros.wait_for(
            lambda side=side, words=words: all(
                word in status(side).messages["simulator"] for word in words
            ),
            f"/{side} names no second source of /clock",
        )
    assert stamp(states["right"].newest) > first  # the second source's time does not count
    assert outside.publishers == 0
    assert status("").updates == 0
    assert ros.stop_all() == [0, 0, 0]


def start(ros, namespace, modules, **parameters):
    words = [w for k, v in parameters.items() for w in ("-p", f"{k}:={_yaml(v)}")]
    for module in modules:
        ros.launch(f"ros.nodes.{module}", "--ros-args", "-r", f"__ns:=/{namespace}", *words)
