"""Contact with a scene on symbols: geometry in the step, one function of an impulse per body."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import casadi as ca
import numpy as np

from arm_dynamics.batch.kernels.contact_impulse import CONTACT, contact_change
from arm_dynamics.batch.kernels.sphere_contacts import SphereContacts, contact_row
from arm_dynamics.batch.kernels.symbolic_equations import input_symbols, vector
from arm_dynamics.batch.kernels.symbolic_math import SX, Symbol, SymbolVector, traced
from arm_dynamics.batch.kernels.symbolic_rigid_body import Chain, inverse_root
from arm_dynamics.dynamics.bodies import Body


class ContactTrace:
    """Rows and functions that contact adds to a kernel.

    The step writes the Jacobian of all bodies, the root G of the response and one block of rows per
    contact. Then a function per body changes the rows ``change``, u of v⁺ = v + G u.
    """

    def __init__(self, contacts: SphereContacts, table: tuple[Body, ...]) -> None:
        self.contacts, self.table, n = contacts.contacts, table, len(table)
        self.counts = contacts.counts
        self.sizes = {
            "jacobian": 6 * n, "root": n * (n + 1) // 2, "contacts": CONTACT * len(self.contacts),
            "contact": CONTACT, "change": n,
        }  # fmt: skip

    def step_outputs(
        self, chain: Chain, response_mass: SX, v: SymbolVector, dt: Symbol
    ) -> dict[str, Any]:
        """Return the rows that the step writes, from ``chain`` and v without contact."""
        places = [tuple(symbol_array(x) for x in place) for place in chain.placements()]
        columns = []
        for body, (rotation, origin) in zip(self.table, places, strict=True):
            axis, zero = rotation[:, 2], vector([Symbol(0.0)] * 3)
            pair = [axis, zero] if body.prismatic else [np.cross(origin, axis), axis]
            columns.append(np.concatenate(pair))
        jacobian = np.array(columns).T
        rows = []
        for one in self.contacts:
            joint = one.sphere.joint - 1
            rotation, origin = places[joint]
            center = origin + rotation @ (self.table[joint].turn.T @ one.sphere.center)
            twist = self._of_body(jacobian, joint) @ v
            rows.append(vector(traced(contact_row)(one, center, twist, dt)))
        root = ca.densify(inverse_root(response_mass))
        lower = [Symbol(root[i, j]) for i in range(len(self.table)) for j in range(i + 1)]
        return {"jacobian": jacobian.T.ravel(), "root": vector(lower),
                "contacts": np.concatenate(rows)}  # fmt: skip

    def functions(self) -> Iterator[tuple[str, str, dict[str, Any], dict[str, Any]]]:
        """Yield name, purpose, inputs and outputs of the functions after the step."""
        n = len(self.table)
        for joint in self.counts:
            names = ("contact", "jacobian", "root", "change")
            x = input_symbols({**{name: self.sizes[name] for name in names}, "v": n, "dt": 1})
            jacobian = self._of_body(x["jacobian"].reshape(n, 6).T, joint - 1)
            change = traced(contact_change)(
                x["contact"], jacobian, _lower(x["root"], n), x["v"], x["change"], x["dt"][0]
            )
            yield f"contact_{joint}", f"Contact of body {joint}.", x, {"change": change}
        x = input_symbols({"root": self.sizes["root"], "change": n, "q": n, "v": n, "dt": 1})
        change = _lower(x["root"], n) @ x["change"]
        after = {"q": x["q"] + x["dt"][0] * change, "v": x["v"] + change}
        yield "contact_motion", "Motion after all contacts.", x, after

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
