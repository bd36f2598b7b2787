"""A symbolic function as lines of numba code, one assignment an operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca

from arm_dynamics.errors import InvalidValue

PLAIN: dict[int, str] = {
    ca.OP_ADD: "{0} + {1}",
    ca.OP_SUB: "{0} - {1}",
    ca.OP_MUL: "{0} * {1}",
    ca.OP_DIV: "{0} / {1}",
    ca.OP_NEG: "-{0}",
    ca.OP_SQ: "{0} * {0}",
    ca.OP_TWICE: "{0} + {0}",
    ca.OP_INV: "ONE / {0}",
    ca.OP_SQRT: "sqrt({0})",
    ca.OP_FABS: "abs({0})",
    ca.OP_SIGN: "picked({0} > ZERO, ONE, picked({0} < ZERO, -ONE, ZERO))",
    ca.OP_FMIN: "picked({1} < {0}, {1}, {0})",
    ca.OP_FMAX: "picked({1} > {0}, {1}, {0})",
    ca.OP_LT: "{0} < {1}",
    ca.OP_LE: "{0} <= {1}",
    ca.OP_EQ: "{0} == {1}",
    ca.OP_NE: "{0} != {1}",
    ca.OP_NOT: "not {0}",
    ca.OP_AND: "{0} & {1}",
    ca.OP_OR: "{0} | {1}",
    ca.OP_IF_ELSE_ZERO: "picked({0}, {1}, ZERO)",
    ca.OP_SIN: "sine({0})",
    ca.OP_COS: "cosine({0})",
    ca.OP_EXP: "exponential({0})",
    ca.OP_LOG: "log({0})",
    ca.OP_ASSIGN: "{0}",
}


class Emitter:
    """Lines for one function; ``constants`` are its literals by name."""

    def __init__(self, inputs: Mapping[tuple[int, int], str], literal: str = "k") -> None:
        """``inputs``: (number of the input, entry) → what reads it; literals: ``literal``0 ..."""
        self.inputs, self.literal = inputs, literal
        self.constants: dict[str, float] = {}
        self.lines: list[str] = []
        self.outputs: dict[tuple[int, int], str] = {}
        self._names: dict[float, str] = {}
        self._held: dict[int, str] = {}
        self._chosen: dict[str, tuple[str, str]] = {}
        self._negated: dict[str, str] = {}
        self._turned: dict[str, str] = {}

    def emit(self, function: Any) -> None:
        """Append the lines of ``function``; its instructions are already in order."""
        for k in range(function.n_instructions()):
            operation = function.instruction_id(k)
            read, written = function.instruction_input(k), function.instruction_output(k)
            if operation == ca.OP_CONST:
                self._held[written[0]] = self._literal(function.instruction_constant(k))
            elif operation == ca.OP_INPUT:
                self._held[written[0]] = self.inputs[read[0], read[1]]
            elif operation == ca.OP_OUTPUT:
                self.outputs[written[0], written[1]] = self._held[read[0]]
            else:
                self._held[written[0]] = self._line(k, operation, [self._held[i] for i in read])

    def _line(self, k: int, operation: int, read: Sequence[str]) -> str:
        if operation in (ca.OP_SIN, ca.OP_COS):
            return self._turn(operation, read[0])
        if operation not in PLAIN:
            raise InvalidValue(f"operation {operation} of the trace has no translation")
        name, text = f"t{k}", PLAIN[operation].format(*read)
        if operation == ca.OP_NOT:
            self._negated[name] = read[0]
        elif operation == ca.OP_IF_ELSE_ZERO:
            self._chosen[name] = (read[0], read[1])
        elif operation == ca.OP_ADD:
            text = self._either(*read) or text
        self.lines.append(f"{name} = {text}")
        return name

    def _either(self, first: str, second: str) -> str | None:
        """``x if c else y`` for the sum that CasADi makes of a choice."""
        if first not in self._chosen or second not in self._chosen:
            return None
        (condition, x), (other, y) = self._chosen[first], self._chosen[second]
        if self._negated.get(other) == condition:
            return f"picked({condition}, {x}, {y})"
        if self._negated.get(condition) == other:
            return f"picked({other}, {y}, {x})"
        return None

    def _turn(self, operation: int, angle: str) -> str:
        """Sine or cosine; both come from one reduction of the angle."""
        if angle not in self._turned:
            suffix = f"{len(self._turned)}"
            self._turned[angle] = suffix
            self.lines += TURN.replace("@", suffix).replace("ANGLE", angle).splitlines()
        return f"{'s' if operation == ca.OP_SIN else 'c'}_{self._turned[angle]}"

    def _literal(self, value: float) -> str:
        if value not in self._names:
            self._names[value] = f"{self.literal}{len(self._names)}"
            self.constants[self._names[value]] = value
        return self._names[value]


TURN = """\
r_@ = ANGLE * TWO_OVER_PI + ROUND
n_@ = r_@ - ROUND
m_@ = F(r_@).view(I)
y_@ = (ANGLE - n_@ * PI_2A) - n_@ * PI_2B
z_@ = y_@ * y_@
a_@ = y_@ + y_@ * z_@ * sine_series(z_@)
b_@ = ONE + z_@ * (z_@ * cosine_series(z_@) - HALF)
o_@ = (m_@ & LAST) != 0
u_@ = picked(o_@, b_@, a_@)
w_@ = picked(o_@, a_@, b_@)
s_@ = turned(u_@, m_@)
c_@ = turned(w_@, m_@ + LAST)"""
"""Sine and cosine without a call or a branch, so that lanes go side by side; quarter turns swap
them and turn the bit of their sign."""
