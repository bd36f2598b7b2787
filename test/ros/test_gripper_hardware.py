"""The gripper action on the emulated Feetech servos of so101, in real time."""

from xml.etree import ElementTree

import numpy as np
import pytest
from action_msgs.msg import GoalStatus
from control_msgs.action import ParallelGripperCommand
from emulators.served import served
from sensor_msgs.msg import JointState

from arm_dynamics.hardware.emulation import feetech_servos as servo
from arm_dynamics.hardware.feetech.registers import STEP

from .driven import Driven
from .link import ROOT
from .test_hardware_lines import PATIENT

pytestmark = pytest.mark.hardware

BLOCKED = 0.6
"""Position [rad] at which an object blocks the gripper: an end stop of the emulated arm."""
STIFFNESS = servo.STALL * 32 / 1000 / STEP
"""Effort per position error [N·m/rad] of an emulated servo with the gain 32."""
EFFORT = 0.5
GRIPPER = 5


class Servos(Driven):
    """The hardware node and a position controller on the emulated servos of a blocked gripper."""

    def __init__(self, folder):
        super().__init__()
        tree = ElementTree.parse(ROOT / "urdf/so101.urdf").getroot()
        tree.find("joint[@name='gripper']/limit").set("lower", str(BLOCKED))
        tree.find("ros2_control/joint[@name='gripper']//param[@name='initial_value']").text = "1.0"
        (folder / "blocked.urdf").write_text(ElementTree.tostring(tree, encoding="unicode"))
        self.arm = served("feetech", folder / "port", "--arm", str(folder / "blocked.urdf"))
        options = {"arm": "so101", "port": folder / "port", "command_interface": "position"}
        self.drives(self.ros.start("hardware", **options, **PATIENT))
        gripper = {"gripper.stiffness": STIFFNESS, "gripper.stall_timeout": 0.5}
        self.ros.start("joint_controller", arm="so101", controller="position", **gripper)
        assert self.change_state("configure")
        self.activate()

    def gripped(self, position, **fields):
        """Return the answer to a goal."""
        command = JointState(name=["gripper"], position=[position], **fields)
        client = self.ros.action(ParallelGripperCommand, "joint_controller/gripper_cmd")

        def accepted():
            goal = ParallelGripperCommand.Goal(command=command)
            handle = self.ros.answer(client.send_goal_async(goal))
            return handle if handle.accepted else None

        handle = self.ros.wait_for(accepted, "rejected")
        return self.ros.answer(handle.get_result_async())

    def state(self):
        return self.arm.request("state")

    def close(self):
        super().close()
        self.arm.close()


@pytest.fixture
def servos(tmp_path):
    driven = Servos(tmp_path)
    yield driven
    driven.close()


def test_the_action_opens_stalls_on_an_object_and_holds_the_effort(servos):
    answer = servos.gripped(1.3)
    assert (answer.status, answer.result.reached_goal) == (GoalStatus.STATUS_SUCCEEDED, True)
    answer = servos.gripped(0.2, effort=[EFFORT])
    assert (answer.status, answer.result.stalled) == (GoalStatus.STATUS_ABORTED, True)
    assert answer.result.state.position[0] == pytest.approx(BLOCKED, abs=0.05)
    efforts = [servos.state()["effort"][GRIPPER] for _ in range(20) if servos.news()]
    # a servo resolves one step of its position, at half a step of rounding
    np.testing.assert_allclose(np.abs(efforts), EFFORT, atol=1.5 * STIFFNESS * STEP)
    assert servos.gripped(1.2).result.reached_goal
