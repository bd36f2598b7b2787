"""Contact: time of a step, and creep of a grasped cube, compared with MuJoCo.

    python benchmarks/contact.py

Both simulate the same bodies with steps of 1 ms: a cube at rest on the ground, and a cube of half
the heaviest mass between two jaws that press with 5 N each. The last table compares rollouts of
generated kernels with and without a scene, in turn on one core.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import mujoco
import numpy as np
from machine import machine

from arm_dynamics import load_arm
from arm_dynamics.batch import rollout
from arm_dynamics.collision import Scene, SceneObject
from arm_dynamics.core.state import Command, State
from arm_dynamics.model import Shape
from arm_dynamics.model.load import parse_arm
from arm_dynamics.simulation import ContactDynamics, ContactPlant

DT, FORCE, FRICTION, GRAVITY = 1e-3, 5.0, 0.6, 9.81
MASS = FRICTION * FORCE / GRAVITY
"""Mass [kg] of the grasped cube: half of 2 μ F / g."""
SECONDS, PEER_SECONDS = 60, 1
"""Times [s] of the creep: with MuJoCo's default solver the cube leaves the jaws within a minute."""
BATCH = 500
LINK = """<link name="{name}"><inertial><mass value="{mass}"/><inertia ixx="1e-4" iyy="1e-4"
izz="1e-4" ixy="0" ixz="0" iyz="0"/></inertial>{shape}</link>"""
JOINT = """<joint name="{name}" type="prismatic"><origin xyz="{xyz}"/><parent link="{parent}"/>
<child link="{child}"/><axis xyz="{axis}"/><limit lower="-1" upper="1" effort="100" velocity="10"/>
</joint>"""
JAW = '<collision><geometry><box size="0.01 0.04 0.04"/></geometry></collision>'
GRIPPER = "".join([
    '<robot name="gripper"><link name="base"/>',
    LINK.format(name="hand", mass=0.2, shape=""), LINK.format(name="left", mass=0.1, shape=JAW),
    LINK.format(name="right", mass=0.1, shape=JAW),
    JOINT.format(name="lift", parent="base", child="hand", axis="0 0 1", xyz="0 0 0.5"),
    JOINT.format(name="l", parent="hand", child="left", axis="1 0 0", xyz="-0.03 0 -0.1"),
    JOINT.format(name="r", parent="hand", child="right", axis="-1 0 0", xyz="0.03 0 -0.1"),
    "</robot>",
])  # fmt: skip
RESTING_MJCF = """<mujoco><option timestep="0.001"/><worldbody><geom type="plane" size="1 1 1"/>
<body pos="0 0 0.05"><freejoint/><geom type="box" size=".05 .05 .05" mass="1"/></body></worldbody>
</mujoco>"""
GRASP_MJCF = f"""<mujoco><option timestep="0.001"/><default><geom friction="{FRICTION} 0 0"/>
</default><worldbody><body pos="0 0 0.5"><joint name="lift" type="slide" axis="0 0 1"/>
<inertial pos="0 0 0" mass="0.2" diaginertia="1e-4 1e-4 1e-4"/>
<body pos="-0.03 0 -0.1"><joint name="l" type="slide" axis="1 0 0"/>
<geom type="box" size="0.005 0.02 0.02" mass="0.1"/></body>
<body pos="0.03 0 -0.1"><joint name="r" type="slide" axis="-1 0 0"/>
<geom type="box" size="0.005 0.02 0.02" mass="0.1"/></body></body>
<body name="cube" pos="0 0 0.4"><freejoint/>
<geom type="box" size="0.025 0.02 0.02" mass="{MASS}"/></body></worldbody><actuator>
<motor joint="lift"/><motor joint="l"/><motor joint="r"/></actuator></mujoco>"""
COMMAND = np.array([(0.4 + MASS) * GRAVITY, FORCE, FORCE])


def cube(size: tuple[float, float, float], height: float, mass: float) -> SceneObject:
    """Return a free box with its center at a height [m]."""
    shape = Shape("box", size)
    return SceneObject("cube", shape, np.array([0, 0, height]), mass=mass, friction=FRICTION)


def time_of(step: Callable[[], object]) -> float:
    """Return the best mean time [µs] of a step, of ten batches."""
    best = np.inf
    for _ in range(10):
        start = perf_counter()
        for _ in range(BATCH):
            step()
        best = min(best, (perf_counter() - start) / BATCH)
    return 1e6 * best


def resting() -> Callable[[], object]:
    """Return the step of a cube on the ground."""
    ground = SceneObject("ground", Shape("ground", ()))
    dynamics = ContactDynamics(Scene([ground, cube((0.1, 0.1, 0.1), 0.05, 1.0)]))
    return lambda: dynamics.step(dynamics.initial, DT)


def grasping() -> tuple[ContactPlant, State, Command]:
    """Return the gripper with its cube, the state at the start and the command."""
    scene = Scene([cube((0.05, 0.04, 0.04), 0.4, MASS)])
    plant = ContactPlant(parse_arm(GRIPPER), scene, link_friction=FRICTION)
    return plant, State.of(np.zeros(3)), Command("effort", COMMAND)


def mujoco_model(text: str) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Return a MuJoCo model with default solver settings, and its data."""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    if model.nu:
        data.ctrl[:] = COMMAND
    return model, data


def rollouts() -> None:
    """Print the steps per second of 512 rollouts of five_dof, above a scene and in contact."""
    arm, random = load_arm("five_dof"), np.random.default_rng(0)
    ground = SceneObject("ground", Shape("ground", ()))
    box = SceneObject("box", Shape("box", (0.1, 0.1, 0.1)), np.array([0.45, 0, 0.05]))
    ball = SceneObject("ball", Shape("sphere", (0.05,)), np.array([0.3, 0.3, 0.05]))
    scenes = {
        "none": Scene(),
        "ground": Scene([ground]),
        "ground, box, sphere": Scene([ground, box, ball]),
    }
    above, down = (
        np.hstack([q + 0.05 * random.normal(size=(512, 5)), np.zeros((512, 5))])
        for q in (arm.configuration("initial"), [0, -0.32, 0.59, 0, -1.13])
    )
    print("\n| scene | start | steps a rollout | M steps/s | of those without a scene |")
    print("|---|---|---|---|---|")
    for steps in (32, 1000):
        for start, states in (("above", above), ("on the ground", down)):
            best = dict.fromkeys(scenes, np.inf)
            for _ in range(11):
                for name, scene in scenes.items():
                    begin = perf_counter()
                    rollout(arm, states, np.zeros(5), 1e-4, interface="effort", scene=scene,
                            steps_per_command=steps, outputs=(), threads=1)  # fmt: skip
                    best[name] = min(best[name], perf_counter() - begin)
            for name, seconds in best.items():
                rate, ratio = 512e-6 * steps / seconds, best["none"] / seconds
                print(f"| {name} | {start} | {steps} | {rate:.3g} | {ratio:.2f} |", flush=True)


def main() -> None:
    """Print the times of a step and the creep in a minute."""
    print(machine())
    plant, state, command = grasping()
    held = plant.step(state, command, DT, 10)
    rest, grasp = mujoco_model(RESTING_MJCF), mujoco_model(GRASP_MJCF)
    for model, data in (rest, grasp):
        mujoco.mj_step(model, data, 200)
    print("| step of 1 ms | arm_dynamics [µs] | MuJoCo [µs] |\n|---|---|---|")
    times = time_of(resting()), time_of(lambda: mujoco.mj_step(*rest))
    print(f"| cube on the ground | {times[0]:.0f} | {times[1]:.1f} |")
    times = (
        time_of(lambda: plant.step(held, command, DT)), time_of(lambda: mujoco.mj_step(*grasp))
    )  # fmt: skip
    print(f"| cube in a gripper | {times[0]:.0f} | {times[1]:.1f} |")

    after = plant.step(held, command, DT, round(SECONDS / DT))
    creep = abs(after.bodies.position[0, 2] - after.q[0] - (held.bodies.position[0, 2] - held.q[0]))
    model, data = grasp
    body = model.body("cube").id
    start = data.xpos[body, 2] - data.qpos[0]
    mujoco.mj_step(model, data, round(PEER_SECONDS / DT))
    peer = abs(data.xpos[body, 2] - data.qpos[0] - start)
    print(
        f"creep of the grasped cube: {creep:.1e} m in {SECONDS} s;"
        f" MuJoCo {peer:.1e} m in {PEER_SECONDS} s"
    )
    rollouts()


if __name__ == "__main__":
    main()
