"""Arms without masses: kinematics, display and position commands, and nothing that needs masses."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from arm_dynamics import Simulation, load_arm
from arm_dynamics.batch import rollout
from arm_dynamics.cli.main import main
from arm_dynamics.collision.self_collision import SelfCollision
from arm_dynamics.control.config import build_controller
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.state import Command, State
from arm_dynamics.dynamics import gravity, inverse_kinematics, mass_matrix, rnea, tool_pose
from arm_dynamics.hardware.mit_can.bus import MitCan
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.hardware.transmission import Transmission
from arm_dynamics.identification import compare, excite, identify
from arm_dynamics.model.audit.fault import UrdfRejected
from arm_dynamics.model.hardware_info import read_hardware_info
from arm_dynamics.model.load import parse_arm
from arm_dynamics.recording import MotionData
from arm_dynamics.simulation import linearize
from arm_dynamics.viewer.drawing import load_visuals

DATA = Path(__file__).parents[1] / "data" / "urdf"
Q = np.array([0.3, 0.5, -0.2])
REMEDY = (
    r"arm 'arm': masses of the moving links = 0 kg; expected above 0 for .*"
    r"audit .*only.urdf --estimate-inertia KG --output NEW"
)
INERTIA = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'


@cache
def arm():
    with pytest.warns(RuntimeWarning, match="no moving link has a mass: the arm has kinematics"):
        return load_arm(DATA / "kinematics_only.urdf")


def test_kinematics_display_and_position_commands_work():
    position, _ = tool_pose(arm(), Q)
    found = inverse_kinematics(arm(), position)
    np.testing.assert_allclose(found.position, position, atol=1e-8)
    assert (arm().is_kinematic, arm().tool_frame, arm().nv) == (True, "l3", 3)
    assert np.isinf([*arm().effort_limit, *arm().velocity_limit]).all()
    assert load_visuals(arm().urdf, DATA).base_link == "base_link"
    assert SelfCollision(arm(), 0.01, np.zeros(3)).find(Q) is None
    controller = build_controller(arm(), "position")
    assert controller.interface == "position"


def motion():
    t = np.linspace(0, 1, 101)
    zero = np.zeros((101, 3))
    return MotionData(("j1", "j2", "j3"), t, zero, zero)


@pytest.mark.parametrize(
    "use",
    [
        Simulation,
        build_controller,
        lambda arm: build_controller(arm, "gravity_compensation"),
        lambda arm: build_controller(arm, "resolved_rate"),
        lambda arm: mass_matrix(arm, Q),
        lambda arm: gravity(arm, Q),
        lambda arm: rnea(arm, Q, Q, Q),
        lambda arm: linearize(arm, State.of(Q), Command("effort", np.zeros(3))),
        lambda arm: rollout(arm, State.of(Q), np.zeros((1, 3)), 1e-3, interface="effort"),
        excite,
        lambda arm: identify(arm, [motion()]),
        lambda arm: compare(arm, motion()),
    ],
)
def test_all_that_needs_masses_names_them_and_the_remedy(use):
    with pytest.raises(InvalidValue, match=REMEDY):
        use(arm())


@pytest.mark.parametrize(
    "words",
    [
        ("stability",),
        ("sim", "--headless"),
        ("montecarlo",),
        ("tune",),
        ("excite", "--output", "x"),
    ],
)
def test_commands_that_need_masses_end_with_code_2(words, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    if words[0] == "sim":
        pytest.importorskip("rclpy")
    command, *options = words
    with pytest.raises(SystemExit) as ended:
        main([command, str(DATA / "kinematics_only.urdf"), *options])
    assert ended.value.code == 2
    assert "masses of the moving links = 0 kg" in capsys.readouterr().err


def test_of_an_arm_with_masses_each_moving_body_needs_one():
    text = (DATA / "kinematics_only.urdf").read_text()
    body = f'<link name="l1"><inertial><mass value="1"/>{INERTIA}</inertial></link>'
    text = text.replace('<link name="l1"/>', body)
    with pytest.raises(UrdfRejected) as rejected:
        parse_arm(text)
    assert "link 'l2': <inertial> is missing; joint 'j2' moves it" in str(rejected.value)
    assert "joint 'j1' <limit effort>: effort is missing" in str(rejected.value)


def test_the_root_and_zero_masses_do_not_count():
    text = (DATA / "kinematics_only.urdf").read_text()
    for link, mass in (("l1", "0.0"), ("base_link", "4")):
        body = f'<link name="{link}"><inertial><mass value="{mass}"/>{INERTIA}</inertial></link>'
        text = text.replace(f'<link name="{link}"/>', body.replace('"1"', f'"{float(mass):g}"'))
    with pytest.warns(RuntimeWarning, match="no moving link has a mass"):
        assert parse_arm(text).is_kinematic


def test_without_masses_no_gravity_effort_is_sent_to_motors():
    """CubeMars motors receive it in addition to a position."""
    known = load_arm("seven_dof_can")
    text = re.sub(r"<inertial>.*?</inertial>", "", known.urdf, flags=re.DOTALL)
    with pytest.warns(RuntimeWarning, match="no moving link has a mass"):
        kinematic = parse_arm(text)
    wired = read_hardware_info(known)
    bus = MitCan(wired.motors, wired.settings)
    for one, sent in ((known, True), (kinematic, False)):
        assert Transmission(one, wired.motors, bus, "position").accepts_feedforward is sent
    with pytest.raises(InvalidValue, match="expected above 0 for interface 'effort'"):
        MotorBusDriver(kinematic, bus)
