"""The step of a kernel with contact, with the plant's terms and Pinocchio's Jacobians."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from arm_dynamics.batch.kernels.contact_law import acting_gap, contact_change
from arm_dynamics.batch.kernels.sphere_contacts import SphereContacts
from arm_dynamics.core.arrays import Vector
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.integrators.explicit_integrators import SemiImplicitEuler
from arm_dynamics.simulation.integrators.integrator import Integrator, SteppedSystem, System


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
        start = q.copy(), v.copy()
        super().advance(system, q, v, z, dt)
        pin.computeJointJacobians(self.model, self.data, start[0])
        damping = self.split_damping(*system.step_damping(*start, z, dt))
        response = system.force_response(start[0], *damping, self.force_response_terms, dt)
        root, change = np.linalg.cholesky(response), np.zeros(v.size)
        for contact in self.contacts:
            joint, radius = contact.sphere.joint, contact.sphere.radius
            center = self.data.oMi[joint].act(contact.sphere.center)
            gap, normal = contact.gap_and_normal(center, radius)
            point = center - (radius + 0.5 * gap) * normal
            jacobian = pin.getJointJacobian(self.model, self.data, joint, pin.WORLD)
            twist = jacobian @ v
            gap = acting_gap(gap, normal @ (twist[:3] + np.cross(twist[3:], point)), dt)
            row = np.array([*normal, *point, gap, contact.friction])
            change, _ = contact_change(row, jacobian, root, v, change, dt)
        v += root @ change
        q += dt * (root @ change)

    def run(
        self, system: SteppedSystem, q: Vector, v: Vector, z: Vector, dt: float, steps: int
    ) -> bool:
        """Take ``steps`` steps in place while all is finite; return whether it is."""
        return Integrator.run(self, system, q, v, z, dt, steps)
