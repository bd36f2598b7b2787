"""Scatter of least squares and stated deviations: table of docs/identification_results.md.

    python benchmarks/regression_deviations.py [ARM ...] [--arms 3] [--runs 12]

MuJoCo simulates arms with hidden parameters along one excitation trajectory of 30 s, sampled at
1 kHz. The runs of an arm differ in the noise of positions and efforts, that of
``identified_deviations.py``. Nothing is simulated in the fit (``--no-simulation``).
"""

from __future__ import annotations

import argparse
import warnings

import mujoco
import numpy as np
from identified_deviations import EVALUATIONS, MAX_SIGMAS, hidden_arm, measured
from machine import machine
from mjcf import mjcf
from threadpoolctl import threadpool_limits

from arm_dynamics import load_arm
from arm_dynamics.core.arrays import Matrix
from arm_dynamics.identification import Excitation, excite, identify, nominal_parameters, regressor
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.recording import MotionData

ARMS = ("so101", "puma560", "seven_dof_can")
SECONDS, PERIOD, SUBSTEPS = 30.0, 1e-3, 4
"""Duration and sampling period [s]; time steps of the simulation in a period."""


def simulated(actual: ArmModel, motion: Excitation) -> MotionData:
    """Return the motion of an arm under computed torque in MuJoCo, without noise."""
    nv, values = actual.nv, nominal_parameters(actual)
    model = mujoco.MjModel.from_xml_string(mjcf(actual, PERIOD / SUBSTEPS, True))
    model.jnt_limited[:] = model.actuator_ctrllimited[:] = 0
    model.actuator_gainprm[:, 0], model.actuator_biasprm[:, :3] = 1.0, 0.0
    model.dof_armature[:], model.dof_damping[:], model.dof_frictionloss[:] = values[
        10 * nv : 13 * nv
    ].reshape(3, nv)
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    model.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_EULERDAMP)
    data, M = mujoco.MjData(model), np.zeros((nv, nv))
    time = PERIOD * np.arange(int(motion.duration / PERIOD))
    q, v, a = motion.sample(time)
    feedforward = regressor(actual, q, v, a) @ values
    data.qpos[:], data.qvel[:] = q[0], v[0]
    position, effort = np.empty_like(q), np.empty_like(q)
    for k in range(time.size):
        mujoco.mj_fullM(model, M, data.qM)
        data.ctrl[:] = feedforward[k] + M @ (400 * (q[k] - data.qpos) + 40 * (v[k] - data.qvel))
        position[k], effort[k] = data.qpos, data.ctrl
        mujoco.mj_step(model, data, SUBSTEPS)
    return MotionData(actual.joint_names, time, position, effort, "exact")


def relative_errors(arm: ArmModel, motion: Excitation, seed: int, runs: int) -> Matrix:
    """Return errors over deviations (2, runs, nb): of least squares, and of the reported fit."""
    actual = hidden_arm(arm, np.random.default_rng(seed))
    exact, true = simulated(actual, motion), nominal_parameters(actual)
    held_out, rows = exact.part(slice(0, len(exact.time) // 2)), []
    for k in range(runs):
        recorded = measured(exact, np.random.default_rng(100 + k))
        fit = identify(arm, [recorded], [held_out], simulate=False).fit
        error = fit.base_values - fit.base.values(true), fit.base.values(fit.parameters - true)
        rows.append(np.array(error) / fit.base_deviation)
    return np.moveaxis(np.array(rows), 1, 0)


@threadpool_limits.wrap(limits=1)
def main() -> None:
    """Print a row for each arm."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="ARM", default=ARMS)
    parser.add_argument("--arms", type=int, default=3, help="sets of hidden parameters")
    parser.add_argument("--runs", type=int, default=12, help="runs of each set")
    options = parser.parse_args()
    print(machine(), "\n")
    print(
        "| arm | scatter / stated, least squares | within 3, least squares [%] |"
        " within 3, reported [%] | bias / stated, least squares |"
    )
    print("|---|---|---|---|---|")
    for name in options.names:
        arm = load_arm(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # collisions at the start
            motion = excite(arm, SECONDS, seed=1, evaluations=EVALUATIONS)
            found = np.array(
                [relative_errors(arm, motion, seed, options.runs) for seed in range(options.arms)]
            )
        variance = found[:, 0].var(axis=1, ddof=1).mean(axis=0)
        bias = (found[:, 0].mean(axis=1) ** 2).mean(axis=0) - variance / options.runs
        inside = 100 * np.mean(np.abs(found) < MAX_SIGMAS, axis=(0, 2, 3))
        print(
            f"| `{name}` | {np.sqrt(variance.mean()):.2f} | {inside[0]:.1f} | {inside[1]:.1f} |"
            f" {np.sqrt(np.maximum(bias, 0).mean()):.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
