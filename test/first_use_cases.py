"""Run ``arm-dynamics compile``, then every controller; print what the first cycles compile."""

from __future__ import annotations

import json
import sys

import numpy as np
from compile_watch import CompileWatch

from arm_dynamics.cli import compile as compile_command
from arm_dynamics.control.config import build_controller
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.hardware import SimulationDriver
from arm_dynamics.model.load import load_arm
from arm_dynamics.simulation.simulation import Simulation


def main(names: list[str]) -> None:
    """Move two arms, with DC motors and with dry friction, by the controllers ``names``."""
    compile_command.run([])
    watch, cycles = CompileWatch(armed=True), 0
    for arm in (load_arm("five_dof"), load_arm("so101")):
        for name in names:
            try:
                controller = build_controller(arm, name)
            except ConfigError:  # an interface that the arm does not have
                continue
            simulation = Simulation(arm)
            loop = ControlLoop(SimulationDriver(arm, simulation), controller)
            loop.step()
            loop.hold(simulation.state.q + 0.01)
            for _ in range(5):
                loop.step()
                cycles += 1
            assert np.isfinite(simulation.state.q).all()
    watch.end()
    found = [line for line in watch.found if "compil" in line]
    print(json.dumps({"found": found, "cycles": cycles}))


if __name__ == "__main__":
    main(sys.argv[1:])
