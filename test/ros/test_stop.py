"""However often a process is told to stop, it stops."""

import os
import signal
import time


def test_a_hail_of_signals_ends_a_node_cleanly(ros):
    states = ros.states()
    process = ros.start("simulator")
    ros.wait_until(states, 0.2)
    for _ in range(300):
        if process.code is not None:
            break
        os.kill(process.pid, signal.SIGTERM)
        time.sleep(1e-4)
    assert process.stop() == 0
