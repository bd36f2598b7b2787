"""The step of a kernel with contact, with the plant's terms and Pinocchio's Jacobians."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
import pinocchio as pin

from arm_dynamics.batch.kernels.contact_impulse import contact_change
from arm_dynamics.batch.kernels.sphere_contacts import SphereContacts, contact_row
from arm_dynamics.core.arrays import Vector
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

    """

    def __init__(self, arm: ArmModel, contacts: SphereContacts) -> None:
        self.model, self.contacts, self.data = arm.model, contacts.contacts, arm.model.createData()

    def advance(self, system: System, q: Vector, v: Vector, z: Vector, dt: float) -> None:
        """Replace q (nv,), v (nv,) and z (na,), in place, by those after dt."""
        stepped, start = cast(SteppedSystem, system), (q.copy(), v.copy())
        super().advance(system, q, v, z, dt)
        pin.computeJointJacobians(self.model, self.data, start[0])
        damping = self.split_damping(*stepped.step_damping(*start, z, dt))
        response = stepped.force_response(start[0], *damping, self.force_response_terms, dt)
        root, change = np.linalg.cholesky(response), np.zeros(v.size)
        for contact in self.contacts:
            joint = contact.sphere.joint
            center = self.data.oMi[joint].act(contact.sphere.center)
            jacobian = pin.getJointJacobian(self.model, self.data, joint, pin.WORLD)
            row = np.array(contact_row(contact, center, jacobian @ v, dt))
            change = contact_change(row, jacobian, root, v, change, dt)
        v += root @ change
        q += dt * (root @ change)

    def motion_of(self, system: SteppedSystem) -> Callable[..., Moved | None]:
        """Return ``run``: the compiled steps have no contact."""
        return Integrator.motion_of(self, system)
