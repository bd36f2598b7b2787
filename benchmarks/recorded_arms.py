"""Held-out efforts of recorded arms: ``identify`` and FIGAROH on the same samples.

    python benchmarks/recorded_arms.py --panda FOLDER --panda-urdf FILE
        --ur10e FOLDER --figaroh-examples FOLDER --figaroh-python PYTHON

The data are not part of this repository. ``--panda`` is a copy of
github.com/marcocognetti/FrankaEmikaPandaDynModel, ``--ur10e`` one of
github.com/shamilmamedov/dynamic_calibration, ``--figaroh-examples`` one of
github.com/thanhndv212/figaroh-examples; data sets whose folder is not given are omitted. PYTHON
is the interpreter of an environment with ``pip install figaroh``.

The first 60 % of each recording are fitted, the last 40 % predicted. Efforts of both programs are
compared after the same low-pass filter, at the samples that count for ``identify``: without
saturation, rest and, unless presliding was chosen, reversals of the joint. The delay that
``identify`` estimates is removed from its own comparison only. Times are processor times of
preparation and fit, with one thread of linear algebra.
``figaroh_peer.py`` states the steps of FIGAROH; its cut-off frequency is that of its example.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.interpolate
from machine import machine
from threadpoolctl import threadpool_limits

from arm_dynamics import load_arm
from arm_dynamics.core.arrays import BoolArray, Matrix, Vector
from arm_dynamics.identification import Identification, identify, prepare_motion
from arm_dynamics.identification.efforts.coupled_motors import coupling_factors
from arm_dynamics.identification.efforts.low_pass import low_pass
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.inertia_correction import with_consistent_inertia
from arm_dynamics.model.load import parse_arm
from arm_dynamics.recording import MotionData

FITTED = 0.6
"""Part of each recording that is fitted."""
GRAVITY = 9.81
FINGERS = ("panda_finger_joint1", "panda_finger_joint2")
CASTERS = [f"caster_{a}_{b}_{k}_joint" for a in ("front", "back") for b in ("left", "right")
           for k in (1, 2)]  # fmt: skip
SIDES = [f"{part}_{side}_joint" for part in ("suspension", "wheel") for side in ("right", "left")]
NOT_RECORDED = [*SIDES, *CASTERS, "head_1_joint", "head_2_joint", "gripper_finger_joint",
                "gripper_right_finger_joint"]  # fmt: skip
"""Joints of TIAGo that did not move."""


@dataclass(frozen=True)
class Case:
    """Recorded arm; ``coupled`` as for ``identify``, ``cutoff`` [Hz] of FIGAROH's example."""

    name: str
    arm: ArmModel
    motion: MotionData
    cutoff: float
    coupled: tuple[dict[str, float], ...] = ()


def panda(folder: Path, urdf: Path) -> list[Case]:
    """Return the log of Gaz et al. 2019: 21 s of a Panda. FIGAROH has no example of it."""
    log = folder / "matlab/data/Exciting_Traj/Trajectory_1/rbt_log"
    stamps, q, effort = (
        np.loadtxt(log / f"exciting_traj_{name}.txt") for name in ("time", "positions", "torques")
    )
    arm = load_arm(urdf, FINGERS)
    motion = MotionData(arm.joint_names, stamps, q.reshape(-1, 7), effort.reshape(-1, 7), "panda")
    return [Case("Panda", arm, motion, 10.0)]


def ur10e(folder: Path) -> list[Case]:
    """Return a UR10e: 39 s at about 95 Hz. FIGAROH has no example of it.

    The file has time, positions, velocities, and currents, desired currents and desired torques of
    the motors. Drive gains are the ratio of its last two. The rests at both ends are omitted.
    """
    arm = load_arm(folder / "URe/urdf/ur10e.urdf")
    log = folder / "dataset_ur10e/identification_data/ur-20_02_10-30sec_12harm.csv"
    rows = np.loadtxt(log, delimiter=",")
    moving = np.flatnonzero(np.abs(rows[:, 7:13]).max(axis=1) > 0.01)
    rows = rows[moving[0] : moving[-1]]
    gains = np.array([11.97, 11.97, 9.84, 10.76, 10.76, 10.76])
    q, effort = rows[:, 1:7], rows[:, 13:19] * gains
    return [Case("UR10e", arm, MotionData(arm.joint_names, rows[:, 0], q, effort, "ur10e"), 10.0)]


def tx40(folder: Path) -> list[Case]:
    """Return the TX40 with and without its coupled motor: 9 s at 5 kHz.

    Gear ratios, offsets and the coupling of the wrist are those of FIGAROH's example.
    """
    arm = load_arm(folder / "urdf/tx40_mdh_modified.urdf")
    angle, current = (
        np.loadtxt(folder / f"data/{name}_data.csv", delimiter=",", skiprows=1)
        for name in ("pos_read", "curr")
    )
    gears = np.diag([32.0, 32.0, 45.0, -48.0, 45.0, 32.0])
    gears[5, 4] = 32.0
    q = np.linalg.solve(gears, angle.T).T + np.array([0, -1, 1, 0, 0, 0]) * np.pi / 2
    stamps = 0.0002 * np.arange(len(q))
    motion = MotionData(arm.joint_names, stamps, q, current @ gears, "tx40")
    wrist = ({"joint_5": 1.0, "joint_6": 1.0},)
    return [
        Case("TX40, coupled wrist", arm, motion, 100.0, wrist),
        Case("TX40, no coupled motor", arm, motion, 100.0),
    ]


def tiago(folder: Path) -> list[Case]:
    """Return torso and arm of TIAGo: 59 s at 100 Hz; factors are those of FIGAROH's example.

    The recorded force of the torso lacks a constant: the weight of torso and arm, as there.
    """
    file = folder / "urdf/tiago_48_schunk.urdf"
    text, _ = with_consistent_inertia(file.read_text(encoding="utf-8"))
    arm = parse_arm(text, file, NOT_RECORDED)
    position, effort = (
        np.genfromtxt(
            folder / f"data/identification/dynamic/tiago_{name}.csv", delimiter=",", skip_header=1
        )[921:6791]
        for name in ("position", "effort")
    )
    gears = np.array([1, 100, 100, 100, 100, 336, 336, 336])
    constants = np.array([1, 0.136, 0.136, -0.087, -0.087, -0.0613, -0.0613, -0.0613])
    tau = effort[:, 1:] * gears * constants
    tau[:, 0] += GRAVITY * sum(link.mass for link in list(arm.model.inertias)[1:])
    return [
        Case(
            "TIAGo",
            arm,
            MotionData(arm.joint_names, position[:, 0], position[:, 1:], tau, "tiago"),
            2.0,
        )
    ]


def timed(call: Callable[[], Identification]) -> tuple[float, Identification]:
    """Return the processor time [s] of a call, and its result."""
    begin = time.process_time()
    result = call()
    return time.process_time() - begin, result


def relative(error: Matrix, measured: Matrix, counted: BoolArray) -> Vector:
    """Return the RMS of counted errors over that of the measured efforts (nv,)."""
    found: Vector = np.sqrt((counted * error**2).sum(axis=0) / (counted * measured**2).sum(axis=0))
    return found


def uniform(motion: MotionData) -> tuple[Vector, Matrix, Matrix]:
    """Return time, positions and efforts at a uniform rate, as ``prepare_motion`` uses them."""
    stamps = np.arange(motion.time[0], motion.time[-1], motion.period)
    q = scipy.interpolate.make_interp_spline(motion.time, motion.q, 3)(stamps)
    effort = scipy.interpolate.make_interp_spline(motion.time, motion.effort, 1)(stamps)
    return stamps, q, effort


def figaroh(
    case: Case, fitted: MotionData, held_out: MotionData, result: Identification, python: Path
) -> tuple[float, Vector]:
    """Return processor time [s] and relative errors (nv,) of FIGAROH."""
    arm = case.arm
    factors = coupling_factors(arm, case.coupled) if case.coupled else None
    known = prepare_motion(arm, fitted, None, None, factors)
    test = prepare_motion(arm, held_out, known.cutoff, known.delay, factors)
    stamps, q, effort = uniform(held_out)
    known_time, known_q, known_effort = uniform(fitted)
    wrist = np.zeros(0, dtype=int) if factors is None else np.flatnonzero(factors[0])
    with tempfile.TemporaryDirectory() as name:
        data, answer = Path(name) / "data.npz", Path(name) / "result.npz"
        np.savez(
            data, urdf=arm.urdf, locked=np.array(arm.locked, dtype=str),
            coupled=wrist, cutoff=case.cutoff, time=known_time, q=known_q, effort=known_effort,
            held_out_time=stamps, held_out_q=q, held_out_effort=effort,
        )  # fmt: skip
        script = Path(__file__).with_name("figaroh_peer.py")
        command = [str(python), "-W", "ignore", str(script), str(data), str(answer)]
        one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        environment = {**os.environ, **one_thread}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
        found = np.load(answer)
        seconds, predicted = float(found["seconds"]), found["predicted"]
    rate = 1 / held_out.period
    error, measured = (
        scipy.interpolate.make_interp_spline(stamps, low_pass(x, known.cutoff, rate), 1)(test.time)
        for x in (effort - predicted, effort)
    )
    return seconds, relative(error, measured, result.after.counted)


@threadpool_limits.wrap(limits=1)
def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore", RuntimeWarning)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("panda", "panda-urdf", "ur10e", "figaroh-examples", "figaroh-python"):
        parser.add_argument(f"--{name}", type=Path, metavar=name.rpartition("-")[2].upper())
    args = parser.parse_args()
    cases: list[Case] = []
    if args.panda and args.panda_urdf:
        cases += panda(args.panda, args.panda_urdf)
    if args.ur10e:
        cases += ur10e(args.ur10e)
    if args.figaroh_examples:
        cases += tx40(args.figaroh_examples / "examples/staubli_TX40")
        cases += tiago(args.figaroh_examples / "examples/tiago")
    if not cases:
        parser.error(
            "data = none; expected --panda with --panda-urdf, --ur10e or --figaroh-examples"
        )
    print(machine())
    print("\n| arm | program | relative error by joint [%] | median [%] | processor time [s] |")
    print("|---|---|---|---|---|")
    for case in cases:
        k = int(FITTED * len(case.motion.time))
        fitted, held_out = case.motion.part(slice(None, k)), case.motion.part(slice(k, None))

        def ours(
            case: Case = case, fitted: MotionData = fitted, held_out: MotionData = held_out
        ) -> Identification:
            return identify(case.arm, [fitted], [held_out], coupled=case.coupled)

        ours()  # compiles
        seconds, result = timed(ours)
        rows = [("arm_dynamics", seconds, result.after.relative_error)]
        if args.figaroh_python:
            peer = figaroh(case, fitted, held_out, result, args.figaroh_python)
            rows.append(("FIGAROH", *peer))
        for program, seconds, errors in rows:
            text = ", ".join(f"{100 * x:.3g}" for x in errors)
            median = 100 * float(np.median(errors))
            print(f"| {case.name} | {program} | {text} | {median:.3g} | {seconds:.2g} |")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
