"""The gripper actions on emulated motors of so101 in real time: Feetech and Dynamixel."""

from contextlib import closing
from xml.etree import ElementTree

import numpy as np
import pytest
from action_msgs.msg import GoalStatus
from control_msgs.action import GripperCommand, ParallelGripperCommand
from control_msgs.msg import GripperCommand as Command
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


CURRENT = 2.69e-3 * 4.1 / 2.3
"""Effort [N·m] per current unit of an emulated XM430-W350."""
ACTIONS = {
    ParallelGripperCommand: "joint_controller/gripper_cmd",
    GripperCommand: "joint_controller/gripper_action",
}


class Servos(Driven):
    """The hardware node and a controller on the emulated motors of a blocked gripper."""

    def __init__(self, folder, driver, motor, controller, **options):
        super().__init__()
        tree = ElementTree.parse(ROOT / "urdf/so101.urdf").getroot()
        changed = {"driver": driver, "motor": motor}
        for param in tree.iter("param"):
            param.text = changed.get(param.get("name"), param.text)
        arm = folder / "arm.urdf"
        arm.write_text(ElementTree.tostring(tree, encoding="unicode"))
        tree.find("joint[@name='gripper']/limit").set("lower", str(BLOCKED))
        tree.find("ros2_control/joint[@name='gripper']//param[@name='initial_value']").text = "1.0"
        (folder / "blocked.urdf").write_text(ElementTree.tostring(tree, encoding="unicode"))
        self.arm = served(driver, folder / "port", "--arm", str(folder / "blocked.urdf"))
        options = {"arm": arm, "port": folder / "port", **options}
        self.drives(self.ros.start("hardware", **options, **PATIENT))
        gripper = {"gripper.stiffness": STIFFNESS, "gripper.stall_timeout": 0.5}
        self.ros.start("joint_controller", arm=arm, controller=controller, **gripper)
        assert self.change_state("configure")
        self.activate()

    def sent(self, goal):
        """Return an accepted goal: the controller accepts goals once it has a state."""
        kind = next(kind for kind in ACTIONS if isinstance(goal, kind.Goal))
        client = self.ros.action(kind, ACTIONS[kind])

        def accepted():
            handle = self.ros.answer(client.send_goal_async(goal))
            return handle if handle.accepted else None

        return self.ros.wait_for(accepted, "rejected")

    def ended(self, goal):
        """Return the answer to a goal that is sent again if a busy machine interrupts it."""

        def answered():
            answer = self.ros.answer(self.sent(goal).get_result_async())
            return answer if answer.result.reached_goal or answer.result.stalled else None

        return self.ros.wait_for(answered, "interrupted")

    def canceled(self, goal, at):
        """Return the result of a goal that is canceled when a closing gripper is at ``at``."""
        handle = self.sent(goal)
        ended = handle.get_result_async()
        self.ros.wait_for(lambda: ended.done() or self.news().position[GRIPPER] < at, "no motion")
        self.ros.answer(handle.cancel_goal_async())
        answer = self.ros.answer(ended)
        return answer.result if answer.status == GoalStatus.STATUS_CANCELED else None

    def state(self):
        return self.arm.request("state")

    def close(self):
        super().close()
        self.arm.close()


def parallel(position, **fields):
    """Return a goal of gripper_cmd."""
    command = JointState(name=["gripper"], position=[position], **fields)
    return ParallelGripperCommand.Goal(command=command)


KINDS = {
    # a servo resolves one step of its position, at half a step of rounding
    "feetech": (("sts3215", "position"), {"command_interface": "position"}, 1.5 * STIFFNESS * STEP),
    "dynamixel": (("XM430-W350", "pid_gravity"), {"driver_settings": "latency=0.02"}, CURRENT),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_actions_open_stall_on_an_object_and_hold_the_effort(tmp_path, kind):
    names, options, resolution = KINDS[kind]
    with closing(Servos(tmp_path, kind, *names, **options)) as servos:
        answer = servos.ended(parallel(1.3))
        assert (answer.status, answer.result.reached_goal) == (GoalStatus.STATUS_SUCCEEDED, True)
        answer = servos.ended(parallel(0.2, effort=[EFFORT]))
        assert (answer.status, answer.result.stalled) == (GoalStatus.STATUS_ABORTED, True)
        assert answer.result.state.position[0] == pytest.approx(BLOCKED, abs=0.05)
        efforts = [servos.state()["effort"][GRIPPER] for _ in range(20) if servos.news()]
        np.testing.assert_allclose(np.abs(efforts), EFFORT, atol=resolution)
        opened = GripperCommand.Goal(command=Command(position=1.2, max_effort=EFFORT))
        assert servos.ended(opened).result.reached_goal
        closing_slowly = parallel(0.7, velocity=[0.1])
        result = servos.ros.wait_for(lambda: servos.canceled(closing_slowly, 1.1), "not canceled")
        assert result.state.position[0] < 1.1
