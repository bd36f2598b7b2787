"""The simulated arm and the free objects of a scene in contact, advanced in time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from arm_dynamics.collision.scene import Scene
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.compiled_math import all_finite, is_finite
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.state import NO_STATES, State
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.contact.contact_dynamics import (
    LINK_FRICTION,
    NO_CONTACTS,
    ContactDynamics,
    Contacts,
    ContactStep,
)
from arm_dynamics.simulation.contact.contact_step import CONTACT, FAR, Found
from arm_dynamics.simulation.contact.free_bodies import BodyStates, Frames
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

    The step is semi-implicit Euler; a step without a contact is that of ``Plant``, to the bit. In
    one with a contact, contact, dry friction and end stops are one problem.

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
        stops = [(j.lower, j.upper, j.stop_stiffness, j.stop_damping) for j in arm.joints]
        self._stops = np.array(stops).T.copy()
        self._stops[2, self._motion.prescribed] = 0.0  # their motion is given
        self._unlimited = np.full(arm.nv, -np.inf), np.full(arm.nv, np.inf)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the arguments."""
        make = partial(type(self), link_friction=self.dynamics.link_friction)
        return make, (self.arm, self.scene, self.integrator.name)

    def _state_after(self, state: State, dt: float, steps: int, end: float | None) -> SceneState:
        """Return ``Plant.step``; a state without bodies starts with the scene's at rest."""
        dynamics, bodies = self.dynamics, self.dynamics.initial
        if isinstance(state, SceneState) and len(state.bodies) == len(bodies):
            bodies = state.bodies
        states, last, residual, left = bodies.arrays, None, 0.0, steps
        q, v, act = state.q.copy(), state.v.copy(), self._act(state).copy()
        together = max(1, int(FAR_TIME / dt))
        while left:
            horizon = 2.0 * min(left, together) * dt
            distance, found = dynamics.link_contacts(states, q, v, dt, horizon)
            count = min(left, together) if distance == FAR else 1
            if distance == CONTACT:
                self._motion.set_end_stops(*self._unlimited)
                try:
                    last = self._contact_step(q, v, act, states, found, dt)
                finally:
                    self._motion.set_end_stops(self.arm.lower, self.arm.upper)
            else:
                moved = self._moved_after(q, v, act, dt, count)
                if moved is None:
                    raise self._divergence(state, dt, steps)
                q, v, act = moved[0].copy(), moved[1].copy(), moved[3].copy()
                last = dynamics.object_steps(states, dt, count) if len(bodies) else None
            if last is not None:
                states, residual = last.states, max(residual, last.residual)
            if not (all_finite(q, v, act) and is_finite(states[2].ravel())):
                raise self._divergence(state, dt, steps)
            left -= count
        contacts = NO_CONTACTS if last is None else dynamics.contacts(last)
        if contacts.residual < residual:
            contacts = replace(contacts, residual=residual)
        arrays = q, v, self._motion.effort, act
        for array in arrays:
            array.setflags(write=False)
        time = state.time + steps * dt if end is None else end
        return SceneState(time, *arrays, BodyStates.of_step(states), contacts)

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
        self, q: Vector, v: Vector, act: Vector, states: Frames, found: Found, dt: float
    ) -> ContactStep:
        """Take one step of arm and bodies; the arm is changed in place, without its end stops."""
        motion, start, before = self._motion, v.copy(), act.copy()
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
        if motion.prescribed:
            response[motion.prescribed] = response[:, motion.prescribed] = 0.0
        # A joint at rest or at a reversal must break away: velocity 0 counts.
        forward, backward = motion.dry_friction_bounds_at(np.where(v * smooth > 0, v, 0.0))
        arm = start, smooth, response, -dt * forward, dt * backward, self._stops
        step = self.dynamics.arm_step(states, q, arm, found, dt)
        v[:] = step.velocity
        q += dt * v
        motion.apply_internal_friction(before, act, dt)
        q[motion.prescribed] = goals
        return step
