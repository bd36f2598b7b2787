"""MJCF read and written: the dynamics of MuJoCo, of Pinocchio's reader and of a round trip."""

import numpy as np
import pinocchio as pin
import pytest

from arm_dynamics import load_arm
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.dynamics import gravity, mass_matrix, nle
from arm_dynamics.dynamics.kinematics.frames import pose
from arm_dynamics.model.load import parse_arm
from arm_dynamics.model.mjcf.reader import urdf_of_mjcf
from arm_dynamics.model.mjcf.writer import mjcf_of_arm

mujoco = pytest.importorskip("mujoco")

BUNDLED = ("five_dof", "four_joint", "puma560", "seven_dof_can", "so101", "two_link_pb")
OWN = """<mujoco model="own">
  <compiler angle="degree" eulerseq="ZYx" meshdir="meshes"/>
  <include file="defaults.xml"/>
  <worldbody>
    <light pos="0 0 3"/>
    <geom type="plane" size="2 2 0.1"/>
    <body name="pedestal" pos="0.1 0 0.2" euler="30 10 -20">
      <geom type="cylinder" size="0.1 0.2" class="visual"/>
      <body name="upper" pos="0 0 0.3" axisangle="1 1 0 40" childclass="arm">
        <joint name="shoulder" axis="1 0.2 2" pos="0.03 -0.02 0.01" range="-170 170" ref="15"/>
        <geom type="capsule" fromto="0 0 0 0.1 0.2 0.3" size="0.04"/>
        <geom type="box" size="0.02 0.03 0.04" pos="0.1 0 0" zaxis="1 1 1" mass="0.7"/>
        <body name="fore" pos="0.1 0.2 0.3" xyaxes="0 1 0 -1 0.2 1">
          <inertial pos="0.1 0.02 -0.03" mass="1.3" quat="0.9 0.1 0.3 -0.2"
                    diaginertia="0.02 0.03 0.04"/>
          <joint name="elbow" axis="0 1 0" armature="0.4"/>
          <geom type="sphere" size="0.05"/>
          <body name="slider" pos="0.3 0 0">
            <joint name="slide" class="main" type="slide" axis="1 0 0" range="-0.1 0.2"/>
            <geom type="ellipsoid" size="0.03 0.04 0.05"/>
            <geom type="cylinder" size="0.02 0.1" density="500" euler="0 90 0"/>
            <site name="tip" pos="0.1 0 0" quat="0.7 0 0.7 0"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="shoulder" gear="50" ctrlrange="-2 2" name="m1"/>
    <position joint="elbow" kp="100" forcerange="-30 30" name="m2"/>
  </actuator>
  <keyframe><key name="home" qpos="0.2 -0.3 0.05"/></keyframe>
</mujoco>
"""
DEFAULTS = """<mujoco><default><geom rgba="0.5 0.5 0.5 1"/>
  <default class="visual"><geom contype="0" conaffinity="0" group="2"/></default>
  <default class="arm"><joint damping="0.3" frictionloss="0.1" armature="0.05"/>
    <geom density="800"/></default>
</default></mujoco>
"""


def mujoco_dynamics(model, names, q, v):
    """Return mass matrix and bias forces of MuJoCo, by joint names."""
    data = mujoco.MjData(model)
    at = [model.joint(name) for name in names]
    data.qpos[[j.qposadr[0] for j in at]] = q
    data.qvel[[j.dofadr[0] for j in at]] = v
    mujoco.mj_forward(model, data)
    order = [j.dofadr[0] for j in at]
    dense, column = np.zeros((model.nv, model.nv)), np.zeros(model.nv)
    for i in range(model.nv):
        mujoco.mj_mulM(model, data, column, np.eye(model.nv)[i])
        dense[:, i] = column
    return dense[np.ix_(order, order)], data.qfrc_bias[order], data


def states(arm, count=5):
    random = np.random.default_rng(1)
    low, high = np.maximum(arm.lower, -3), np.minimum(arm.upper, 3)
    return [(random.uniform(low, high), random.normal(size=arm.nv)) for _ in range(count)]


def assert_same(actual, expected):
    assert np.abs(actual - expected).max() < 1e-12 * max(1.0, np.abs(expected).max())


@pytest.mark.parametrize("name", BUNDLED)
def test_mujoco_computes_the_dynamics_of_a_written_arm(name):
    arm = load_arm(name)
    model = mujoco.MjModel.from_xml_string(mjcf_of_arm(arm).text)
    for q, v in states(arm):
        M, bias, _ = mujoco_dynamics(model, arm.joint_names, q, v)
        assert_same(M, mass_matrix(arm, q))
        assert_same(bias, nle(arm, q, v))


@pytest.mark.parametrize("name", BUNDLED)
def test_a_round_trip_keeps_the_dynamics_and_the_limits(name, tmp_path):
    arm, file = load_arm(name), tmp_path / "arm.xml"
    file.write_text(mjcf_of_arm(arm).text)
    again = load_arm(file)
    assert again.joint_names == arm.joint_names
    assert again.tool_frame == arm.tool_frame
    assert again.base_frame == arm.base_frame
    for joint, other, actuator in zip(arm.joints, again.joints, arm.actuators, strict=True):
        for value in ("kind", "lower", "upper", "velocity", "effort", "initial"):
            assert getattr(other, value) == getattr(joint, value)
        assert other.damping == pytest.approx(joint.damping + actuator.viscous_friction)
        assert other.friction == pytest.approx(joint.friction + actuator.breakaway_effort)
    for q, v in states(arm):
        assert_same(mass_matrix(again, q), mass_matrix(arm, q))
        assert_same(nle(again, q, v), nle(arm, q, v))
        assert_same(pose(again, q)[0], pose(arm, q)[0])


def test_pinocchio_reads_a_written_arm(tmp_path):
    arm, file = load_arm("puma560"), tmp_path / "arm.xml"
    file.write_text(mjcf_of_arm(arm).text)
    model = pin.buildModelFromMJCF(str(file))
    for q, v in states(arm):
        M = pin.crba(model, model.createData(), q)
        M = np.triu(M) + np.triu(M, 1).T
        if not np.allclose(
            np.diag(M), np.diag(mass_matrix(arm, q))
        ):  # before 3.?: without armature
            M += np.diag(model.armature)
        assert_same(M, mass_matrix(arm, q))
        assert_same(pin.nonLinearEffects(model, model.createData(), q, v), nle(arm, q, v))


@pytest.fixture
def own(tmp_path):
    (tmp_path / "defaults.xml").write_text(DEFAULTS)
    file = tmp_path / "own.xml"
    file.write_text(OWN)
    return file


def test_a_file_of_mujoco_has_its_dynamics_limits_and_frames(own):
    with pytest.warns(RuntimeWarning, match="MJCF") as notes:
        arm = load_arm(own, tool_frame="tip")
    text = " ".join(str(note.message) for note in notes)
    assert "actuators of type position" in text
    assert "ellipsoid" in text
    assert "joint 'slide': effort limit is missing" in text
    assert arm.joint_names == ("shoulder", "elbow", "slide")
    assert [joint.kind for joint in arm.joints] == ["revolute", "continuous", "prismatic"]
    assert arm.effort_limit.tolist() == [100.0, 30.0, 1e6]
    assert arm.lower[0] == pytest.approx(np.radians(-170))
    assert arm.upper[2] == 0.2
    assert arm.configuration("initial").tolist() == [0.2, -0.3, 0.05]
    assert [joint.damping for joint in arm.joints] == [0.3, 0.3, 0.0]
    assert [joint.friction for joint in arm.joints] == [0.1, 0.1, 0.0]
    model = mujoco.MjModel.from_xml_path(str(own))
    for q, v in states(arm):
        M, bias, data = mujoco_dynamics(model, arm.joint_names, q, v)
        assert_same(M, mass_matrix(arm, q))
        assert_same(bias, nle(arm, q, v))
        position, rotation = pose(arm, q)
        assert_same(position, data.site("tip").xpos)
        assert_same(rotation, data.site("tip").xmat.reshape(3, 3))


def test_forces_of_a_step_are_those_of_the_passive_forces(own):
    """Damping, gravity and armature: the acceleration of MuJoCo without friction and contacts."""
    arm = load_arm("puma560")
    model = mujoco.MjModel.from_xml_string(mjcf_of_arm(arm).text)
    model.dof_frictionloss[:] = 0
    model.opt.disableflags |= (
        mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT
    )
    q, v = states(arm)[0]
    tau = 0.5 * arm.effort_limit
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, tau
    mujoco.mj_forward(model, data)
    damping = np.array(
        [j.damping + a.viscous_friction for j, a in zip(arm.joints, arm.actuators, strict=True)]
    )
    expected = np.linalg.solve(mass_matrix(arm, q), tau - nle(arm, q, v) - damping * v)
    assert data.qacc == pytest.approx(expected, rel=1e-9)


def test_equal_joints_become_mimic_joints(own):
    """Read, written and read again: MuJoCo's constraint holds, and the arm is the same."""
    text = OWN.replace("</mujoco>", '<equality><joint joint1="slide" joint2="shoulder" '
                       'polycoef="0.01 -0.04 0 0 0"/></equality></mujoco>')  # fmt: skip
    own.write_text(text)
    with pytest.warns(RuntimeWarning):
        arm = load_arm(own)
    assert [mimic[:4] for mimic in arm.mimic_joints] == [("slide", "prismatic", "shoulder", -0.04)]
    written = mjcf_of_arm(arm).text.replace('name="world"', 'name="base"')
    for source in (mujoco.MjModel.from_xml_path(str(own)), mujoco.MjModel.from_xml_string(written)):
        data = mujoco.MjData(source)
        data.qpos[:] = arm.tree_positions(np.array([0.7, -0.3]))
        mujoco.mj_forward(source, data)
        equal = data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
        assert data.efc_pos[equal] == pytest.approx([0.0], abs=1e-12)
    own.write_text(written)
    again = load_arm(own)
    assert again.mimic_joints == arm.mimic_joints
    q = arm.configuration("initial")
    assert_same(mass_matrix(again, q), mass_matrix(arm, q))


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ('<joint name="elbow"', '<freejoint/><joint name="elbow"', "has a free joint; remove it"),
        ('<joint name="elbow"', '<joint name="e2"/><joint name="elbow"', "has 2 joints"),
        ('name="elbow" axis', 'name="elbow" type="ball" axis', "type 'ball'; expected hinge"),
        ('axis="0 1 0"', 'axis="0 0 0"', "axis 0 0 0"),
        ('axis="0 1 0"', 'axis="0 1"', "axis = '0 1'; expected 3 numbers"),
        ('axis="0 1 0"', 'axis="0 1 x"', "axis = '0 1 x'"),
        (' range="-0.1 0.2"', "", "slide without range"),
        ('childclass="arm"', 'childclass="leg"', "class 'leg', which does not exist"),
        ('type="ellipsoid" size', 'type="mesh" mesh="m" size', "write the <inertial>"),
        ('name="slider"', 'name="fore"', "name 'fore' of another body"),
        ('angle="degree"', 'settotalmass="3"', "changes masses"),
        ("defaults.xml", "none.xml", "none.xml"),
        ("<worldbody>", "<worldbody", "not well-formed"),
    ],
)
def test_what_no_arm_can_have_is_rejected_with_its_line(own, old, new, text):
    assert old in OWN
    own.write_text(OWN.replace(old, new, 1))
    with pytest.raises(ConfigError) as error:
        urdf_of_mjcf(own)
    assert text in str(error.value)
    assert "line" in str(error.value) or "none.xml" in text


def test_meshes_and_colors_survive(tmp_path):
    (tmp_path / "meshes").mkdir()
    corners = "vertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0"
    loop = f"outer loop\n{corners}\nendloop"
    mesh = f"solid s\nfacet normal 0 0 1\n{loop}\nendfacet\nendsolid\n"
    (tmp_path / "meshes/a.stl").write_text(mesh)
    text = """<mujoco model="m"><compiler meshdir="meshes"/><asset>
    <mesh file="a.stl" scale="2 2 2"/>
    <material name="red" rgba="1 0 0 1"/></asset><worldbody><body name="base"><body name="b">
    <joint name="j" range="-10 10"/><inertial mass="1" pos="0 0 1" diaginertia="1 1 1"/>
    <geom type="mesh" mesh="a" material="red" contype="0" conaffinity="0"/></body></body>
    </worldbody></mujoco>"""
    (tmp_path / "m.xml").write_text(text)
    with pytest.warns(RuntimeWarning, match="velocity limits"):
        arm = load_arm(tmp_path / "m.xml")
    assert f'filename="{tmp_path}/meshes/a.stl" scale="2 2 2"' in arm.urdf
    written = mjcf_of_arm(arm).text
    assert f'file="{tmp_path}/meshes/a.stl" scale="2 2 2"' in written
    assert 'rgba="1 0 0 1"' in written


def test_gravity_and_values_without_counterpart_are_noted(tmp_path):
    written = mjcf_of_arm(load_arm("so101").with_payload(0.2))
    notes = " ".join(written.notes)
    for text in (
        "actuator dc_motor",
        "end stops",
        "driver and motors",
        "payload",
        "velocity limits",
    ):
        assert text in notes
    moon = load_arm("two_link").with_gravity([0, 0, -1.62])
    (tmp_path / "moon.xml").write_text(mjcf_of_arm(moon).text)
    with pytest.warns(RuntimeWarning, match="gravity = 0 0 -1.62"):
        again = load_arm(tmp_path / "moon.xml")
    assert_same(gravity(again, [0.1, 0.2]), gravity(load_arm("two_link"), [0.1, 0.2]))


def test_a_locked_joint_is_welded():
    arm = load_arm("so101", lock=["gripper"])
    model = mujoco.MjModel.from_xml_string(mjcf_of_arm(arm).text)
    assert model.nv == 5
    again = parse_arm(arm.urdf, lock=["gripper"])
    q, v = states(arm)[0]
    M, bias, _ = mujoco_dynamics(model, arm.joint_names, q, v)
    assert_same(M, mass_matrix(again, q))
    assert_same(bias, nle(again, q, v))
