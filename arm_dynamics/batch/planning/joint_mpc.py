"""The controller "mpc": predictive control along a joint reference, at a distance from objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.batch.kernels.cost import Cost, Stage, cost_geometry
from arm_dynamics.batch.planning.horizon import Horizon
from arm_dynamics.batch.planning.mpc import Mpc
from arm_dynamics.collision.scene import EMPTY_SCENE, Scene, SceneObject
from arm_dynamics.control.controllers.controller import Gains
from arm_dynamics.control.controllers.friction_compensation import (
    FRICTION_COMPENSATION,
    SLOW,
)
from arm_dynamics.control.controllers.lqr import WEIGHTS, default_weights
from arm_dynamics.control.lqr_design.lqr_gain import (
    LqrWeights,
    coulomb,
    sampled_lqr,
    viscous_damping,
)
from arm_dynamics.core.arrays import FloatArray, Matrix, Vector
from arm_dynamics.core.compiled_math import maximum, minimum, squared
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.core.state import Command, Reference, State
from arm_dynamics.dynamics.kinematics.tool_motion import ToolKinematics
from arm_dynamics.dynamics.rigid_body import mass_matrix, rnea_batch
from arm_dynamics.model.arm_argument import require_same_joints
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.linearization import linearize

if TYPE_CHECKING:
    from arm_dynamics.batch.planning.plan import Plan
    from arm_dynamics.batch.planning.planner import Planner

PERIODS, PERIOD = 25, 0.02
"""Horizon: number of periods, and their duration [s]."""
MIN_STEPS, MAX_STEPS = 4, 32
"""Limits of the time steps per period."""
RESOLUTION = 1.5
"""Largest product of a time step and the damping rate of the fastest joint; stable below 2."""
MAX_SPEED = 10.0
"""Speed [rad/s or m/s] at which the damping of joints without a velocity limit is taken."""
FIRST_BANDWIDTH = 10.0
"""Bandwidth w [rad/s] of the gains M(q) (w², 2 w) of the first plan, stable in each configuration:
as double integrators, held for a period, joints have the eigenvalues 0.73 and 0.85."""
OBJECTS = 4
"""Number of objects that a plan can avoid: those nearest to the base."""
BOX = 16
"""Entries of a rounded box: center (3,), half of its sides (3,), rotation (9,), radius."""
SMOOTH = 1e-3
"""Distance [m] from edges within which the gap is smoothed."""
FAR = 1e3
"""Distance [m] of the boxes in place of objects that are missing."""
HALF_SPACE = 10.0
"""Half of the side [m] of the cube in place of a half space."""
TOOL_WEIGHT = Parameter("weight", 0.0, "1/m², 1/rad²", "cost of a tool error", lower=0)
LIMIT_WEIGHT = 100.0
"""Weight of a position beyond its limits, relative to that of a position error."""


class JointMpc(Mpc):
    """iLQR over 0.5 s along the reference, with the motors and effort limits of the model.

    Plans have no dry friction: the command compensates it along the reference velocity.

    Σ_k T (Σ_j position e² + velocity ė² + effort δτ² + Σ_i weight (J_i e)²) + xᵀ P x,

    e = q_ref - q, x = (e, ė), J(q_ref) e the tool error to first order,

    δτ = τ - M(q_ref) a_ref - C v_ref - g(q_ref) - b v_ref, with the periods T and the cost P after
    the horizon of the sampled ``Lqr`` at the initial configuration, whose weights these are. Gaps
    d of the spheres that cover the links to the fixed objects of the scene cost
    object_weight (object_distance - d)² in each period where d < object_distance. Spheres within
    that distance at a restart do not count for that object.

    Parameters
    ----------
    arm : ArmModel
        Model of the predictions.
    gains : Gains, optional
        Weights by joint and axis of the tool, and those of the group "controller".

    """

    parameters: ClassVar[tuple[Parameter, ...]] = WEIGHTS
    axis_parameters: ClassVar[tuple[Parameter, ...]] = (TOOL_WEIGHT,)
    controller_parameters: ClassVar[tuple[Parameter, ...]] = (
        FRICTION_COMPENSATION,
        Parameter("object_weight", 200.0, "1/m²", "cost of a link next to an object", lower=0),
        Parameter("object_distance", 0.03, "m", "distance from objects", lower=0, upper=1),
        Parameter(
            "planning_thread", 0.0, "1", "1: plans in a thread, 0: in the control cycle",
            lower=0, upper=1,
        ),
    )  # fmt: skip

    def __init__(self, arm: ArmModel, gains: Gains | None = None) -> None:
        self._ahead: Callable[[float], Reference] | None = None
        self._scene, self._boxes = EMPTY_SCENE, boxes_of(EMPTY_SCENE)
        self._counted: tuple[Matrix | None, Matrix] = None, self._boxes
        super().__init__(_planner(arm), arm=arm)
        self.set_gains(gains or {})

    def __deepcopy__(self, memo: dict[int, Any]) -> JointMpc:
        """Return a controller with the same weights that plans in ``update``."""
        del memo
        copy = JointMpc(self.arm)
        copy.slow_down(self.scale)
        copy.set_gains(self.given)
        copy.use_scene(self._scene)
        copy.plan_in_thread(False)
        return copy

    def set_gains(self, gains: Gains) -> None:
        """Set weights; errors as in Controller."""
        super().set_gains(gains)
        self._update_model()
        self.plan_in_thread(self.controller_gains["planning_thread"] >= 0.5)

    def set_model(self, arm: ArmModel) -> None:
        """Set the model of the predictions, which is compiled; errors as in Controller."""
        planner = _planner(require_same_joints("model", arm, self.arm))
        super().set_model(arm)
        self.planner = planner
        self._update_model()

    def default_gains(self) -> Gains:
        """Return the weights of ``Lqr``: uniform bandwidth at the initial configuration."""
        return default_weights(self.arm)

    def follow_references(self, ahead: Callable[[float], Reference]) -> None:
        """Use the references of later times in plans; without them they continue at ``v``."""
        self._ahead = ahead

    def use_scene(self, scene: Scene) -> None:
        """Avoid the fixed objects of a scene from the next plan on."""
        self._scene, self._boxes = scene, boxes_of(scene)

    def reset(self, state: State) -> None:
        """Forget all plans."""
        super().reset(state)
        self._counted = None, self._boxes

    def counted(self, boxes: Matrix, state: State) -> Matrix:
        """Return which spheres (OBJECTS, n) count for each box: 1, or 0 for those next to it now.

        They are found once, after a restart or a change of the scene.
        """
        if self._counted[0] is not boxes:
            reach = self.controller_gains["object_distance"]
            placed = cost_geometry(self.arm, EMPTY_SCENE).stage(state, state.q).spheres
            rows = [[gap(box, x) > r + reach for x, r in placed] or [0] for box in boxes]
            self._counted = boxes, np.array(rows, float)
        return self._counted[1]

    def plan_command(self, plan: Plan, state: State, reference: Reference) -> Command:
        """Return τ_ref + (u_k - τ_k) + K_k (x_ref + δ - x) + F, δ the plan's deviation from x_ref.

        τ_ref is the effort of the reference now, τ_k that in the middle of the period: commands
        change within a period as the reference does.
        """
        assert plan.reference is not None
        efforts, states, _ = plan.reference
        k, s = plan.period_at(state.time)
        away = (1 - s) * (plan.states[k] - states[k]) + s * (plan.states[k + 1] - states[k + 1])
        # By dry friction, which plans do not have; they would move these joints in each period.
        held = (self._dry_friction > 0) & (np.abs(state.v) < SLOW) & (np.abs(reference.v) < SLOW)
        away = np.where(np.tile(held, 2), plan.states[0] - states[0], away)
        error = np.concatenate([reference.q - state.q, reference.v - state.v]) + away
        now = self.efforts(*(getattr(reference, x)[None] for x in "qva"))[0]
        value = now + (plan.inputs[k] - efforts[k]) + plan.gains[k] @ error
        value += self._dry_friction * np.clip(reference.v / SLOW, -1, 1)
        return Command(self.interface, value, state.time)

    def cost_parameters(self, state: State, reference: Reference) -> Mapping[str, ArrayLike]:
        """Return the references of all periods with their efforts, the weights and the objects."""
        boxes, ends = self._boxes, [0.0, *self.times]
        q, v, _ = self._references_at(state.time, reference, np.array(ends))
        middle = self._references_at(state.time, reference, self.times - 0.5 * PERIOD)
        efforts, states = self.efforts(*middle), np.hstack([q, v])
        M = mass_matrix(self.arm, q[0])
        gain = np.hstack([FIRST_BANDWIDTH**2 * M, 2 * FIRST_BANDWIDTH * M])
        self.planner.reference = efforts, states, np.stack([gain] * PERIODS)
        return {
            **self._weights, "boxes": boxes, "counted": self.counted(boxes, state),
            "q_ref": q[1:], "v_ref": v[1:], "effort_ref": efforts, "tool": self.tool_costs(q[1:]),
        }  # fmt: skip

    def tool_costs(self, q: Matrix) -> FloatArray:
        """Return T Jᵀ W J of instants (m, nv), shape (m, nv, nv); without weights a matrix of 0."""
        weights = PERIOD * self.axis_gains[TOOL_WEIGHT.name]
        if not weights.any():
            return np.zeros((self.arm.nv, self.arm.nv))
        J = np.array([self._tool.motion(row, np.zeros(row.size)).jacobian for row in q])
        costs: FloatArray = J.transpose(0, 2, 1) @ (weights[:, None] * J)
        return costs

    def efforts(self, q: Matrix, v: Matrix, a: Matrix) -> Matrix:
        """Return M(q) a + C(q, v) v + g(q) + b v of instants (m, nv)."""
        return rnea_batch(self.arm, q, v, a) + self._viscous * v

    def _references_at(self, time: float, reference: Reference, after: Vector) -> list[Matrix]:
        """Return q, v, a (m, nv) of the references some times [s] after ``time``.

        Joints that leave the trajectory now keep their distance from it.
        """
        if self._ahead is None:
            one = np.ones((len(after), 1))
            moved = reference.q + after[:, None] * reference.v
            return [moved, one * reference.v, one * reference.a]
        rows = [self._ahead(time + t) for t in after.tolist()]
        q, v, a = (np.array([getattr(row, name) for row in rows]) for name in "qva")
        return [q + (reference.q - self._ahead(time).q), v, a]

    def _update_model(self) -> None:
        """Compute what the cost of a plan depends on with the present model and weights."""
        weights = LqrWeights(*(self.gains[p.name] for p in WEIGHTS))
        self._tool = ToolKinematics(self.arm)
        gains, T = self.controller_gains, PERIOD
        _, P = sampled_lqr(self.arm, self.arm.configuration("initial"), weights, T)
        self._dry_friction = gains["friction_compensation"] * coulomb(self.arm)
        self._viscous = viscous_damping(self.arm)
        self._weights: dict[str, ArrayLike] = {
            "position": T * weights.position, "velocity": T * weights.velocity,
            "effort": T * weights.effort, "object_weight": gains["object_weight"],
            "object_distance": gains["object_distance"],
            "terminal": P - T * np.diag([*weights.position, *weights.velocity]),
        }  # fmt: skip


@lru_cache(maxsize=16)
def _without_dry_friction(arm: ArmModel) -> ArmModel:
    from arm_dynamics.batch.planning.local_model import without_dry_friction  # noqa: PLC0415

    return without_dry_friction(arm)


def _planner(arm: ArmModel) -> Planner:
    """Return the planner of an arm, whose dry friction is compensated in the command.

    Raises
    ------
    ConfigError
        Without numba or CasADi.

    """
    try:
        from arm_dynamics.batch.planning.ilqr import Ilqr  # noqa: PLC0415
        from arm_dynamics.batch.planning.planner import Planner  # noqa: PLC0415
    except ImportError as error:
        name = str(error.name).partition(".")[0]
        raise ConfigError(
            f"controller mpc: {name} is not installed; python -m pip install {name}"
        ) from error
    arm = _without_dry_friction(arm)
    spheres = len(cost_geometry(arm, EMPTY_SCENE).spheres)
    return Planner(arm, _cost(arm.nv, spheres), Ilqr(1), _horizon(arm))


def _horizon(arm: ArmModel) -> Horizon:
    """Return a horizon whose time steps resolve the motors' braking beyond their speed limits."""
    v, rest = 1.1 * np.minimum(arm.velocity_limit, MAX_SPEED), Command("effort", np.zeros(arm.nv))
    A = linearize(arm, State.of(arm.configuration("initial"), v), rest).A
    moving = slice(arm.nv, 2 * arm.nv)
    rate = float(np.abs(np.linalg.eigvals(A[moving, moving])).max())
    steps = int(np.clip(np.ceil(PERIOD * rate / RESOLUTION), MIN_STEPS, MAX_STEPS))
    return Horizon(PERIODS, PERIOD, steps)


@cache
def _cost(n: int, spheres: int) -> Cost:
    """Return the cost of an arm of n joints that is covered by some spheres."""

    def running(s: Stage, p: Any) -> Any:
        e, excess = s.q - p.q_ref, s.position_excess
        d, effort = s.v - p.v_ref, s.command - p.effort_ref
        total = (p.position * e) @ e + (p.velocity * d) @ d + (p.effort * effort) @ effort
        total = total + e @ (p.tool @ e)
        total = total + LIMIT_WEIGHT * ((p.position * excess) @ excess)
        for box, counted in zip(p.boxes, p.counted, strict=True):
            for (center, radius), counts in zip(s.spheres, counted, strict=False):
                short = maximum(radius + p.object_distance - gap(box, center), 0.0)
                total = total + p.object_weight * counts * squared(short)
        return total

    def terminal(s: Stage, p: Any) -> Any:
        x = np.concatenate([s.q - p.q_ref, s.v - p.v_ref])
        return x @ (p.terminal @ x)

    joint, boxes = np.zeros(n), boxes_of(EMPTY_SCENE)
    return Cost(running, terminal, {
        "q_ref": joint, "v_ref": joint, "effort_ref": joint, "position": joint + 1.0,
        "velocity": joint + 1.0, "effort": joint + 1.0, "terminal": np.eye(2 * n),
        "tool": np.eye(n),
        "boxes": boxes, "counted": np.ones((OBJECTS, max(spheres, 1))),
        "object_weight": 1.0, "object_distance": 0.1,
    })  # fmt: skip


def gap(box: Any, point: Any) -> Any:
    """Return the signed distance [m] of a point (3,) from a rounded box (16,), negative inside.

    Smooth outside within SMOOTH [m] of the edges, so that it has derivatives everywhere.
    """
    offset = np.reshape(box[6:15], (3, 3)).T @ (point - box[:3])
    x, y, z = (abs(one) - half for one, half in zip(offset, box[3:6], strict=True))
    squared = SMOOTH * SMOOTH
    for beyond in (x, y, z):
        outside = maximum(beyond, 0.0)
        squared = squared + outside * outside
    inside = minimum(maximum(maximum(x, y), z), 0.0)
    return squared**0.5 - SMOOTH + inside - box[15]


def boxes_of(scene: Scene) -> Matrix:
    """Return the rounded boxes (OBJECTS, 16) of the fixed objects that are nearest to the base."""
    fixed = [_rounded_box(one) for one in scene if one.is_fixed]
    fixed.sort(key=lambda box: gap(box, np.zeros(3)))
    nothing = np.array([FAR, FAR, FAR, *np.zeros(3), *np.eye(3).ravel(), 0.0])
    return np.array([*fixed, *[nothing] * OBJECTS][:OBJECTS])


def _rounded_box(one: SceneObject) -> Vector:
    """Return the box (16,) of an object, which contains it: a sphere is one without sides."""
    size, radius, center = one.shape.size, 0.0, np.array(one.position)
    half = np.zeros(3)
    if one.shape.kind == "ground":
        half[:] = HALF_SPACE
        center -= HALF_SPACE * one.rotation[:, 2]
    elif one.shape.kind == "sphere":
        radius = size[0]
    elif one.vertices is not None:
        lower, upper = one.vertices.min(axis=0), one.vertices.max(axis=0)
        half[:] = (upper - lower) / 2
        center += one.rotation @ (lower + upper) / 2
    elif one.shape.kind == "cylinder":
        half[:] = size[0], size[0], size[1] / 2
    else:
        half[:] = np.array(size) / 2
    return np.array([*center, *half, *one.rotation.ravel(), radius])
