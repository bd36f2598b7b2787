"""The text of a module that takes one time step and its derivative."""

from __future__ import annotations

from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.rollout.derivative_trace import step_derivative
from arm_dynamics.rollout.layout import Layout
from arm_dynamics.rollout.module import STEP, head_text, part_lines, shared_constants
from arm_dynamics.rollout.trace import Part

ADVANCE = '''

@numba.njit(**options)
def advance(x, state, command, dt):
    """Take these, then ``step``: 0 where it went well, 1 where it left the finite numbers.

    2 for a wrong size or a dt that is not above 0.
    """
    if state.size != {n} or command.size != {nv} or not dt > ZERO:
        return 2
    for i in range({n}):
        x[i] = state[i]
    for i in range({nv}):
        x[{told} + i] = command[i]
    x[{dt}] = dt
    return 1 if step(x) else 0
'''
GIVEN, FOUND = ("q", "v", "z", "told", "dt"), ("q", "v", "z", "effort", "A", "B")


def derivative_text(arm: ArmModel, method: str, interface: str) -> str:
    """A module whose ``step`` replaces rows q, v and z and fills effort, A and B, one lane.

    ``advance`` takes state, command and dt as arrays first.
    """
    function = step_derivative(arm, method, interface)
    n, nv = 2 * arm.nv + arm.na, arm.nv
    sizes = {"q": nv, "v": nv, "z": arm.na, "told": nv, "dt": 1, "effort": nv}
    layout = Layout.of({**sizes, "A": n * n, "B": n * nv})
    part = Part("step", "One time step and its derivative.", function, GIVEN, FOUND)
    constants = shared_constants("float64")
    body = part_lines(part, layout, constants)
    title = f"{arm.name}: derivative of {method}, {interface} commands."
    head = head_text(title, layout, 1, "float64", constants)
    own = ADVANCE.format(n=n, nv=nv, told=layout.first["told"], dt=layout.first["dt"])
    return head + STEP.format(body=body, rub="") + own
