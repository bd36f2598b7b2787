"""Refinement of a torque fit by output error: whole motions are simulated.

A regression of efforts takes velocities and accelerations from positions, whose noise makes its
estimate biased; a simulation needs the positions only. The unknowns are the directions of the
parameters that the efforts determine; along the others the parameters of the torque fit remain.
Bodies change in log-Cholesky coordinates, friction and rotor inertia by factors: they stay
consistent. Motions are simulated with a tracking controller (``effort_simulation``), whose efforts
are the output: they are small where simulated and measured positions agree.

References
----------
M. Gautier, A. Janot, P. Vandanjon, A new closed-loop output error method for parameter
identification of robot dynamics, IEEE T-CST 21 (2013), section III. C. Rucker, P. Wensing, Smooth
parameterization of rigid-body inertia, IEEE RA-L 7 (2022), section III.

"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy.linalg

from arm_dynamics.core.arrays import FloatArray, Matrix, Vector, as_readonly
from arm_dynamics.core.blas_threads import with_one_blas_thread
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.identification.efforts.effort_equations import EffortEquations, joined_equations
from arm_dynamics.identification.efforts.effort_simulation import EffortSimulation
from arm_dynamics.identification.efforts.friction_terms import without_gear_loss
from arm_dynamics.identification.efforts.motion_preparation import MIN_PERIODS, PreparedMotion
from arm_dynamics.identification.efforts.output_error import OutputError, differences
from arm_dynamics.identification.efforts.torque_fit import TorqueFit, friction_models, refit_torque
from arm_dynamics.identification.efforts.torque_problem import correlation_time
from arm_dynamics.identification.parameters.consistent_least_squares import HUBER, rms, robust_scale
from arm_dynamics.identification.parameters.dynamic_parameters import ParameterLayout
from arm_dynamics.identification.parameters.pseudo_inertia import (
    from_log_cholesky,
    log_cholesky_metric,
    log_cholesky_parameters,
)
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.recording.motions.motion_data import MotionData

DETERMINED = 1.0
"""Information of the efforts over that of the prior above which a direction is an unknown."""
DELAY_DEVIATION = 1e-3
"""Standard deviation [s] of the delay before the refinement."""
FITTED = 0.8
"""Part of each motion, at its begin, that is fitted while the rest decides."""
STEPS, TOLERANCE = 12, 2e-3
"""Levenberg-Marquardt steps, and the relative decrease that ends them."""
TOLERATED, TRADED = 0.005, 0.2
"""Relative increase of the held-out error of the regression up to which a better simulation
decides, and the increase for each decrease of the error of the simulation."""
TRUST = 0.3
"""Weight of the torque fit, which noise of the positions biases, relative to the simulations."""
DIFFERENCE = 0.1
"""Change of the unknowns for derivatives of simulations, in standard deviations."""
CHART_DIFFERENCE = 1e-5
"""Change of the unknowns for derivatives of the parameters, in standard deviations."""


class ParameterChart:
    """Consistent parameters π(z) around those of a torque fit, π(0).

    Coordinates c are the log-Cholesky parameters of the bodies, the logarithms of rotor inertia and
    friction, and the offsets; c = c₀ + B z. The columns of B (14 nv, r) are the directions in
    which the efforts determine the free parameters, of the length of a standard deviation of the
    fit.
    """

    def __init__(self, fit: TorqueFit) -> None:
        self._layout = layout = ParameterLayout(fit.parameters.size // 14)
        links = layout.bodies(fit.parameters)
        self._links = np.array([log_cholesky_parameters(own) for own in links])
        self._terms = np.log(fit.parameters[layout.terms])
        self._offset = fit.parameters[layout.offset]
        jacobian = self._jacobian_at_start()
        information = jacobian.T @ fit.information @ jacobian
        metrics = [log_cholesky_metric(own) for own in self._links]
        terms = np.square(np.diag(jacobian)) * np.diag(fit.prior_information)
        before = scipy.linalg.block_diag(
            *(fit.prior_weight * metric for metric in metrics),
            np.diag(terms[layout.inertial.stop :]),
        )
        free = np.ix_(fit.free, fit.free)
        values, vectors = scipy.linalg.eigh(information[free], before[free])
        used = values > DETERMINED
        length = 1 / np.sqrt(values[used] + 1)
        self.directions: Matrix = np.zeros((layout.size, int(used.sum())))
        self.directions[fit.free] = vectors[:, used] * length

    @property
    def size(self) -> int:
        """Number r of unknowns."""
        return int(self.directions.shape[1])

    def parameters(self, z: Matrix) -> Matrix:
        """Return π (k, 14 nv) of z (k, r)."""
        return self._at(z @ self.directions.T)

    def jacobian(self, z: Vector) -> Matrix:
        """Return ∂π/∂z (14 nv, r) at z (r,)."""
        moved = self.parameters(np.vstack((z, z + CHART_DIFFERENCE * np.eye(z.size))))
        jacobian: Matrix = (moved[1:] - moved[0]).T / CHART_DIFFERENCE
        return jacobian

    def _at(self, change: Matrix) -> Matrix:
        layout = self._layout
        bodies = from_log_cholesky(self._links + layout.bodies(change)).reshape(len(change), -1)
        terms, offset = change[:, layout.terms], change[:, layout.offset]
        return np.hstack((bodies, np.exp(self._terms + terms), self._offset + offset))

    def _jacobian_at_start(self) -> Matrix:
        """Return ∂π/∂c (14 nv, 14 nv) at c₀."""
        step, p = 1e-6, self._layout.size
        jacobian: Matrix = (self._at(step * np.eye(p)) - self._at(-step * np.eye(p))).T / (2 * step)
        return jacobian


@with_one_blas_thread
def refine(
    arm: ArmModel, prepared: Sequence[PreparedMotion], fit: TorqueFit
) -> tuple[TorqueFit, str]:
    """Return the fit with parameters of least output error, if they predict better, and a note.

    The last part of each motion decides, with parameters of the rest by torque fit and by output
    error: the latter are used if the simulation follows the motion better with them, and if the
    error of the regression, which noise of the positions biases, increases by TOLERATED and a part
    TRADED of that improvement at most. Then all of the motion is fitted.

    Parameters
    ----------
    arm : ArmModel
        Nominal model.
    prepared : Sequence[PreparedMotion]
        Fitted motions.
    fit : TorqueFit
        Their torque fit.

    Returns
    -------
    TorqueFit
        ``fit``, or the same with other parameters.
    str
        A sentence for the user.

    """
    prepared = [without_terms(motion, fit) for motion in prepared]
    begin, rest, fitted, held_out = _divided(prepared)
    cutoff = max(p.cutoff for p in prepared)
    delay = float(np.median([p.delay for p in prepared]))

    def simulations(fit: TorqueFit, motions: Sequence[MotionData]) -> list[EffortSimulation]:
        return simulations_of(arm, fit, motions, cutoff, delay)

    try:
        first = refit_torque(arm, fitted, fit)
        trial, shift = _least_output_error(first, simulations(first, begin))
        both, delays = np.array([first.parameters, trial]), np.array([0.0, shift])
        after = _ratio(*_tracking_errors(simulations(first, rest), both, delays))
        regression = _ratio(*(_regression_error(held_out, fit, x) for x in both))
        change = (
            f"held-out error {100 * (after - 1):+.2g} %, of efforts {100 * (regression - 1):+.2g} %"
        )
        if after >= 1 or regression - 1 > TOLERATED + TRADED * (1 - after):
            fit = _with_difference(fit, trial - first.parameters)
            return fit, f"output error of simulated motions: {change}; not used"
        parameters, shift = _least_output_error(
            fit, simulations(fit, [motion.data for motion in prepared])
        )
    except InvalidValue as error:
        return fit, f"output error of simulated motions: not used: {error}"
    # Actuators without these terms have Coulomb friction instead.
    simulated = parameters + (fit.simulated - fit.parameters)
    fit = _with_difference(fit, parameters - fit.parameters)
    return (
        replace(fit, parameters=as_readonly(parameters), simulated=as_readonly(simulated)),
        f"output error of simulated motions: {change}; delay {1e3 * (delay + shift):.3g} ms",
    )


def _divided(
    prepared: Sequence[PreparedMotion],
) -> tuple[list[MotionData], list[MotionData], EffortEquations, EffortEquations]:
    """Return the first FITTED of each motion, the rest, and the equations of both."""
    begin, rest, fitted, held_out = [], [], [], []
    for motion in prepared:
        data = motion.data
        end = data.time[0] + FITTED * (data.time[-1] - data.time[0])
        begin.append(data.part(data.time <= end))
        rest.append(data.part(data.time > end))
        fitted.append(motion.equations.part(motion.time <= end))
        held_out.append(motion.equations.part(motion.time > end))
    return begin, rest, joined_equations(fitted), joined_equations(held_out)


def _with_difference(fit: TorqueFit, difference: Vector) -> TorqueFit:
    """Return the fit with deviations that contain the difference (14 nv,) of both estimates.

    Errors of the equations bias them, each differently; residuals do not show a bias. The variance
    of base parameters with the difference δ becomes σ² + ½ (δ² + σ² mean(δ² / σ²)): δ² is that of
    two errors, and a small one may be chance.
    """
    own, variance = np.square(fit.base.values(difference)), fit.base_deviation**2
    known = np.isfinite(variance) & (variance > 0)
    average = variance * np.mean(own[known] / variance[known]) if known.any() else 0.0
    base_deviation = np.sqrt(variance + 0.5 * (own + average))
    return replace(
        fit,
        deviation=as_readonly(np.hypot(fit.deviation, difference)),
        base_deviation=as_readonly(base_deviation),
    )


def without_terms(prepared: PreparedMotion, fit: TorqueFit) -> PreparedMotion:
    """Return the motion without Stribeck friction, gear losses and coupled motors of the fit."""
    friction, equations, motion = fit.friction, prepared.equations, prepared.data
    if not friction.has_terms or motion.effort is None:
        return prepared
    effort = equations.predicted(fit.parameters, friction)
    terms = equations.stribeck(friction) + effort
    terms += equations.coupled_efforts(friction)
    terms -= without_gear_loss(effort, equations.states(friction), friction.loss)
    at = motion.time - prepared.delay
    recorded = [np.interp(at, prepared.time, column) for column in terms.T]
    return replace(
        prepared,
        data=replace(motion, effort=motion.effort - np.stack(recorded, axis=1)),
        equations=replace(equations, effort=equations.effort - terms, coupled=None),
    )


def simulations_of(
    arm: ArmModel, fit: TorqueFit, motions: Sequence[MotionData], cutoff: float, delay: float
) -> list[EffortSimulation]:
    """Return the simulations of all segments that are long enough for the filter."""
    least = MIN_PERIODS / cutoff
    simulations = [
        EffortSimulation(arm, fit.parameters, segment, cutoff, delay, fit.presliding)
        for motion in motions
        for segment in motion.segments()
        if segment.time[-1] - segment.time[0] > least
    ]
    if not simulations:
        raise InvalidValue(
            f"motion = less than {least:.2g} s without a gap; record a longer motion"
        )
    return simulations


def _least_output_error(
    fit: TorqueFit, simulations: Sequence[EffortSimulation]
) -> tuple[Vector, float]:
    """Return the parameters (14 nv,) of least output error, and the change of the delay [s]."""
    chart = ParameterChart(fit)
    z = np.zeros(chart.size + 1)
    found = output_error(chart, simulations).minimum(z, STEPS, TOLERANCE).parameters
    return chart.parameters(found[None, :-1])[0], float(DELAY_DEVIATION * found[-1])


def output_error(chart: ParameterChart, simulations: Sequence[EffortSimulation]) -> OutputError:
    """Return the output error by the unknowns of the chart and the delay (r + 1,).

    Outputs are weighted by their deviations and correlation at z = 0; outliers count less.
    """
    counted = np.concatenate([simulation.counted for simulation in simulations])
    error, z = TrackingError(chart, simulations), np.zeros(chart.size + 1)
    residual = error.residuals(z[None])[0]
    scale = robust_scale(residual, counted)
    relative = residual / scale
    robust = counted / np.maximum(1.0, np.abs(relative) / HUBER)
    weights = robust / (correlation_time(relative * robust) * scale**2)
    exact = differences(error.residuals, DIFFERENCE)
    precision = TRUST * np.eye(z.size)
    return OutputError(error.residuals, exact, weights, precision, z, error.jacobian)


class TrackingError:
    """Efforts of the tracking controllers of all simulations by unknowns z and delay (r + 1,)."""

    def __init__(self, chart: ParameterChart, simulations: Sequence[EffortSimulation]) -> None:
        self._chart, self._simulations = chart, simulations
        self._simulated = np.empty((0, chart.size + 1))
        self._states: list[tuple[FloatArray, FloatArray]] = []

    def residuals(self, points: Matrix) -> FloatArray:
        """Return filtered efforts (k, n, nv) at k points; NaN where a simulation diverged."""
        parameters = self._chart.parameters(points[:, :-1])
        late = DELAY_DEVIATION * points[:, -1]
        self._states = [x.states(parameters, late) for x in self._simulations]
        self._simulated = points.copy()
        pairs = zip(self._simulations, self._states, strict=True)
        return np.concatenate([x.tracking_efforts(*states) for x, states in pairs], axis=1)

    def jacobian(self, point: Vector, _: Matrix) -> Matrix:
        """Return their derivatives (r + 1, n nv) at a point of the last ``residuals``."""
        latest = int(np.flatnonzero((self._simulated == point).all(axis=1))[0])
        directions = self._chart.jacobian(point[:-1])
        pairs = zip(self._simulations, self._states, strict=True)
        jacobian = [x.jacobian(q[latest], v[latest], directions) for x, (q, v) in pairs]
        found: Matrix = np.concatenate(jacobian).transpose(2, 0, 1).reshape(point.size, -1).copy()
        found[-1] *= DELAY_DEVIATION
        return found


def _tracking_errors(
    simulations: Sequence[EffortSimulation], parameters: Matrix, delay: Vector
) -> Matrix:
    """Return the RMS efforts (k, nv) of the tracking controller with parameters (k, 14 nv)."""
    efforts = np.concatenate([s.outputs(parameters, delay) for s in simulations], axis=1)
    counted = np.concatenate([simulation.counted for simulation in simulations])
    return np.array([rms(own, counted) for own in efforts])


def _regression_error(equations: EffortEquations, fit: TorqueFit, parameters: Vector) -> Vector:
    """Return the RMS residuals (nv,) of the equations."""
    models = friction_models(equations, fit)
    residual = equations.effort - equations.rows(models) @ parameters
    return rms(residual, equations.counted(models))


def _ratio(before: Vector, after: Vector) -> float:
    """Return the RMS over the joints of the ratio of errors (nv,)."""
    return float(np.sqrt(np.mean((after / np.maximum(before, 1e-12)) ** 2)))
