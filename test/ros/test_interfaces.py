"""The interfaces of control_msgs in the test environment equal the official ones."""

import json
from pathlib import Path

import pytest

from . import link  # noqa: F401 - skips without a ROS installation

OFFICIAL = {
    "action/FollowJointTrajectory": "738ebcb7a2d7cfa42f9f1001cc99ce3a"
    "4383d1cfe508015d9be8485e4b1c66f6",
    "action/GripperCommand": "e17c0e644eccf14bea84a0a93e0977182872c2eb7873ca6694900059b46dbc84",
    "action/ParallelGripperCommand": "adfd3c1ebe8abc38ebcc0e454b6423d2"
    "91d4010dd5697d14eca5b9be4726ae18",
    "msg/JointTolerance": "c254f9cece0f3b733017b6990fd46d1326e25242d6b8844398c97d9a88e7d648",
    "msg/JointTrajectoryControllerState": "51d8dd89cc624cbe9daaeeb4d80d6de9"
    "b86168ffdc3be41fefc0953e3c26e480",
    "msg/SpeedScalingFactor": "0c240f349f2b74e33e8741f83e0f196ddeb6585923663876ed3c1f51f0566037",
    "srv/QueryTrajectoryState": "4a0935dffef18bc5b9e101c9d03d84e681ecd4cebd724b8f11fde008751a325a",
}
"""Type hashes of control_msgs 5.8 (Jazzy), by interface."""


@pytest.mark.parametrize("interface", OFFICIAL)
def test_type_hashes_are_the_official_ones(interface):
    import control_msgs

    prefix = Path(control_msgs.__file__).parents[4]
    described = prefix / f"share/control_msgs/{interface}.json"
    type_hashes = json.loads(described.read_text())["type_hashes"]
    hashes = {entry["type_name"]: entry["hash_string"] for entry in type_hashes}
    assert hashes[f"control_msgs/{interface}"] == f"RIHS01_{OFFICIAL[interface]}"
