"""Virtual time of several threads: its order, its advance, and a thread that waits for others."""

import time

from virtual_time import VirtualTime


def test_threads_wake_in_the_order_of_their_times():
    clock, woken, advances = VirtualTime(), [], []
    clock.on_advance = advances.append

    def other():
        for _ in range(3):
            clock.sleep(2.0)
            woken.append(("other", clock.monotonic()))

    thread = clock.thread(other)
    for _ in range(3):
        clock.sleep(3.0)
        time.sleep(0.01)  # the time does not advance
        woken.append(("main", clock.monotonic()))
    with clock.idle():
        thread.join(10)
    assert not thread.is_alive()
    assert [t for name, t in woken if name == "other"] == [2.0, 4.0, 6.0]
    assert [t for name, t in woken if name == "main"][:2] == [3.0, 6.0]
    assert advances == sorted(advances)


def test_time_does_not_advance_while_a_thread_computes():
    clock = VirtualTime()
    thread = clock.thread(lambda: clock.sleep(1.0))
    time.sleep(0.05)
    assert clock.monotonic() == 0.0
    with clock.idle():
        thread.join(10)
    assert clock.monotonic() == 1.0
    clock.sleep(1.0)  # the only thread left
    assert clock.monotonic() == 2.0
