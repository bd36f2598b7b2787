"""ROS client of the tests: starts nodes as processes, records topics, publishes, calls services.

Every wait has a deadline, every process is ended, and the output of the nodes is kept for reports.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import numpy as np
import pytest

try:
    import rclpy
except ModuleNotFoundError:
    pytest.skip("rclpy is not installed: no test over ROS", allow_module_level=True)

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.srv import GetState
from rcl_interfaces.srv import DescribeParameters, GetParameters, ListParameters, SetParameters
from rclpy.action import ActionClient
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from .domain import claim_domain
from .fork_server import COMMAND, ForkServer

ROOT = Path(__file__).resolve().parents[2]
GAINS = ROOT / "config" / "five_dof.yaml"
JOINTS = ("R1", "R2", "R3", "R4", "R5")
INITIAL = np.array([0, -1.1, 0.3, 0, 0])
PATIENCE = 180.0
"""Deadline [s] of a wait on a busy machine: the first run compiles the controllers, and processes
that compile wait for each other."""
POLL = 0.005
INTRODUCTION = 0.5
"""Time [s] until a subscriber has discovered a publisher that has discovered it."""

REPEAT = 5.0
"""Time [s] after which a request is repeated: a service drops replies to clients that it has not
discovered yet."""
REPEATABLE = (SetParameters, GetParameters, ListParameters, DescribeParameters, GetState, SetBool)
"""Requests that can be repeated without a further effect."""

# Not LOCALHOST, which selects the shared memory of Fast DDS: on busy machines some nodes then never
# discover each other, and some never end.
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "SYSTEM_DEFAULT"
for variable in ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE"):
    os.environ[variable] = str(ROOT / "config" / "loopback.xml")
FORKS = ForkServer(dict(os.environ))
FORKED = "ros.", COMMAND
DIAGNOSTICS = {"diagnostic_updater.period": 0.2}
"""Most tests read diagnostics."""
LOCKSTEP = {"lockstep": True, "real_time_factor": 1000.0}
"""As fast as possible, with the same motion on every machine."""


class Process:
    """Node in a process that ends with this process in every case.

    ``fresh``: a process of ``python -m``. Otherwise, nodes are forks, unless their environment can
    change an import.
    """

    def __init__(self, module, arguments, environment, output, fresh):
        self.name, self._output, self._kept = module, output, ""
        environment = {**os.environ, **environment}
        if module.startswith(FORKED) and not fresh and FORKS.accepts(environment):
            self._process = FORKS.start(
                f"arm_dynamics.{module}", arguments, environment, output, ROOT
            )
        else:
            with output.open("wb") as file:
                # A separate process group: on Ctrl-C the tests end their nodes.
                self._process = subprocess.Popen(
                    [sys.executable, "-m", f"arm_dynamics.{module}", *arguments],
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    cwd=ROOT,
                    env={**environment, "ARM_DYNAMICS_PARENT": str(os.getpid())},
                    start_new_session=True,
                )
        self.pid = self._process.pid

    @property
    def code(self):
        return self._process.poll()

    @property
    def output(self):
        return self._kept or self._output.read_text(errors="replace")

    def keep_output(self):
        """Read the output before its file is removed."""
        self._kept = self.output

    def wait(self, timeout=PATIENCE):
        """Wait for the end of the process and return its exit code."""
        return self._process.wait(timeout)

    def signal(self, number):
        self._process.send_signal(number)

    def kill(self):
        """Send SIGKILL: the node cannot shut down."""
        self._process.kill()
        self._process.wait(10)

    def stop(self, timeout=20.0):
        """Send SIGINT and return the exit code; None if only SIGKILL ended the process."""
        if self.code is None:
            self._process.send_signal(signal.SIGINT)
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            return None


class Record:
    """All serialized messages of one topic."""

    def __init__(self, node, kind, topic, latched):
        durability = DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE
        self._kind, self._node = kind, node
        self._subscription = node.create_subscription(
            kind, topic, lambda _: None, QoSProfile(depth=100_000, durability=durability)
        )
        self.raw = []

    def poll(self):
        taken = self._subscription.handle.take_message(self._kind, True)
        while taken is not None:
            self.raw.append(taken[0])
            taken = self._subscription.handle.take_message(self._kind, True)

    @contextmanager
    def present(self):
        """Yield a function that returns the newest message, or None: here without a backlog."""
        topic = self._subscription.topic_name
        own = self._node.create_subscription(self._kind, topic, lambda _: None, 1)
        try:
            yield lambda: (own.handle.take_message(self._kind, False) or (None,))[0]
        finally:
            self._node.destroy_subscription(own)

    def __len__(self):
        return len(self.raw)

    @property
    def newest(self):
        return deserialize_message(self.raw[-1], self._kind)

    def messages(self, start=0, every=1):
        return [deserialize_message(raw, self._kind) for raw in self.raw[start::every]]

    @property
    def publishers(self):
        return self._subscription.get_publisher_count()


class Motion:
    """Recorded joint states as arrays: t (n,), q, v, tau (n, nv), stamps [ns]."""

    def __init__(self, messages):
        self.stamps = [m.header.stamp.sec * 10**9 + m.header.stamp.nanosec for m in messages]
        self.t = np.array(self.stamps) * 1e-9
        self.q = np.array([m.position for m in messages])
        self.v = np.array([m.velocity for m in messages])
        self.tau = np.array([m.effort for m in messages])

    def at(self, time):
        """Index of the first state at or after ``time`` [s]."""
        return int(np.searchsorted(self.t, time - 1e-9))


class Ros:
    """ROS domain with node processes and the two nodes of the test.

    ``fresh``: start nodes with ``python -m``, not as forks.
    """

    def __init__(self, fresh=False):
        self.fresh = fresh
        self._claim, self.domain = claim_domain()
        self._folder = Path(tempfile.mkdtemp(prefix="arm_dynamics_test_"))
        self._context = rclpy.Context()
        rclpy.init(context=self._context, domain_id=self.domain)
        self._listener = rclpy.create_node("test_listener", context=self._context)
        self._caller = rclpy.create_node("test_caller", context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self._caller)
        self.processes, self._records, self._clients, self._publishers = [], [], {}, {}
        self._closing = Event()
        self._thread = Thread(target=self._collect, name="records")
        self._thread.start()

    # --- processes

    def start(self, module, *files, **parameters):
        """Run ``arm_dynamics.ros.<module>`` with parameter files and parameters."""
        return self.launch(f"ros.nodes.{module}", *arguments(*files, **parameters))

    def launch(self, module, *arguments, domain=None, fresh=False):
        """Run a module of the package in this domain or in ``domain``; "" sets no domain."""
        domain_id = str(self.domain if domain is None else domain)
        output = self._folder / f"{len(self.processes)}.txt"
        process = Process(
            module, arguments, {"ROS_DOMAIN_ID": domain_id}, output, fresh or self.fresh
        )
        self.processes.append(process)
        return process

    # --- topics

    def record(self, kind, topic, latched=False):
        """Start recording a topic."""
        record = Record(self._listener, kind, topic, latched)
        self._records.append(record)
        return record

    def states(self):
        return self.record(JointState, "joint_states")

    def meet(self, kind, topic):
        """Return the publisher of a topic after it has a subscriber."""
        if topic not in self._publishers:
            publisher = self._listener.create_publisher(kind, topic, 10)
            has_subscriber = lambda: publisher.get_subscription_count() > 0  # noqa: E731
            self.wait_for(has_subscriber, f"no subscriber of {topic}")
            time.sleep(INTRODUCTION)
            self._publishers[topic] = publisher
        return self._publishers[topic]

    def publish(self, message, topic):
        """Publish a message after the topic has a subscriber."""
        self.meet(type(message), topic).publish(message)

    def leave(self, topic):
        """Destroy the publisher of a topic, as at the end of a node."""
        self._listener.destroy_publisher(self._publishers.pop(topic))

    # --- services

    def client(self, kind, service, timeout=PATIENCE):
        """Return a client of an existing service.

        A service whose requests cannot be repeated has discovered the client.
        """
        if service not in self._clients:
            self.acquaint({service: kind}, timeout)
        return self._clients[service]

    def acquaint(self, kinds, timeout=PATIENCE):
        """Create clients of services by name and wait until they are discovered."""
        for service, kind in kinds.items():
            client = self._clients[service] = self._caller.create_client(kind, service)
            assert client.wait_for_service(timeout), self.report(f"no service {service}")
        if not {*kinds.values()} <= {*REPEATABLE}:
            time.sleep(INTRODUCTION)

    def call(self, kind, service, request=None, timeout=PATIENCE):
        """Return the reply of a service."""
        client, until = self.client(kind, service, timeout), time.monotonic() + timeout
        future = client.call_async(request or kind.Request())
        while not future.done() and time.monotonic() < until:
            self._executor.spin_until_future_complete(future, min(timeout, REPEAT))
            if not future.done() and kind in REPEATABLE:
                future = client.call_async(request or kind.Request())
        assert future.done(), self.report(f"no answer from {service} within {timeout} s")
        return future.result()

    def action(self, kind, name):
        """Return a client of an action whose server exists and has discovered the client."""
        is_new = name not in self._clients
        if is_new:
            self._clients[name] = ActionClient(self._caller, kind, name)
        assert self._clients[name].wait_for_server(PATIENCE), self.report(f"no action {name}")
        if is_new:
            time.sleep(INTRODUCTION)
        return self._clients[name]

    def answer(self, future, timeout=PATIENCE):
        """Wait for a future of the caller and return its result."""
        self._executor.spin_until_future_complete(future, timeout)
        assert future.done(), self.report(f"no answer within {timeout} s")
        return future.result()

    def trigger(self, service):
        return self.call(Trigger, service)

    def pause(self, yes=True):
        return self.call(SetBool, "simulator/pause", SetBool.Request(data=yes))

    def set(self, node, **values):
        """Set parameters one after the other and return the results; '__' stands for '.'."""
        parameters = [
            Parameter(name.replace("__", "."), value=value).to_parameter_msg()
            for name, value in values.items()
        ]
        request = SetParameters.Request(parameters=parameters)
        return self.call(SetParameters, f"{node}/set_parameters", request).results

    def get(self, node, name):
        request = GetParameters.Request(names=[name])
        value = self.call(GetParameters, f"{node}/get_parameters", request).values[0]
        return rclpy.parameter.parameter_value_to_python(value)

    def describe(self, node):
        """Return the descriptors of all parameters of a node by name."""
        listed = self.call(ListParameters, f"{node}/list_parameters")
        request = DescribeParameters.Request(names=listed.result.names)
        found = self.call(DescribeParameters, f"{node}/describe_parameters", request).descriptors
        return {d.name: d for d in found}

    # --- waiting

    def wait_for(self, predicate, otherwise, timeout=PATIENCE):
        """Wait until ``predicate`` returns a true value and return it; fail after ``timeout``.

        An expensive predicate, of all messages of a record, uses at most a quarter of a core.
        """
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            began = time.thread_time()
            result = predicate()
            if result:
                return result
            time.sleep(max(POLL, 3 * (time.thread_time() - began)))
        raise AssertionError(self.report(f"{otherwise} (waited {timeout:g} s)"))

    def wait_until(self, states, seconds):
        """Wait until a state of simulated time ``seconds`` or later is recorded."""
        self.wait_for(lambda: states.raw and stamp(states.newest) >= seconds, f"no t = {seconds} s")

    def wait_longer(self, states, seconds):
        """Wait until ``seconds`` more have been simulated; return the simulated time.

        A simulation that is much faster than real time may be ahead of the recorded states.
        """
        with states.present() as present:
            now = stamp(self.wait_for(present, "no joint_states"))
        self.wait_until(states, now + seconds)
        return stamp(states.newest)

    def diagnosis(self, node, predicate, otherwise="no such diagnosis"):
        """Return the values of the next status of ``node`` for which ``predicate`` holds."""
        record = self.record(DiagnosticArray, "/diagnostics")
        found = []

        def look():
            for message in record.messages(len(found)):
                found.append({})
                for status in message.status:
                    values = {pair.key: pair.value for pair in status.values}
                    values |= {"message": status.message, "level": status.level[0]}
                    found[-1] = values if status.name == node else found[-1]
            return next((values for values in found if values and predicate(values)), None)

        try:
            return self.wait_for(look, otherwise)
        except AssertionError as error:
            raise AssertionError(f"{error}\nlast diagnosis: {found[-1:]}") from None
        finally:
            self._records.remove(record)

    def report(self, message):
        """Return ``message`` and the output of the nodes."""
        parts = [f"--- {p.name} (exit code {p.code})\n{p.output}" for p in self.processes]
        return "\n".join([message, *parts])

    def stop_all(self):
        """Send SIGINT to all processes and return their exit codes."""
        return [process.stop() for process in self.processes]

    def close(self):
        for process in self.processes:
            process.stop(5.0)
        self._closing.set()
        self._thread.join()
        self._executor.shutdown()
        self._listener.destroy_node()
        self._caller.destroy_node()
        rclpy.shutdown(context=self._context)
        os.close(self._claim)
        for process in self.processes:
            process.keep_output()
        shutil.rmtree(self._folder)

    def _collect(self):
        while not self._closing.wait(POLL):
            for record in list(self._records):
                record.poll()


def arguments(*files, **parameters):
    """Return the command line of a node with parameter files and parameters."""
    found = ["--ros-args"]
    for file in files:
        found += ["--params-file", str(file)]
    for name, value in (DIAGNOSTICS | parameters).items():
        found += ["-p", f"{name}:={_yaml(value)}"]
    return found


def _yaml(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple, np.ndarray)):
        return "[" + ", ".join(repr(float(v)) for v in value) + "]"
    return str(value)


def stamp(message):
    """Return the time stamp [s] of a message."""
    return message.header.stamp.sec + message.header.stamp.nanosec * 1e-9


def to_time(seconds):
    sec, nanosec = divmod(round(seconds * 1e9), 10**9)
    return Time(sec=sec, nanosec=nanosec)


def joint_state(names=JOINTS, position=(), effort=()):
    return JointState(name=list(names), position=list(position), effort=list(effort))


def trajectory(*points, names=JOINTS, start=0.0):
    """Return a message with points (time, q), (time, q, v) or (time, q, v, a)."""
    message = JointTrajectory(joint_names=list(names))
    message.header.stamp = to_time(start)
    for time_from_start, *rows in points:
        point = JointTrajectoryPoint()
        t = to_time(time_from_start)
        point.time_from_start.sec, point.time_from_start.nanosec = t.sec, t.nanosec
        for field, row in zip(("positions", "velocities", "accelerations"), rows, strict=False):
            setattr(point, field, [float(x) for x in row])
        message.points.append(point)
    return message
