"""No node uses the shared memory of Fast DDS, whose checks block publishers for 333 ms."""

import os
from pathlib import Path

import pytest

from arm_dynamics.ros.runtime import dds_transport
from arm_dynamics.ros.runtime.dds_transport import (
    BUILTIN,
    LOCALHOST_ONLY,
    PROFILES,
    RANGE,
    avoid_shared_memory,
)

from .link import ROOT

PROFILE = str(ROOT / "config" / "loopback.xml")
SETTINGS = (BUILTIN, LOCALHOST_ONLY, RANGE, *PROFILES, "ROS_STATIC_PEERS", "ROS_DISCOVERY_SERVER")


@pytest.fixture
def environment(monkeypatch, tmp_path):
    """Return a function that sets variables of discovery and transport, initially unset."""
    monkeypatch.chdir(tmp_path)
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)

    def setting(**values):
        for name, value in values.items():
            monkeypatch.setenv(name, value)

    return setting


def present():
    return {name: os.environ[name] for name in SETTINGS if name in os.environ}


@pytest.mark.parametrize("chosen", ["", "SUBNET", "SYSTEM_DEFAULT", "OFF"])
def test_the_range_stays_and_udp_is_chosen(environment, chosen):
    environment(**({RANGE: chosen} if chosen else {}))
    before = present()
    assert avoid_shared_memory() == ""
    assert present() == before | {BUILTIN: "UDPv4"}


@pytest.mark.parametrize("given", [{RANGE: "LOCALHOST"}, {LOCALHOST_ONLY: "1", RANGE: "SUBNET"}])
@pytest.mark.parametrize("profile", [{}, {PROFILES[0]: PROFILE}])
def test_localhost_becomes_udp_on_127_0_0_1(environment, given, profile):
    environment(**given, **profile)
    assert avoid_shared_memory() == ""
    expected = dict.fromkeys(PROFILES, PROFILE)
    assert present() == expected | {BUILTIN: "UDPv4", RANGE: "SYSTEM_DEFAULT"}
    assert avoid_shared_memory() == ""  # in a child too


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (PROFILES[0], "/etc/mine.xml"),
        (PROFILES[1], "/etc/mine.xml"),
        ("ROS_STATIC_PEERS", "192.0.2.7"),
        ("ROS_DISCOVERY_SERVER", "127.0.0.1:11811"),
    ],
)
def test_user_settings_are_kept_with_a_warning(environment, name, value):
    environment(**{RANGE: "LOCALHOST", name: value})
    warning = avoid_shared_memory()
    for words in (f"{RANGE}=LOCALHOST", f"{name}={value}", "333 ms", f"{PROFILES[0]}={PROFILE}"):
        assert words in warning
    assert present() == {RANGE: "LOCALHOST", name: value, BUILTIN: "UDPv4"}


def test_a_profile_in_the_folder_and_transports_of_the_user_are_warned_of(environment):
    environment(**{BUILTIN: "DEFAULT"})
    assert avoid_shared_memory().startswith(f"{BUILTIN}=DEFAULT: messages")
    Path("DEFAULT_FASTRTPS_PROFILES.xml").touch()
    environment(**{RANGE: "LOCALHOST"})
    assert "DEFAULT_FASTRTPS_PROFILES.xml" in avoid_shared_memory()


def test_other_middleware_keeps_its_settings(environment, monkeypatch):
    monkeypatch.setattr(dds_transport, "get_rmw_implementation_identifier", lambda: "rmw_zenoh_cpp")
    environment(**{RANGE: "LOCALHOST"})
    assert avoid_shared_memory() == ""
    assert present() == {RANGE: "LOCALHOST"}


def test_nodes_in_the_range_localhost_communicate_without_shared_memory(ros, environment):
    environment(**{RANGE: "LOCALHOST"})
    states = ros.states()
    nodes = [ros.start("simulator"), ros.start("joint_controller", ROOT / "config/five_dof.yaml")]
    ros.diagnosis("joint_controller", lambda v: v["message"] == "running")
    ros.wait_for(lambda: len(states), "no states")
    ready = "ready: 'five_dof' accepts commands"
    ros.wait_for(lambda: ready in nodes[0].output, "the simulator did not log its first command")
    for node in nodes:
        mapped = Path(f"/proc/{node.pid}/maps").read_text()
        assert "librmw_fastrtps" in mapped
        assert "/dev/shm/fastrtps" not in mapped, node.name
    assert ros.stop_all() == [0, 0]
