"""Simulation of recorded motions under the measured efforts, with a tracking controller.

(M + I_r) a + h + b v + f sign(v) = u(t + d) - o + e,   e = K_p (q_m - q) + K_d (v_m - v)

u are the measured efforts, d their delay, o their offsets. Alone they would let the simulated arm
leave the measured motion (q_m, v_m). The efforts e of the tracking controller keep it there; with
the true parameters they are noise. Unlike in a regression of efforts, velocity and acceleration
are those of the simulation: noise of the measured positions reaches the equations only through e.

References
----------
M. Gautier, A. Janot, P. Vandanjon, A new closed-loop output error method for parameter
identification of robot dynamics, IEEE T-CST 21 (2013), section III.

"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pinocchio as pin
import scipy.interpolate
import scipy.ndimage

from arm_dynamics.batch.rollouts.closed_loop import rollout_closed_loop
from arm_dynamics.batch.variation import CENTER, MOMENTS
from arm_dynamics.control.controllers.pid import Pid
from arm_dynamics.core.arrays import BoolArray, FloatArray, Matrix, Vector
from arm_dynamics.identification.efforts.low_pass import low_pass
from arm_dynamics.identification.efforts.motion_preparation import (
    FAST_RATIO,
    SAMPLES_PER_PERIOD,
    dahl_states,
    direction,
)
from arm_dynamics.identification.efforts.tracking_controller import tracking_controller
from arm_dynamics.identification.parameters.dynamic_parameters import (
    ParameterLayout,
    regressor,
    with_parameters,
)
from arm_dynamics.model.arm_model import NO_PAYLOAD, ArmModel, Joint
from arm_dynamics.recording.motions.motion_checks import saturation_limit
from arm_dynamics.recording.motions.motion_data import MotionData

DERIVATIVES_PER_SAMPLE = 2
"""Rate of derivatives over that of the outputs."""
IDEAL = MappingProxyType({"armature": 0.0})
"""Constants of an ideal actuator."""
UNLIMITED = 1e12
"""Effort limit [N·m] of a simulated joint: measured efforts are not limited again."""


class EffortSimulation:
    """Simulation of one segment of a recorded motion, for a batch of parameter vectors.

    Parameters
    ----------
    arm : ArmModel
        The arm; only its geometry, gravity and effort limits are used.
    parameters : Vector
        Dynamic parameters (14 nv,) that determine the gains of the tracking controller.
    motion : MotionData
        Segment without gaps.
    cutoff : float
        Cut-off frequency [Hz] of the outputs; measured velocities have FAST_RATIO times it.
    delay : float
        Time [s] by which the efforts are late.
    presliding : Vector
        Distances (nv,) [rad or m] over which dry friction develops. Its state then follows from the
        measured positions; that of a joint with 0 is simulated.

    """

    def __init__(
        self,
        arm: ArmModel,
        parameters: Vector,
        motion: MotionData,
        cutoff: float,
        delay: float,
        presliding: Vector,
    ) -> None:
        assert motion.effort is not None
        self._cutoff, self._presliding = cutoff, presliding > 0
        self.controller = tracking_controller(with_parameters(arm, parameters), motion.q, cutoff)
        self._arm = _geometry(arm)
        gains = {
            name: {"p": p, "i": 0.0, "d": d, "d_filter": 0.0, "ff_velocity_scale": 1.0}
            for name, p, d in zip(
                arm.joint_names, self.controller.p.tolist(), self.controller.d.tolist(), strict=True
            )
        }
        self._pid = Pid(self._arm, gains)
        self._set_motion(motion, delay, presliding)
        self._set_samples(saturation_limit(arm, motion.effort))

    def _set_motion(self, motion: MotionData, delay: float, presliding: Vector) -> None:
        """Set q_m, v_m at the ticks of the controller, and the mean efforts between them."""
        period, first, last = self.controller.period, motion.time[0], motion.time[-1]
        time, rate = np.arange(first, last, motion.period), 1 / motion.period
        interpolate = scipy.interpolate.make_interp_spline
        q = interpolate(motion.time, motion.q, min(3, len(motion.time) - 1))(time)
        fast = min(FAST_RATIO * self._cutoff, 0.25 * rate)
        smooth = low_pass(q, fast, rate)
        spline = interpolate(time, smooth, min(3, len(time) - 1))
        edges = np.arange(first, last - period, period)
        self._q, self._v = spline(edges[:-1]), spline.derivative()(edges[:-1])
        late = np.clip(edges + delay, first, last)
        effort = interpolate(motion.time, motion.effort, 1)
        self._effort: Matrix = np.diff(effort.antiderivative()(late), axis=0) / period
        self._slope: Matrix = np.diff(effort(late), axis=0) / period
        self._sliding = np.zeros_like(self._effort)
        sign, _ = direction(q - smooth, spline.derivative()(time), fast, rate)
        for i in np.flatnonzero(self._presliding).tolist():
            state = dahl_states(smooth[:, [i]], sign[:, [i]], float(presliding[i]))[:, 0]
            total = interpolate(time, state, 1).antiderivative()
            self._sliding[:, i] = np.diff(total(edges)) / period

    def _set_samples(self, limit: Vector) -> None:
        """Set the efforts of the controller that count: without ends and saturation nearby."""
        ticks = 1 / (self.controller.period * self._cutoff)
        edge, every = int(1.5 * ticks), max(1, int(ticks / SAMPLES_PER_PERIOD))
        self._used = slice(edge, -edge, every)
        saturated = np.abs(self._effort) > limit
        near = scipy.ndimage.maximum_filter1d(saturated, 2 * int(ticks) + 1, axis=0)
        self.counted: BoolArray = ~near[1:][self._used]  # the first tick has no output

    @property
    def motion(self) -> tuple[Matrix, Matrix, Matrix]:
        """Measured q_m and v_m at the ticks, and mean efforts between them, (n, nv) each."""
        return self._q, self._v, self._effort

    def outputs(self, parameters: Matrix, delay: Vector) -> FloatArray:
        """Return ``tracking_efforts`` of ``states``."""
        return self.tracking_efforts(*self.states(parameters, delay))

    def states(self, parameters: Matrix, delay: Vector) -> tuple[FloatArray, FloatArray]:
        """Return simulated q and v (k, ticks, nv) after each tick; NaN where they diverge.

        Parameters
        ----------
        parameters : Matrix
            Dynamic parameters (k, 14 nv) of consistent bodies.
        delay : Vector
            Additional delays (k,) [s] of the efforts.

        """
        k, (size, nv), controller = len(parameters), self._q.shape, self.controller
        layout = ParameterLayout(nv)
        coulomb, offset = (parameters[:, None, x] for x in (layout.coulomb, layout.offset))
        effort = self._effort + delay[:, None, None] * self._slope - offset
        effort -= coulomb * self._sliding
        # The effort is a shift of the controller's reference: K_p (q_m + u / K_p - q).
        velocity = np.broadcast_to(self._v, effort.shape)
        result = rollout_closed_loop(
            self._arm,
            np.tile(np.concatenate((self._q[0], self._v[0])), (k, 1)),
            self._pid,
            np.concatenate((self._q + effort / controller.p, velocity), axis=2),
            controller.period,
            controller.period,
            controller.period * size,
            interface="effort",
            vary=_varied(parameters, self._presliding),
            backend="generated",
            outputs=("q", "v"),
            integrator="velocity_verlet",
            threads=1,
        )
        return result.q, result.v

    def tracking_efforts(self, q: FloatArray, v: FloatArray) -> FloatArray:
        """Return filtered efforts e (k, n, nv) [N·m or N] of ``states`` (k, ticks, nv).

        NaN where a simulation diverged.
        """
        controller = self.controller
        efforts = controller.p * (self._q[1:] - q[:, :-1]) + controller.d * (
            self._v[1:] - v[:, :-1]
        )
        diverged = ~np.isfinite(efforts).all(axis=(1, 2))
        efforts[diverged] = 0.0
        filtered = low_pass(efforts.swapaxes(0, 1), self._cutoff, 1 / controller.period)[self._used]
        filtered = np.array(filtered.swapaxes(0, 1))
        filtered[diverged] = np.nan
        return filtered

    def jacobian(self, q: Matrix, v: Matrix, directions: Matrix) -> FloatArray:
        """Return derivatives (n, nv, r + 1) of the outputs along directions, and by the delay.

        The response of the controller to the regressor of the simulated motion: the regressor
        itself does not change, because the controller keeps the motion.

        Parameters
        ----------
        q, v : Matrix
            Simulated motion (ticks, nv).
        directions : Matrix
            Changes (14 nv, r) of the dynamic parameters.

        """
        controller, nv, step = self.controller, q.shape[1], self._used.step
        every = step // DERIVATIVES_PER_SAMPLE if step % DERIVATIVES_PER_SAMPLE == 0 else step
        first = self._used.start // every
        ticks = np.arange(self._used.start - first * every, len(q), every)
        a = np.gradient(v, controller.period, axis=0)
        friction = np.where(self._presliding, self._sliding, np.sign(v))
        a, friction, slope = (
            scipy.ndimage.uniform_filter1d(x, every, axis=0)[ticks]
            for x in (a, friction, self._slope)
        )
        rows, joints = regressor(self._arm, q[ticks], v[ticks], a), np.arange(nv)
        rows[..., ParameterLayout(nv).coulomb][:, joints, joints] = friction
        rows = np.concatenate((rows @ directions, -slope[..., None]), axis=2)
        period = every * controller.period
        found = low_pass(controller.response(rows, period), self._cutoff, 1 / period)
        jacobian: FloatArray = found[first :: step // every][: len(self.counted)]
        return jacobian


def _geometry(arm: ArmModel) -> ArmModel:
    """Return an arm with these joints, unit bodies and no friction: its kernel serves all of them.

    Parameters of bodies and joints are quantities of each rollout.
    """
    links = pin.Model(arm.links)
    for i in range(1, links.njoints):
        links.inertias[i] = pin.Inertia(1.0, np.zeros(3), np.eye(3))
    joints = tuple(
        Joint(joint.name, joint.kind, -np.inf, np.inf, 0.0, UNLIMITED, constants=IDEAL)
        for joint in arm.joints
    )
    return replace(arm, links=links, joints=joints, payload=NO_PAYLOAD)


def _varied(parameters: Matrix, presliding: BoolArray) -> dict[str, Matrix]:
    """Return the quantities (k, nv) of a rollout with dynamic parameters (k, 14 nv)."""
    layout = ParameterLayout(presliding.size)
    links = layout.bodies(parameters)
    mass = links[..., 0]
    x, y, z = np.moveaxis(links[..., 1:4] / mass[..., None], -1, 0)
    xx, xy, yy, xz, yz, zz = np.moveaxis(links[..., 4:], -1, 0)
    moments = (
        xx - mass * (y**2 + z**2),
        xy + mass * x * y,
        xz + mass * x * z,
        yy - mass * (x**2 + z**2),
        yz + mass * y * z,
        zz - mass * (x**2 + y**2),
    )
    return {
        "link.mass": mass,
        **dict(zip(CENTER, (x, y, z), strict=True)),
        **dict(zip(MOMENTS, moments, strict=True)),
        "motor.armature": parameters[:, layout.armature],
        "joint.damping": parameters[:, layout.viscous],
        "joint.friction": np.where(presliding, 0.0, parameters[:, layout.coulomb]),
    }
