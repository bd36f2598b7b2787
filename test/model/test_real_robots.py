"""Third-party arms: findings of the audit, and control in simulation."""

import re
import warnings
from dataclasses import replace
from functools import cache
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlparse

import numpy as np
import pinocchio as pin
import pytest

from arm_dynamics import ControlLoop, Plant, Simulation, load_arm
from arm_dynamics.control.config import build_controller
from arm_dynamics.control.controllers.computed_torque import ComputedTorque
from arm_dynamics.control.controllers.pid import PidGravity
from arm_dynamics.control.controllers.task_space import TaskSpace
from arm_dynamics.control.controllers.task_space_base import to_task_reference
from arm_dynamics.control.monitors import ReachabilityMonitor
from arm_dynamics.core.errors import ConfigError, UnknownName
from arm_dynamics.core.state import Command, Reference, State
from arm_dynamics.dynamics import rigid_body
from arm_dynamics.hardware.simulation_driver import SimulationDriver
from arm_dynamics.model.audit import audit_urdf
from arm_dynamics.model.audit.effort import effort_limit_faults, gravity_torques
from arm_dynamics.model.audit.robot import Robot
from arm_dynamics.model.mesh_files import candidates
from arm_dynamics.model.robot_description import robot_description
from arm_dynamics.model.robot_packages import FILES as FILES_BY_NAME
from arm_dynamics.model.robot_packages import gripper_joints
from arm_dynamics.model.xml_source import parse_xml, read_text
from arm_dynamics.safety.events import Events

try:
    FILES = {str(file): file for file in metadata.files("example-robot-data") or ()}
except metadata.PackageNotFoundError:
    pytest.skip("example-robot-data is not installed (extra: test)", allow_module_level=True)

PAGE = Path(__file__).parents[2] / "docs" / "real_robots.md"
ROOT = "a root link's inertia has no effect"
GEARS = ("warning", "<transmission>")
# Arm: file, joints to lock, findings of the audit without locks (severity, element, problem).
ARMS = {
    "panda": (
        "panda_description/urdf/panda.urdf",
        ("panda_finger_joint1", "panda_finger_joint2"),
        (("warning", "link 'panda_link0' <inertial>", ROOT),),
    ),
    "ur5": (
        "ur_description/urdf/ur5_robot.urdf",
        (),
        ((*GEARS, "'shoulder_pan_trans' and 5 more are ignored"),),
    ),
    "xarm7": (
        "xarm_description/urdf/xarm7.urdf",
        (),
        (
            (
                "warning",
                "<ros2_control> <plugin>",
                "'uf_robot_hardware/UFRobotSystemHardware' is ignored",
            ),
            (*GEARS, "'tran1' and 6 more are ignored"),
        ),
    ),
    "so101": (
        "so_arm_description/urdf/so101.urdf",
        (),
        (
            ("warning", "link 'base_link' <inertial>", ROOT),
            (*GEARS, "'gripper_trans' and 5 more are ignored"),
        ),
    ),
}
NAMES = tuple(ARMS)
HELD = 5e-3
"""Maximum error [rad] after two seconds."""
# 1 N·m of dry friction and damping in every joint: the default gains do not move it.
STRONG = {f"joint{i}": {"p": 400.0, "i": 1600.0, "d": 0.0} for i in range(1, 5)} | {
    f"joint{i}": {"p": 80.0, "i": 320.0, "d": 0.0} for i in range(5, 8)
}


def path_of(name):
    (file,) = (file for path, file in FILES.items() if path.endswith(f"/robots/{ARMS[name][0]}"))
    return Path(file.locate())


@cache
def arm_of(name):
    """Return the arm with ``middle`` as initial configuration, which also defines the default
    gains.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        arm = load_arm(path_of(name), ARMS[name][1])
    pairs = zip(arm.joints, middle(arm).tolist(), strict=True)
    return replace(arm, joints=tuple(replace(joint, initial=q) for joint, q in pairs))


def middle(arm):
    """Return the zero configuration; the middle of the range for joints with a limit near zero."""
    q = np.array(arm.configuration("zero"))
    near = (q < arm.lower + 0.2) | (q > arm.upper - 0.2)
    q[near] = (arm.lower + arm.upper)[near] / 2
    return q


def random_positions(arm, count=20):
    return np.random.default_rng(0).uniform(arm.lower, arm.upper, (count, arm.nv))


@pytest.mark.parametrize("name", NAMES)
def test_the_audit_finds_exactly_the_listed_faults(name):
    path, expected = path_of(name), ARMS[name][2]
    faults = audit_urdf(path.read_text(), path.parent)
    assert len(faults) == len(expected), faults
    for fault, (severity, element, problem) in zip(faults, expected, strict=True):
        assert (fault.severity, fault.element) == (severity, element)
        assert problem in f"{fault.value!r} {fault.problem}"


# Springs of a counterbalance or a suspension are not part of a URDF.
WEAK = {
    "baxter.urdf": {"left_s1", "right_s1"},
    "pr2.urdf": {"l_shoulder_lift_joint", "r_shoulder_lift_joint"},
    "simple_humanoid.urdf": {"WAIST_P", "WAIST_R"},
    "simple_humanoid_classical.urdf": {"WAIST_P", "WAIST_R"},
    "tiago_dual.urdf": {"suspension_left_joint", "suspension_right_joint"},
}


def test_effort_limits_of_all_robots_hold_their_links():
    """Only of these joints they do not; the gravity torques are those of Pinocchio."""
    found = {}
    for path in {str(Path(f.locate())) for name, f in FILES.items() if name.endswith(".urdf")}:
        robot = Robot(parse_xml(read_text(Path(path))))
        joints = {fault.element.split("'")[1] for fault in effort_limit_faults(robot)}
        found.update({Path(path).name: joints} if joints else {})
    assert found == WEAK


@pytest.mark.parametrize("name", NAMES)
def test_gravity_torques_of_the_audit_are_those_of_the_model(name):
    arm, q = arm_of(name), random_positions(arm_of(name))
    positions = dict(zip(arm.joint_names, q.T, strict=True))
    found = gravity_torques(Robot(parse_xml(arm.urdf), frozenset(arm.locked)), positions)
    expected = np.array([rigid_body.gravity(arm, row) for row in q])
    torques = np.stack([found[joint] for joint in arm.joint_names], axis=1)
    np.testing.assert_allclose(torques, expected, rtol=0, atol=1e-12)


def test_one_finger_of_panda_follows_the_other():
    with pytest.warns(RuntimeWarning, match="panda_link0"):
        arm = load_arm(path_of("panda"))
    assert arm.gripper_joints == arm.joint_names[7:] == ("panda_finger_joint1",)
    assert arm.mimic_joints == (
        ("panda_finger_joint2", "prismatic", "panda_finger_joint1", 1.0, 0.0),
    )
    assert arm_of("panda").joint_names == arm.joint_names[:7]


@pytest.mark.parametrize("name", NAMES)
def test_loading_gives_one_warning_per_finding(name):
    """One for each warning of the audit."""
    path, lock, expected = path_of(name), ARMS[name][1], ARMS[name][2]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load_arm(path, lock)
    assert len(caught) == sum(severity == "warning" for severity, *_ in expected)


@pytest.mark.parametrize("name", NAMES)
def test_meshes_resolve_or_are_warned_of(name, tmp_path):
    """package:// is resolved above the file; the same text without a file gives one warning."""
    path = path_of(name)
    text = path.read_text()
    meshes = set(re.findall(r'<mesh[^>]*filename="([^"]+)"', text))
    assert meshes
    for mesh in meshes:
        assert mesh.startswith("package://example-robot-data/")
        assert any(place.is_file() for place in candidates(mesh, path.parent)), mesh
    unknown = [fault for fault in audit_urdf(text, tmp_path) if "package" in fault.problem]
    assert [fault.severity for fault in unknown] == ["warning"]
    assert "example-robot-data" in unknown[0].problem


@pytest.mark.parametrize("name", NAMES)
def test_rviz_finds_every_mesh_of_the_published_description(name, monkeypatch):
    """resource_retriever opens file:// and ament packages; here no ament package is installed."""
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    meshes = re.findall(r'<mesh[^>]*filename="([^"]+)"', robot_description(arm_of(name)))
    assert len(meshes) >= 14
    for mesh in meshes:
        url = urlparse(mesh)
        assert url.scheme == "file"
        assert Path(unquote(url.path)).is_file()


@pytest.mark.parametrize("name", NAMES)
def test_mass_matrix_is_symmetric_and_positive(name):
    arm = arm_of(name)
    for q in random_positions(arm):
        M = rigid_body.mass_matrix(arm, q)
        np.testing.assert_array_equal(M, M.T)
        assert np.linalg.eigvalsh(M)[0] > 0


@pytest.mark.parametrize("name", NAMES)
def test_inverse_dynamics_inverts_forward_dynamics(name):
    arm = arm_of(name)
    rng = np.random.default_rng(1)
    for q in random_positions(arm):
        v, tau = rng.uniform(-1, 1, arm.nv), rng.uniform(-1, 1, arm.nv)
        a = rigid_body.aba(arm, q, v, tau)
        np.testing.assert_allclose(rigid_body.rnea(arm, q, v, a), tau, rtol=0, atol=1e-10)


@pytest.mark.quick(1)
@pytest.mark.parametrize("name", NAMES)
def test_arms_are_held_under_unmodeled_gravity(name):
    """In a tilted field that the controller does not model; start 0.02 rad away from the goal."""
    arm = arm_of(name)
    goal = arm.configuration("initial")
    controller = PidGravity(arm, STRONG if name == "xarm7" else None)
    simulation = Simulation(arm.with_gravity([0.5, 0.5, -9.78]), q=goal - 0.02)
    loop = ControlLoop(SimulationDriver(arm, simulation), controller)
    loop.step()
    loop.hold(dict(zip(arm.joint_names, goal, strict=True)))
    for _ in range(1000):
        assert loop.step() is not None
    assert np.isfinite(simulation.state.v).all()
    np.testing.assert_allclose(simulation.state.q, goal, rtol=0, atol=HELD)


@pytest.mark.quick(2)
@pytest.mark.parametrize("mass", [0.0, 1.0])
@pytest.mark.parametrize("name", NAMES)
def test_steps_of_computed_torque_have_small_overshoot(name, mass):
    """0.02 rad of all joints at the same time, with and without a modeled payload of 1 kg."""
    arm = arm_of(name).with_payload(mass)
    goal = arm.configuration("initial")
    simulation = Simulation(arm, q=goal - 0.02, dt=2.5e-4)
    loop = ControlLoop(SimulationDriver(arm, simulation), ComputedTorque(arm))
    loop.step()
    loop.hold(dict(zip(arm.joint_names, goal.tolist(), strict=True)))
    beyond = np.zeros(arm.nv)
    for _ in range(750):
        assert loop.step() is not None
        beyond = np.maximum(beyond, simulation.state.q - goal)
    assert (beyond < 0.2 * 0.02).all()
    np.testing.assert_allclose(simulation.state.q, goal, rtol=0, atol=HELD)


@pytest.mark.parametrize("name", ["panda", "ur5", "xarm7"])
def test_an_arm_without_a_parameter_file_has_computed_torque_by_default(name):
    assert isinstance(build_controller(arm_of(name)), ComputedTorque)


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", NAMES)
def test_without_effort_the_arm_falls_and_stays_finite(name):
    """A tilted arm sinks against friction and end stops."""
    arm = arm_of(name).with_gravity([3.0, 0, -9.3])
    start = State.of(arm.configuration("initial"))
    after = Plant(arm).step(start, Command("effort", np.zeros(arm.nv)), 1e-4, steps=5000)
    assert np.isfinite(after.q).all()
    lost = rigid_body.potential_energy(arm, start.q) - rigid_body.potential_energy(arm, after.q)
    assert lost > 1e-3 * abs(rigid_body.potential_energy(arm, start.q))


@pytest.mark.parametrize("name", NAMES)
def test_the_page_lists_the_same_findings(name):
    file, lock, expected = ARMS[name]
    shown = f"arm-dynamics audit {name if name in FILES_BY_NAME else f'$ROBOTS/{file}'}`"
    (row,) = [line for line in PAGE.read_text("utf-8").splitlines() if shown in line]
    assert set(gripper_joints(name)) == set(lock)  # locked by the name
    for severity, element, _ in expected:
        assert f"{severity}: {element}" in row.replace("`", "")
    assert ("no faults" in row) == (not expected)


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("q", "position", "turned"),
    [
        (
            (0.34022, 2.13148, -np.pi, np.pi, 2.57159, 0.21936),
            (-0.4864, -0.0944, 0.15297),
            (0.69695, -1.21532, -0.52972),
        ),
        (
            (-1.76672, -2.90532, np.pi, 2.45561, -2.85696, 2.37636),
            (-0.0637, 0.16111, -0.07648),
            (-0.45777, 2.22295, 1.46393),
        ),
        (
            (-1.73835, np.pi, np.pi, 0.55499, -0.92918, -2.56416),
            (0.45109, 0.4805, -0.38771),
            (1.67964, -0.13095, 1.72631),
        ),
    ],
)
def test_a_ur5_whose_elbow_is_pressed_against_its_limit_comes_to_rest(q, position, turned):
    """The gravity torque of a folded elbow drops below its breakaway effort and rises again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        arm = load_arm(path_of("ur5")).with_actuator("ideal")
    controller, events, start = TaskSpace(arm), Events(), np.clip(q, arm.lower, arm.upper)
    monitor, held = (
        ReachabilityMonitor(controller, events),
        to_task_reference(arm, Reference.hold(start)),
    )
    task = replace(held, position=np.array(position), rotation=pin.exp3(np.array(turned)))
    controller.reset(State.of(start))
    fastest = np.zeros(2250)
    for k in range(fastest.size):
        controller.reachable_reference(task, 4e-3 * (k > 0))
        monitor.update()
        fastest[k] = np.abs(controller.clik.v).max()
    assert fastest[-250:].max() < 0.02
    assert monitor.stalled
    assert events.counts["stalled"] == 1


@pytest.mark.parametrize("name", ["panda", "ur5", "xarm7"])
def test_an_arm_of_the_package_has_a_name(name):
    """Its gripper is locked; locked joints of the user are added."""
    file, lock, _ = ARMS[name]
    path = next(f for f in FILES.values() if str(f).endswith(file)).locate()
    named, loaded = load_arm(name), load_arm(path, lock)
    assert (named.joint_names, named.locked) == (loaded.joint_names, loaded.locked)
    assert named.source == loaded.source
    first = named.joint_names[0]
    assert set(load_arm(name, [first]).locked) == {*lock, first}


def test_an_unknown_name_lists_those_of_the_package():
    with pytest.raises(UnknownName, match=r"did you mean 'panda'\?"):
        load_arm("pand")
    with pytest.raises(UnknownName):
        load_arm("nothing_description")


def test_a_description_of_robot_descriptions_is_loaded_by_its_module(tmp_path, monkeypatch):
    package = tmp_path / "robot_descriptions"
    package.mkdir()
    (package / "__init__.py").touch()
    urdf = next(f for f in FILES.values() if str(f).endswith("panda.urdf")).locate()
    (package / "panda_description.py").write_text(f"URDF_PATH = {str(urdf)!r}")
    (package / "mjcf_description.py").write_text("MJCF_PATH = 'x.xml'")
    (package / "offline_description.py").write_text("raise OSError('no network')")
    monkeypatch.syspath_prepend(tmp_path)
    assert load_arm("panda_description").joint_names == load_arm("panda").joint_names
    with pytest.raises(ConfigError, match="mjcf_description: no URDF"):
        load_arm("mjcf_description")
    with pytest.raises(ConfigError, match="no network"):
        load_arm("offline_description")
