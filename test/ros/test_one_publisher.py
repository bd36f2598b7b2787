"""Of several publishers on a topic one is accepted, and never two in turn."""

from collections import Counter
from types import SimpleNamespace

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from arm_dynamics.control.control_loop import PAUSE
from arm_dynamics.ros.nodes.simulator import SimulatorNode
from arm_dynamics.ros.topics import publisher_checks
from arm_dynamics.ros.topics.publisher_checks import PUBLISHER_TIMEOUT, QUERY_PERIOD, OnePublisher

COMMANDS, VOLTAGES = "/joint_commands", "/voltage_commands"


def gid(process, writer=1):
    return bytes([process] * 12 + [writer] * 4)


A, B, C = gid(1), gid(2), gid(3)


class Graph:
    """ROS graph and clock that a test controls."""

    def __init__(self):
        self.now, self.found = 100.0, {COMMANDS: {}, VOLTAGES: {}}
        self.counts, self.latest, self.restarts = Counter(), {}, 0

    def add(self, publisher, name, topic=COMMANDS):
        self.found[topic][publisher] = name

    def leave(self, publisher):
        for found in self.found.values():
            found.pop(publisher, None)

    def get_publishers_info_by_topic(self, topic):
        return [
            SimpleNamespace(endpoint_gid=list(g), node_name=name, node_namespace="/")
            for g, name in self.found[topic].items()
        ]

    def report(self, kind, text):
        self.counts[kind] += 1
        self.latest[kind] = text

    def restart(self):
        self.restarts += 1


@pytest.fixture
def graph(monkeypatch):
    graph = Graph()
    monkeypatch.setattr(publisher_checks.time, "monotonic", lambda: graph.now)
    graph.add(A, "a")
    graph.add(B, "b")
    graph.one = OnePublisher(graph, graph.report, graph.restart, kind="commander")
    return graph


def wait_while_listening(graph, seconds):
    """Let time pass in which the arm publishes states and expects commands."""
    end = graph.now + seconds
    while graph.now < end:
        graph.now = min(graph.now + QUERY_PERIOD, end)
        graph.one.listen()


def accepted(graph, publishers, dt=0.01, topic=COMMANDS):
    """Return the accepted ones of ``publishers``, each sending after ``dt`` [s]."""
    found = []
    for publisher in publishers:
        wait_while_listening(graph, dt)
        if graph.one.accept(topic, publisher):
            found.append(publisher)
    return found


def test_the_first_publisher_is_accepted_and_the_other_rejected(graph):
    assert accepted(graph, [A, B] * 500) == [A] * 500
    assert graph.counts == {"commander_rejected": 500}
    assert "/b is rejected; /a is the accepted publisher" in graph.latest["commander_rejected"]
    assert graph.one.conflict == f"several publishers on {COMMANDS}: /a, /b"
    graph.now += 3 * PUBLISHER_TIMEOUT
    assert graph.one.conflict == ""


def test_after_the_end_of_the_first_the_second_is_accepted_with_a_restart(graph):
    accepted(graph, [A, B])
    graph.leave(A)
    assert accepted(graph, [B] * 3, dt=2 * QUERY_PERIOD) == [B] * 3
    assert graph.restarts == 1
    assert "/b is accepted" in graph.latest["commander_changed"]


def test_a_new_publisher_needs_no_restart(graph):
    """Each of several successive processes sends one command."""
    accepted(graph, [A])
    graph.leave(A)
    assert accepted(graph, [B], dt=2 * QUERY_PERIOD) == [B]
    assert graph.restarts == 0


def test_a_silent_publisher_in_the_graph_is_replaced_after_its_timeout(graph):
    accepted(graph, [A])
    sent = int(2 * PUBLISHER_TIMEOUT / 0.01)
    taken = accepted(graph, [B] * sent)
    assert abs(len(taken) - sent / 2) < 3
    assert graph.restarts == 1


def test_silence_does_not_count_while_no_state_is_published(graph):
    """Without a published state the first publisher has no reason to send a command."""
    accepted(graph, [A, B])
    for _ in range(30):
        graph.now += 2 * PUBLISHER_TIMEOUT
        assert not graph.one.accept(COMMANDS, B)
    graph.one.listen()
    assert accepted(graph, [B, A]) == [A]
    assert not graph.counts["commander_changed"]


def test_two_slow_publishers_are_not_accepted_in_turn(graph):
    """Each is silent for long; a replaced publisher is not accepted again."""
    assert accepted(graph, [A, B] * 20, dt=1.5 * PUBLISHER_TIMEOUT) == [A, B] + [B] * 19
    assert graph.counts["commander_changed"] == 1
    graph.leave(B)
    assert accepted(graph, [A], dt=2 * QUERY_PERIOD) == [A]


def test_three_slow_publishers_are_not_accepted_in_turn(graph):
    graph.add(C, "c")
    order = accepted(graph, [A, B, C] * 20, dt=1.5 * PUBLISHER_TIMEOUT)
    changes = [x for x, y in zip(order, [None, *order], strict=False) if x != y]
    assert changes == [A, B, C]


def test_the_two_topics_of_one_node_are_one_commander(graph):
    other = gid(1, writer=2)
    graph.add(other, "a", VOLTAGES)
    assert accepted(graph, [A]) == [A]
    assert accepted(graph, [other], topic=VOLTAGES) == [other]
    assert accepted(graph, [A, B]) == [A]
    assert not accepted(graph, [gid(2, writer=2)], topic=VOLTAGES)


def test_another_node_of_the_same_process_is_another_commander(graph):
    other = gid(1, writer=2)
    graph.add(other, "c", VOLTAGES)
    accepted(graph, [A])
    assert not accepted(graph, [other], topic=VOLTAGES)
    assert "/c is rejected" in graph.latest["commander_rejected"]


def test_without_gids_no_one_of_several_publishers_is_accepted(graph):
    assert not accepted(graph, [b""] * 3)
    assert f"several publishers on {COMMANDS}: /a, /b" in graph.latest["commander_rejected"]
    graph.leave(B)
    assert accepted(graph, [b""], dt=2 * QUERY_PERIOD) == [b""]


def test_commands_pause_after_a_change_of_publisher():
    """The pause ends at every time, although rounding makes t + PAUSE - t exceed PAUSE."""
    period = 2e-3
    state = SimpleNamespace(time=0.0)
    node = SimpleNamespace(simulation=SimpleNamespace(state=state, period=period))
    for k in range(20_000):
        state.time = k * period
        SimulatorNode._pause_states(node)
        assert SimulatorNode._states_paused.fget(node), state.time
        state.time += PAUSE
        assert not SimulatorNode._states_paused.fget(node)
