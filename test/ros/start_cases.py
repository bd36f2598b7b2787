"""Run nodes as ``python -m`` does, in processes with the imports of this one.

    python test/ros/start_cases.py MODULE ... < cases.json

Each case is ``[module, arguments, output file]``; the exit codes are printed as JSON. A fork of a
process that has imported rclpy and numba starts in a tenth of the time.
"""

import json
import os
import runpy
import sys
from importlib import import_module

AT_A_TIME = 3
PACKAGE = "arm_dynamics.ros"


def main(modules):
    cases, codes = json.load(sys.stdin), []
    for name in modules:
        import_module(f"{PACKAGE}.{name}")
    for name in modules:  # runpy executes these again
        del sys.modules[f"{PACKAGE}.{name}"]
    os.environ["ARM_DYNAMICS_PARENT"] = str(os.getpid())
    for k in range(0, len(cases), AT_A_TIME):
        children = []
        for module, arguments, output in cases[k : k + AT_A_TIME]:
            child = os.fork()
            if child == 0:
                file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                os.dup2(file, 1)
                os.dup2(file, 2)
                sys.argv[1:] = arguments
                runpy.run_module(f"{PACKAGE}.{module}", run_name="__main__", alter_sys=True)
                return
            children.append(child)
        codes += [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    print(json.dumps(codes))


if __name__ == "__main__":
    main(sys.argv[1:])
