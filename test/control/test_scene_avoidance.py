"""A control loop and the objects of a scene: rejected motions, stops, and changes of the scene."""

import numpy as np
import pytest

from arm_dynamics import Simulation, load_arm, load_scene
from arm_dynamics.collision import Scene
from arm_dynamics.collision.self_collision import SelfCollision
from arm_dynamics.control import (
    CartesianTrajectory,
    ComputedTorque,
    ControlLoop,
    JointTrajectory,
    Waypoint,
    quintic,
)
from arm_dynamics.control.collision_avoidance import CollisionAvoidance
from arm_dynamics.control.trajectories.effort_check import check_path
from arm_dynamics.core.errors import CollisionRejected
from arm_dynamics.dynamics.kinematics.frames import pose
from arm_dynamics.hardware import SimulationDriver
from arm_dynamics.safety import Events

ARM = load_arm("five_dof")
HOME = np.array(ARM.configuration("initial"))
TABLE = load_scene("table")


def loop_of(scene=TABLE, **options):
    events = Events(lambda kind, message: None)
    driver = SimulationDriver(ARM, Simulation(ARM))
    loop = ControlLoop(driver, ComputedTorque(ARM), events, scene=scene, **options)
    loop.step()
    return loop


def lower(loop, radians=1.6):
    """Return a motion of the second joint by ``radians`` in 2 s; the tool reaches the table."""
    q = loop.state.q + radians * np.eye(5)[1]
    return JointTrajectory((Waypoint(loop.state.time + 2.0, q, np.zeros(5)),))


def test_a_trajectory_to_an_object_is_rejected_by_name():
    loop = loop_of()
    text = r"distance of link 'R\d_link' and object 'table' would be \S+ mm; expected at least 6.0"
    with pytest.raises(CollisionRejected, match=text):
        loop.follow(lower(loop))
    with pytest.raises(CollisionRejected, match=r"reference: .* and object 'table'"):
        loop.hold(HOME + 1.6 * np.eye(5)[1])
    loop.follow(lower(loop, 0.3))


def test_the_check_is_switched_off_with_that_of_links():
    loop = loop_of(self_collision=False)
    loop.follow(lower(loop))


def test_an_arm_that_moves_to_an_object_stops_before_it():
    loop = loop_of()
    check = SelfCollision(ARM, 0.0045, HOME, scene=TABLE)
    loop.reference_generator.start(lower(loop).starting_from(loop.state.time, loop.reference))
    for _ in range(1500):
        loop.step()
        assert check.find(loop.driver.simulation.state.q) is None
    assert "object 'table'" in loop.events.latest["control_restarted"]
    assert np.abs(loop.state.v).max() < 1e-2
    assert loop.state.q[1] > HOME[1] + 0.3  # it had moved
    back = JointTrajectory((Waypoint(loop.state.time + 2.0, HOME, np.zeros(5)),))
    loop.follow(back)


def test_an_object_that_appears_in_front_of_a_moving_arm_stops_it():
    loop = loop_of(Scene())
    loop.follow(lower(loop))
    for _ in range(100):
        loop.step()
    assert loop.state.v[1] > 0.05
    loop.use_scene(TABLE)
    for _ in range(1500):
        loop.step()
    assert "object 'table'" in loop.events.latest["control_restarted"]
    assert SelfCollision(ARM, 0.0045, HOME, scene=TABLE).find(loop.state.q) is None


def test_cartesian_motions_are_checked_before_they_start():
    rest = CartesianTrajectory.from_configuration(ARM, HOME, 1.0)
    tool = pose(ARM, HOME)[0]
    down, level = (rest.line((*tool[:2], z), quintic(3.0)) for z in (-0.03, tool[2] - 0.05))
    avoidance = CollisionAvoidance(ARM, scene=TABLE)
    with pytest.raises(CollisionRejected, match="link 'R5_link' and object 'table'"):
        avoidance.check(down, 0.0)
    avoidance.check(level, 0.0)
    infinite = np.full(5, np.inf)
    with pytest.raises(CollisionRejected, match=r"object 'table' .*, at 3\.\d+ s"):
        check_path(ARM, down, infinite, check_samples=avoidance.check_samples)
    assert check_path(ARM, level, infinite, check_samples=avoidance.check_samples)
    CollisionAvoidance(ARM).check(down, 0.0)
