"""The step of a kernel with contact, with the plant's terms and Pinocchio's Jacobians."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
import pinocchio as pin

from arm_dynamics.batch.kernels.contact_impulse import VISITS, contact_change
from arm_dynamics.batch.kernels.free_object import (
    body_jacobian,
    body_response_root,
    body_state,
    moved_body,
)
from arm_dynamics.batch.kernels.sphere_contacts import BODY, SphereContacts, contact_row
from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.integrators.explicit_integrators import SemiImplicitEuler
from arm_dynamics.simulation.integrators.integrator import (
    Integrator,
    Moved,
    SteppedSystem,
    System,
)


class ContactEuler(SemiImplicitEuler):
    """Semi-implicit Euler, then the impulses of the contacts: v⁺ = v + G u, q⁺ = q + dt v⁺.

    The reference of a generated kernel, and its contact for a ``Plant``.

    Parameters
    ----------
    arm : ArmModel
        Arm.
    contacts : SphereContacts
        Contacts of its spheres.

    Attributes
    ----------
    body : (18,) array
        State of the free object, as ``BODY_ROWS``; empty without any.

    """

    def __init__(self, arm: ArmModel, contacts: SphereContacts) -> None:
        self.model, self.contacts, self.data = arm.model, contacts.contacts, arm.model.createData()
        self.object, self.gravity = contacts.body, arm.gravity
        self.body = np.zeros(0) if self.object is None else body_state(self.object)

    def advance(self, system: System, q: Vector, v: Vector, z: Vector, dt: float) -> None:
        """Replace q (nv,), v (nv,) and z (na,), in place, by those after dt."""
        stepped, start = cast(SteppedSystem, system), (q.copy(), v.copy())
        super().advance(system, q, v, z, dt)
        pin.computeJointJacobians(self.model, self.data, start[0])
        damping = self.split_damping(*stepped.step_damping(*start, z, dt))
        response = stepped.force_response(start[0], *damping, self.force_response_terms, dt)
        root, motion = np.asarray(np.linalg.cholesky(response), float), v.copy()
        place, n = None, v.size
        if self.object is not None:
            place, zero = (self.body[:3], self.body[3:12].reshape(3, 3)), np.zeros((n, 6))
            motion = np.concatenate([v, self.body[12:15] + dt * self.gravity, self.body[15:]])
            root = np.block([[root, zero], [zero.T, body_response_root(self.object, place[1])]])
        change = root @ self._change(root, motion, place, dt)
        if self.object is not None and place is not None:
            moved = moved_body(self.object, *place, motion[n:] + change[n:], dt)
            self.body = np.concatenate(list(moved.values()))
        v += change[:n]
        q += dt * change[:n]

    def _change(
        self, root: Matrix, motion: Vector, place: tuple[Vector, Matrix] | None, dt: float
    ) -> Vector:
        """Return u of the motion of arm and free object after all contacts."""
        rows, jacobians, of_body = [], [], None if place is None else body_jacobian(place[0])
        for contact in self.contacts:
            joint, center = contact.sphere.joint, contact.sphere.center
            of_joint = pin.getJointJacobian(self.model, self.data, max(joint, 1), pin.WORLD)
            if place is not None and joint == BODY:
                center = place[0] + place[1] @ center
            else:
                center = self.data.oMi[joint].act(center)
            at = None if contact.object.is_fixed else place
            jacobian = contact.jacobian(of_joint, of_body)
            rows.append(np.array([*contact_row(contact, center, jacobian @ motion, dt, at)]))
            jacobians.append(jacobian)
        change, impulses = np.zeros(motion.size), np.zeros((len(rows), 0 if place is None else 3))
        for _ in range(1 if place is None else VISITS):
            for k, (row, jacobian) in enumerate(zip(rows, jacobians, strict=True)):
                visited = np.concatenate([row, impulses[k]])
                change, impulse = contact_change(visited, jacobian, root, motion, change, dt)
                if place is not None:
                    impulses[k] = impulse
        return change

    def motion_of(self, system: SteppedSystem) -> Callable[..., Moved | None]:
        """Return ``run``: the compiled steps have no contact."""
        return Integrator.motion_of(self, system)
