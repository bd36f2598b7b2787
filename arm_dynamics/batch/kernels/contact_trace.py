"""Contact with a scene on symbols: geometry in the step, one function of an impulse per body."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import casadi as ca
import numpy as np

from arm_dynamics.batch.kernels.contact_impulse import CONTACT, contact_change
from arm_dynamics.batch.kernels.free_object import (
    BODY_ROWS,
    body_jacobian,
    body_response_root,
    moved_body,
)
from arm_dynamics.batch.kernels.sphere_contacts import BODY, SphereContacts, contact_row
from arm_dynamics.batch.kernels.symbolic_equations import input_symbols, vector
from arm_dynamics.batch.kernels.symbolic_math import SX, Symbol, SymbolVector, traced
from arm_dynamics.batch.kernels.symbolic_rigid_body import Chain, inverse_root
from arm_dynamics.dynamics.bodies import Body


class ContactTrace:
    """Rows and functions that contact adds to a kernel.

    The step writes the Jacobian of all bodies, the root G of the response and one block of rows per
    contact. Then a function per group of contacts changes the rows ``change``, u of v⁺ = v + G u. A
    free object adds 6 entries to v and u, and the impulse (3,) of the last visit to each contact.
    """

    def __init__(self, contacts: SphereContacts, table: tuple[Body, ...]) -> None:
        self.contacts, self.table, n = contacts.contacts, table, len(table)
        self.body = contacts.body
        width, extra = (CONTACT, 0) if self.body is None else (CONTACT + 3, 6)
        self.sizes = {
            "jacobian": 6 * n, "root": n * (n + 1) // 2, "contacts": width * len(self.contacts),
            "contact": width, "change": n + extra,
        } | ({} if self.body is None else {"impulse": 3})  # fmt: skip

    def step_outputs(
        self, chain: Chain, response_mass: SX, inputs: dict[str, Any], v: SymbolVector, dt: Symbol
    ) -> dict[str, Any]:
        """Return the rows that the step writes, from ``chain`` and v without contact.

        ``inputs`` has the rows of a free object.
        """
        places = [tuple(symbol_array(x) for x in place) for place in chain.placements()]
        columns = []
        for body, (rotation, origin) in zip(self.table, places, strict=True):
            axis, zero = rotation[:, 2], vector([Symbol(0.0)] * 3)
            pair = [axis, zero] if body.prismatic else [np.cross(origin, axis), axis]
            columns.append(np.concatenate(pair))
        jacobian, motion, place, of_body, rows = np.array(columns).T, v, None, None, []
        outputs: dict[str, Any] = {}
        if self.body is not None:
            place, of_body = self._body_place(inputs)
            velocity = inputs["body_velocity"].copy()
            velocity[:3] += dt * symbol_array(chain.gravity)
            motion, outputs["body_velocity"] = np.concatenate([v, velocity]), velocity
        for one in self.contacts:
            joint = one.sphere.joint - 1
            if place is not None and one.sphere.joint == BODY:
                center = place[0] + place[1] @ one.sphere.center
            else:
                rotation, origin = places[joint]
                center = origin + rotation @ (self.table[joint].turn.T @ one.sphere.center)
            twist = one.jacobian(self._of_body(jacobian, joint), of_body) @ motion
            at = None if one.object.is_fixed else place
            row, width = traced(contact_row)(one, center, twist, dt, at), self.sizes["contact"]
            rows.append(vector([*row, *[Symbol(0.0)] * (width - CONTACT)]))
        root = ca.densify(inverse_root(response_mass))
        lower = [Symbol(root[i, j]) for i in range(len(self.table)) for j in range(i + 1)]
        return outputs | {"jacobian": jacobian.T.ravel(), "root": vector(lower),
                          "contacts": np.concatenate(rows)}  # fmt: skip

    def functions(self) -> Iterator[tuple[str, str, dict[str, Any], dict[str, Any]]]:
        """Yield name, purpose, inputs and outputs of the functions after the step."""
        n, rows = len(self.table), {} if self.body is None else BODY_ROWS
        for group, one in {one.group: one for one in self.contacts}.items():
            names = ("contact", "jacobian", "root", "change")
            sizes = {name: self.sizes[name] for name in names}
            x = input_symbols({**sizes, "v": n, **rows, "dt": 1})
            jacobian = self._of_body(x["jacobian"].reshape(n, 6).T, one.sphere.joint - 1)
            root, motion, of_body = self._root(x), x["v"], None
            if self.body is not None:
                motion = np.concatenate([motion, x["body_velocity"]])
                of_body = self._body_place(x)[1]
            change, impulse = traced(contact_change)(
                x["contact"], one.jacobian(jacobian, of_body), root, motion, x["change"], x["dt"][0]
            )
            after = {"change": change} | ({} if self.body is None else {"impulse": impulse})
            yield f"contact_{group}", f"Contact of group {group}.", x, after
        sizes = {name: self.sizes[name] for name in ("root", "change")}
        x = input_symbols({**sizes, "q": n, "v": n, **rows, "dt": 1})
        change, dt = self._root(x) @ x["change"], x["dt"][0]
        after = {"q": x["q"] + dt * change[:n], "v": x["v"] + change[:n]}
        if self.body is not None:
            place, velocity = self._body_place(x)[0], x["body_velocity"] + change[n:]
            after |= moved_body(self.body, *place, velocity, dt)
        yield "contact_motion", "Motion after all contacts.", x, after

    def _body_place(self, rows: dict[str, Any]) -> tuple[tuple[Any, Any], Any]:
        """Return position and rotation of the free object, and its Jacobian."""
        position, rotation = rows["body_position"], rows["body_rotation"].reshape(3, 3)
        return (position, rotation), body_jacobian(position)

    def _root(self, rows: dict[str, Any]) -> SymbolVector:
        """Return G of arm and free object."""
        root = _lower(rows["root"], len(self.table))
        if self.body is None:
            return root
        zero = np.zeros((len(root), 6))
        of_body = body_response_root(self.body, rows["body_rotation"].reshape(3, 3))
        return np.block([[root, zero], [zero.T, of_body]])

    def _of_body(self, jacobian: SymbolVector, i: int) -> SymbolVector:
        """Return the columns of the joints that move body i; the others are 0."""
        moved = np.full_like(jacobian, Symbol(0.0))
        while i >= 0:
            moved[:, i] = jacobian[:, i]
            i = self.table[i].parent
        return moved


def placed_joints(chain: Chain) -> list[tuple[SymbolVector, SymbolVector]]:
    """Return rotation (3, 3) and origin (3,) of the frame of each joint in base axes."""
    return [
        (symbol_array(rotation) @ body.turn.T, symbol_array(origin))
        for body, (rotation, origin) in zip(chain.table, chain.placements(), strict=True)
    ]


def _lower(entries: SymbolVector, n: int) -> SymbolVector:
    """Return the lower triangular matrix (n, n) of its entries, row after row."""
    matrix = np.full((n, n), Symbol(0.0))
    matrix[np.tril_indices(n)] = entries
    return matrix


def symbol_array(matrix: SX) -> SymbolVector:
    """Return an object array of the entries of a matrix, or of a column."""
    rows, columns = matrix.shape
    entries = vector(Symbol(x) for x in ca.vertsplit(ca.vec(ca.densify(matrix))))
    return entries.reshape(columns, rows).T if columns > 1 else entries
