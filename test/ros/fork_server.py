"""Starts nodes as forks of a process that has imported them: imports cost most of a node's start.

The process of ``ForkServer`` has not started ROS. A fork is a node's separate
process, as of ``python -m``: it has its own session, environment, signal handlers and output, runs
the module as ``__main__`` and ends with the shutdown of the interpreter. Only the destructors of
libraries that the server has loaded do not run: that of LTTng, with which ROS is built, cancels a
thread that a fork does not have.
"""

import atexit
import ctypes
import gc
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import time
from functools import cached_property
from pathlib import Path

VARIABLES = {"PYTEST_CURRENT_TEST", "PYTHONPATH", "ROS_DOMAIN_ID", "TOY_ARM"}
"""Environment variables of a fork that may differ from those of the server: others can change an
import."""
COMMAND = "cli.main"
"""Module of ``arm-dynamics``, of which ``sim`` is forked; its nodes start with ``python -m``."""
SIGNALS = {signal.SIGINT, signal.SIGTERM}
POLL = 0.01


class ForkServer:
    """Client of a process that forks nodes; it starts with the first node."""

    def __init__(self, environment):
        self._environment = environment

    @cached_property
    def _process(self):
        from emulators.served import Spoken

        process = Spoken(__file__, environment=self._environment)
        atexit.register(process.close)
        return process

    def accepts(self, environment):
        """Return whether a fork can have this environment."""
        return all(
            self._environment.get(name) == environment.get(name)
            for name in {*self._environment, *environment} - VARIABLES
        )

    def start(self, module, arguments, environment, output, folder):
        """Return the process of a module whose output goes to the file ``output``."""
        request = {
            "module": module,
            "arguments": [os.fspath(word) for word in arguments],
            "environment": environment,
            "output": str(output),
            "folder": str(folder),
        }
        return Fork(self._process, self._process.request(json.dumps(request))["pid"])


class Fork:
    """Process of a node, with methods of ``subprocess.Popen``."""

    def __init__(self, server, pid):
        self._server, self.pid, self._code = server, pid, None

    def poll(self):
        """Return the exit code, or None; the process id stays in use until it is returned."""
        if self._code is None:
            self._code = self._server.request(json.dumps({"pid": self.pid}))["code"]
        return self._code

    def wait(self, timeout):
        until = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired(f"fork {self.pid}", timeout)
            time.sleep(POLL)
        return self._code

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)


def main():
    """Reply to each module with the process id of a fork, and to each id with its exit code."""
    os.setsid()
    import_nodes()
    print(json.dumps({}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if "module" in request:
            # A signal arrives after the fork has installed its handlers.
            signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
            output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            pid = os.fork()
            if pid == 0:
                run_node(request, output)
                return
            os.close(output)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            reply = {"pid": pid}
        else:
            pid, status = os.waitpid(request["pid"], os.WNOHANG)
            reply = {"code": os.waitstatus_to_exitcode(status) if pid else None}
        print(json.dumps(reply), flush=True)


def import_nodes():
    """Import every module that an executable or ``sim`` runs, and load the compiler."""
    import numba

    nodes = sorted(file.name for file in (Path(__file__).parents[2] / "executables").iterdir())
    for module in (*(f"ros.nodes.{node}" for node in nodes), "ros.nodes.sim", COMMAND):
        importlib.import_module(f"arm_dynamics.{module}")
    numba.njit(lambda: None)()
    gc.collect()
    gc.freeze()  # a collection in a fork would copy the memory of all these objects


def run_node(request, output):
    """Run a node in this fork."""
    os.setsid()
    library = ctypes.CDLL(None)
    library.on_exit(library._exit, None)  # called before what the server has registered
    null = os.open(os.devnull, os.O_RDONLY)
    for file, number in ((null, 0), (output, 1), (output, 2)):
        os.dup2(file, number)
    os.close(null)
    os.close(output)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"], ARM_DYNAMICS_PARENT=str(os.getppid()))
    extend_path(os.environ.get("PYTHONPATH", "").split(os.pathsep))
    module, arguments = request["module"], request["arguments"]
    sys.argv, sys.orig_argv = ["-m"], [sys.executable, "-m", module, *arguments]
    importlib.reload(sys.modules["arm_dynamics.ros"])  # installs signal handlers of nodes
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    sys.argv += arguments
    del sys.modules[module]  # executed again, as __main__
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def extend_path(folders):
    """Also import from ``folders``, which must not contain modules that the server has imported."""
    for folder in reversed(folders):
        if folder and folder not in sys.path:
            imported = {path.stem for path in Path(folder).iterdir()} & {*sys.modules}
            assert not imported, f"{folder} contains {imported}: start the node with python -m"
            sys.path.insert(1, folder)


if __name__ == "__main__":
    sys.path[0] = os.getcwd()
    main()
