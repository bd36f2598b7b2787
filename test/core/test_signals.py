"""Signals end a process while its main thread is in a call that Python cannot interrupt."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from arm_dynamics.core import signals

UNINTERRUPTIBLE = """
import ctypes, os, signal, sys, threading, time
from arm_dynamics.core import signals

def compile_for_ever(*numbers):
    '''Call LLVM as llvmlite does: in C without the interpreter's lock, deaf to signals.'''
    mutex, lock = ctypes.create_string_buffer(128), ctypes.CDLL(None).pthread_mutex_lock
    in_call = threading.Lock()
    in_call.acquire()

    def send():
        in_call.acquire()  # this thread runs on when the call has released the interpreter
        for number in numbers:
            os.kill(os.getpid(), number)

    signals.compiling.append(threading.get_ident())
    lock(mutex)
    threading.Thread(target=send, daemon=True).start()
    sys.setswitchinterval(1000)
    in_call.release()
    lock(mutex)

print("started")
"""
"""A thread that calls it sends signals and never returns."""


def run(program, timeout=60):
    return subprocess.run(
        [sys.executable, "-c", UNINTERRUPTIBLE + program],
        capture_output=True, check=False, text=True, timeout=timeout,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGQUIT", "SIGHUP"])
def test_a_starting_node_ends_while_it_compiles(name):
    done = run(f"signals.end_on_signals(); compile_for_ever(signal.{name})")
    assert (done.returncode, done.stdout, done.stderr) == (0, "started\n", "")


INTERRUPT = (
    "signals.install(signals.Interrupt(signals.EndProcess(130, 'interrupted')), signal.SIGINT)"
)


@pytest.mark.parametrize("count", [1, 3])
def test_a_command_ends_while_it_compiles(count):
    done = run(f"{INTERRUPT}; compile_for_ever(*{count} * [signal.SIGINT])")
    assert (done.returncode, done.stdout, done.stderr) == (130, "started\n", "interrupted\n")


def test_a_command_ends_while_a_thread_compiles_for_it():
    program = f"""
{INTERRUPT}
worker = threading.Thread(target=compile_for_ever, args=[signal.SIGINT])
worker.start()
worker.join()
"""
    done = run(program)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


def test_a_flag_that_the_compiling_main_thread_does_not_read_ends_the_process():
    program = """
end = signals.EndProcess(3, "ended")
stop = signals.ShutdownFlag(end, lambda: print("torque off", file=sys.stderr))
signals.install(stop, *signals.STOP_SIGNALS)
compile_for_ever(signal.SIGTERM)
"""
    done = run(program)
    assert (done.returncode, done.stderr) == (3, "torque off\nended\n")


def test_unread_output_does_not_keep_a_process():
    program = "signals.end_on_signals(); print(1_000_000 * 'x')"
    process = subprocess.Popen(
        [sys.executable, "-c", UNINTERRUPTIBLE + program], stdout=subprocess.PIPE
    )
    assert process.stdout.read(1000), "it writes"
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    process.stdout.close()


def test_a_signal_of_a_fork_does_not_end_its_parent():
    program = """
signals.end_on_signals()
child = os.fork()
if not child:
    os.kill(os.getpid(), signal.SIGTERM)
    os._exit(5)
assert os.waitpid(child, 0)[1] == 0
time.sleep(0.3)  # for a second thread that the signal would wake
sys.exit(7)
"""
    assert run(program).returncode == 7


def test_an_ignored_hangup_stays_ignored():
    """Programs of nohup and of background jobs continue without their terminal."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals.handling(signals.ShutdownFlag(), signal.SIGHUP, signal.SIGUSR2):
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert isinstance(signal.getsignal(signal.SIGUSR2), signals.ShutdownFlag)
        assert signal.getsignal(signal.SIGUSR2) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)


def test_handlers_of_a_block_do_not_replace_later_ones():
    with signals.handling(print, signal.SIGUSR2):
        signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGUSR2) is signal.SIG_IGN
    signal.signal(signal.SIGUSR2, signal.SIG_DFL)


def test_a_flag_that_is_not_read_in_time_calls_the_last_resort():
    ended, order = threading.Event(), []
    stop = signals.ShutdownFlag(ended.set, lambda: order.append("torque off"), 0.0)
    with signals.handling(stop, signal.SIGUSR2):
        os.kill(os.getpid(), signal.SIGUSR2)
        assert ended.wait(60)
        assert order[0] == "torque off"
        assert stop.is_set()


def test_a_flag_that_is_no_longer_a_handler_does_not_end_the_process():
    """The main thread reads no flag of a block that has ended, and may compile later."""
    stop = signals.ShutdownFlag(lambda: pytest.fail("the process would end"))
    with signals.handling(stop, signal.SIGUSR2):
        stop.set()
    signals.compiling.append(threading.main_thread().ident)
    try:
        stop.watch()
    finally:
        signals.compiling.remove(threading.main_thread().ident)
    assert stop.is_set()


def test_the_emergency_signal_before_its_listener_is_not_lost():
    emergency, calls = signals.EmergencySignal(), []
    emergency()
    assert not emergency.connected
    emergency.connect(lambda: calls.append(1))
    assert calls == [1]
    emergency()
    assert calls == [1, 1]
    emergency.disconnect()
    assert not emergency.connected
