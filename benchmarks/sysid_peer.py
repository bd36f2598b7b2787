"""The output error of ``arm_dynamics`` minimized by ``mujoco.sysid``: same motion, same unknowns.

MuJoCo simulates the same tracking controller with the same time step, and the residual is the same:
filtered efforts of the controller. The modifier of the parameter, and the residual, are the Python
functions that ``mujoco.sysid`` expects from its users.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from types import MappingProxyType

import mujoco
import numpy as np
from mjcf import mjcf
from mujoco import sysid
from mujoco.minimize import IterLog

from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.identification.efforts.effort_simulation import EffortSimulation
from arm_dynamics.identification.efforts.output_error_refinement import TRUST, ParameterChart
from arm_dynamics.identification.parameters.dynamic_parameters import with_parameters
from arm_dynamics.model.arm_model import ArmModel

MAX_DEVIATION = 50.0
"""Bound of the unknowns, in standard deviations."""


@dataclass(frozen=True)
class PeerResult:
    """Costs at the start and after each Jacobian, wall time [s], and how the iteration ended."""

    costs: list[float]
    seconds: float
    end: str


def minimize(
    arm: ArmModel,
    simulation: EffortSimulation,
    chart: ParameterChart,
    weights: Matrix,
    iterations: int,
) -> PeerResult:
    """Return the result of ``mujoco.sysid.optimize`` after at most ``iterations`` Jacobians."""
    nv, first = arm.nv, chart.parameters(np.zeros((1, chart.size)))[0]
    spec = _spec(arm, simulation, first)
    q, v, effort = simulation.motion
    initial = np.concatenate((q[0], v[0]))

    def apply(changed: mujoco.MjSpec, parameter: sysid.Parameter) -> None:
        _set_parameters(changed, arm, chart.parameters(parameter.value[None])[0])

    def residual(parameters, predicted, measured, model, return_all, state=None):  # noqa: ANN001, ANN202
        # Sensors are those before a time step; the last tick has no output.
        ends = np.vstack((state, state[-1:]))[None]
        q, v = ends[:, :, 1 : nv + 1], ends[:, :, nv + 1 : 2 * nv + 1]
        outputs = simulation.tracking_efforts(q, v)[0]
        rows = np.sqrt(weights) * outputs
        z = np.sqrt(TRUST / nv) * parameters.as_vector()
        prior = np.broadcast_to(z[:, None], (chart.size, nv))
        return np.vstack((rows, prior)), predicted, predicted

    parameters = sysid.ParameterDict()
    zero = np.zeros(chart.size)
    parameters.add(
        sysid.Parameter("z", zero, zero - MAX_DEVIATION, zero + MAX_DEVIATION, modifier=apply)
    )
    model = spec.compile()
    ticks = simulation.controller.period * np.arange(len(q))
    control = np.hstack((effort - first[13 * nv :], q, v))
    state = sysid.create_initial_state(model, initial[:nv], initial[nv:], np.zeros(0))
    measured = sysid.TimeSeries.from_names(ticks[1:], np.hstack((q, v))[1:], model)
    sequences = sysid.ModelSequences(
        arm.name, spec, "motion", state, sysid.TimeSeries(ticks, control), measured
    )
    function = sysid.build_residual_fn(
        models_sequences=[sequences], modify_residual=residual, n_threads=1, resample_true=False
    )
    costs: list[float] = []

    def record(log: list[IterLog]) -> None:
        costs[:] = [float(one.objective) for one in log]

    begin = time.perf_counter()
    sysid.optimize(
        parameters,
        function,
        "mujoco",
        verbose=False,
        max_iters=iterations,
        eps=0.1,
        iter_callback=record,
    )
    seconds = time.perf_counter() - begin
    ends = len(costs) < iterations
    return PeerResult(costs, seconds, "" if ends else f"; it was stopped after {iterations}")


def _spec(arm: ArmModel, simulation: EffortSimulation, parameters: Vector) -> mujoco.MjSpec:
    """Return the model with motors, position and velocity actuators, and sensors."""
    nv = arm.nv
    identified = with_parameters(arm, parameters)
    joints = tuple(
        replace(
            joint,
            actuator="ideal",
            constants=MappingProxyType({"armature": float(parameters[10 * nv + i])}),
            lower=-np.inf,
            upper=np.inf,
            effort=np.inf,
            damping=float(parameters[11 * nv + i]),
        )
        for i, joint in enumerate(identified.joints)
    )
    text = mjcf(replace(identified, joints=joints), simulation.controller.period, True)
    spec = mujoco.MjSpec.from_string(text)
    spec.compiler.balanceinertia = True
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    controller = simulation.controller
    for kind, values in ((1, controller.p), (2, controller.d)):
        for joint, gain in zip(arm.joint_names, values.tolist(), strict=True):
            bias = [0.0] * 10
            bias[kind] = -gain
            spec.add_actuator(
                name=f"{joint}.{kind}",
                target=joint,
                trntype=mujoco.mjtTrn.mjTRN_JOINT,
                gainprm=[gain] + [0.0] * 9,
                biastype=mujoco.mjtBias.mjBIAS_AFFINE,
                biasprm=bias,
            )
    for kind in (mujoco.mjtSensor.mjSENS_JOINTPOS, mujoco.mjtSensor.mjSENS_JOINTVEL):
        for joint in arm.joint_names:
            spec.add_sensor(
                name=f"{joint}.{int(kind)}",
                type=kind,
                objtype=mujoco.mjtObj.mjOBJ_JOINT,
                objname=joint,
            )
    _set_parameters(spec, arm, parameters)
    return spec


def _set_parameters(spec: mujoco.MjSpec, arm: ArmModel, parameters: Vector) -> None:
    """Set inertia, armature, damping and dry friction of (14 nv,) parameters."""
    nv = arm.nv
    changed = with_parameters(arm, parameters)
    armature, damping, friction = parameters[10 * nv : 13 * nv].reshape(3, nv).tolist()
    for i, name in enumerate(arm.joint_names):
        joint, inertia = spec.joint(name), changed.links.inertias[i + 1]
        joint.armature, joint.frictionloss = armature[i], friction[i]
        joint.damping = np.ravel([damping[i], 0.0, 0.0])[: np.size(joint.damping)]
        values, axes = np.linalg.eigh(inertia.inertia)
        axes *= np.sign(np.linalg.det(axes))
        turn = np.zeros(4)
        mujoco.mju_mat2Quat(turn, axes.ravel())
        body = joint.parent
        body.fullinertia = np.full(6, np.nan)
        body.mass, body.ipos, body.inertia, body.iquat = inertia.mass, inertia.lever, values, turn
