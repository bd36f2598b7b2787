"""The simulated arm and the free objects of a scene in contact, advanced in time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pinocchio as pin

from arm_dynamics.collision.scene import Scene
from arm_dynamics.core.arrays import Vector, as_readonly, check_float, check_int
from arm_dynamics.core.compiled_math import all_finite
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.state import NO_STATES, Command, State
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.contact.contact_dynamics import (
    LINK_FRICTION,
    NO_CONTACTS,
    ArmStep,
    ContactDynamics,
    Contacts,
)
from arm_dynamics.simulation.contact.free_bodies import BodyStates
from arm_dynamics.simulation.integrators.exponential_step import step_actuator_states
from arm_dynamics.simulation.plant import Plant

FAR_TIME = 2e-3
"""Duration [s] within which an arm that is far from all objects moves without contact."""
NO_BODIES = BodyStates.at_rest(())


@dataclass(frozen=True, slots=True, eq=False, init=False)
class SceneState(State):
    """State of an arm with the free bodies of a scene, and the contacts of the last step."""

    bodies: BodyStates
    contacts: Contacts

    def __init__(
        self,
        time: float,
        q: Vector,
        v: Vector,
        tau: Vector,
        act: Vector = NO_STATES,
        bodies: BodyStates = NO_BODIES,
        contacts: Contacts = NO_CONTACTS,
    ) -> None:
        State.__init__(self, time, q, v, tau, act)
        object.__setattr__(self, "bodies", bodies)
        object.__setattr__(self, "contacts", contacts)


class ContactPlant(Plant):
    """M(q) v̇ + C(q, v) v + g(q) = tau - friction + stops + Jᵀ F, with contact and free bodies.

    The step is semi-implicit Euler; a step without a contact is that of ``Plant``, to the bit.

    Parameters
    ----------
    arm : ArmModel
        The arm.
    scene : Scene
        Fixed and free objects around it.
    integrator : str
        "semi_implicit_euler": the other integrators have no contact.
    link_friction : float
        Coulomb coefficient of the links.

    """

    def __init__(
        self,
        arm: ArmModel,
        scene: Scene,
        integrator: str = "semi_implicit_euler",
        *,
        link_friction: float = LINK_FRICTION,
    ) -> None:
        if integrator != "semi_implicit_euler":
            raise InvalidValue(
                f"integrator = {integrator!r}; expected 'semi_implicit_euler' in a scene: the other"
                " integrators have no contact"
            )
        super().__init__(arm, integrator)
        self.scene = scene
        self.dynamics = ContactDynamics(scene, arm, link_friction=link_friction)
        self._data = arm.model.createData()

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the arguments."""
        make = partial(type(self), link_friction=self.dynamics.link_friction)
        return make, (self.arm, self.scene, self.integrator.name)

    def step(
        self,
        state: State,
        command: Command,
        dt: float,
        steps: int = 1,
        *,
        end: float | None = None,
    ) -> SceneState:
        """Return the state after ``steps`` time steps under one constant command.

        As ``Plant.step``. A state without bodies starts with the scene's at rest.
        """
        dt = check_float("dt [s]", dt, above=0)
        steps = check_int("steps", steps, lower=1)
        self._accept_state(state)
        self._require_finite(state)
        self._set_command(command)
        bodies = self.dynamics.initial
        if isinstance(state, SceneState) and len(state.bodies) == len(bodies):
            bodies = state.bodies
        q, v, act = state.q.copy(), state.v.copy(), self._act(state).copy()
        contacts, left, residual = NO_CONTACTS, steps, 0.0
        while left:
            pin.forwardKinematics(self.arm.model, self._data, q, v)
            together = min(left, max(1, int(FAR_TIME / dt)))
            _, owners = self.dynamics.contact_rows(bodies, 2 * together * dt, self._data)
            if self.dynamics.touches_links(owners):
                near = self.dynamics.contact_rows(bodies, dt, self._data)
                bodies, contacts = self._contact_step(q, v, act, bodies, near, dt)
                left -= 1
            else:
                self.integrator.run(self._motion, q, v, act, dt, together)
                bodies, contacts = self.dynamics.steps(bodies, dt, together)
                left -= together
            residual = max(residual, contacts.residual)
            if not (all_finite(q, v, act) and np.isfinite(bodies.velocity).all()):
                raise self._divergence(state, dt, steps)
        if contacts.residual < residual:
            contacts = replace(contacts, residual=residual)
        tau = self._motion.effort
        q, v, tau, act = (as_readonly(x) for x in (q, v, tau, act))
        time = state.time + steps * dt if end is None else end
        return SceneState(time, q, v, tau, act, bodies, contacts)

    def scene_at(self, state: State) -> Scene:
        """Return the objects at their poses in ``state``."""
        bodies = state.bodies if isinstance(state, SceneState) else self.dynamics.initial
        return self.dynamics.moved_scene(bodies)

    def continued(self, before: Plant, state: State) -> SceneState:
        """Return a state of another plant as one of this plant.

        Objects have their poses in the scene of this plant. A free one that has the same pose in
        the scene of ``before`` keeps its velocity.
        """
        bodies = self.dynamics.initial
        if isinstance(before, ContactPlant) and isinstance(state, SceneState):
            bodies = self.dynamics.continued(before.dynamics, state.bodies)
        return SceneState(state.time, state.q, state.v, state.tau, state.act, bodies)

    def _contact_step(
        self, q: Vector, v: Vector, act: Vector, bodies: BodyStates, near: Any, dt: float
    ) -> tuple[BodyStates, Contacts]:
        """Take one step of arm and bodies; the arm is changed in place."""
        if not self.dynamics.touches_links(near[1]):
            self.integrator.run(self._motion, q, v, act, dt, 1)
            bodies, _, contacts = self.dynamics.step(bodies, dt, near)
            return bodies, contacts
        arm, goals = self._smooth_step(q, v, act, dt)
        bodies, after, contacts = self.dynamics.step(bodies, dt, near, arm)
        before, v[:] = act.copy(), after
        q += dt * v
        self._motion.apply_internal_friction(before, act, dt)
        q[self._motion.prescribed] = goals
        return bodies, contacts

    def _smooth_step(self, q: Vector, v: Vector, act: Vector, dt: float) -> tuple[ArmStep, Vector]:
        """Return the arm in a step without contact and dry friction; ``act`` is advanced.

        Prescribed joints start their motion; their positions (np,) at the end are returned too.
        """
        motion, start = self._motion, v.copy()
        goals = motion.start_prescribed_motion(q, v, act, dt)
        step_actuator_states(motion, q, v, act, dt)
        a = (
            motion.implicit_acceleration(q, v, act, dt)
            if act.size
            else motion.acceleration(q, v, act)
        )
        smooth = v + dt * a
        damping = motion.step_damping(q, v, act, dt)
        terms = self.integrator.force_response_terms
        response = motion.force_response(q, *self.integrator.split_damping(*damping), terms, dt)
        response[motion.prescribed] = response[:, motion.prescribed] = 0.0
        sliding = np.where(v * smooth > 0, v, 0.0)
        bounds = motion.dry_friction_bounds_at(sliding)
        pin.computeJointJacobians(self.arm.model, self._data, q)
        friction = dt * bounds[0], dt * bounds[1]
        return ArmStep(self._data, smooth, response, friction, start), goals
