"""Ctrl-C ends what compiled code is doing: KeyboardInterrupt within 100 ms, and everything can be used again."""
import os
import signal
import socket
import threading
import time

import numpy as np
import pytest
import slope

SOURCE = """
RWStructuredBuffer<float> b;
uniform int rounds;
int turn(int n) { int s = 0; for (int i = 0; i < n; i++) for (int k = 0; k < n; k++) s = s * 3 + (s ^ k); return s; }
[shader("compute")] [numthreads(1, 1, 1)] void fill(uint3 i : SV_DispatchThreadID) { b[i.x] = turn(rounds); }
"""
ENDLESS = 2**31 - 1


@pytest.fixture(scope="module", autouse=True)
def ctrl_c():
    """Python does not look at the signal where whoever started it ignores it, as shells do for what runs in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def busy():
    m = slope.compile(SOURCE)
    m.uniforms["b"], m.uniforms["rounds"] = np.zeros(4, "f4"), 3
    m.turn(3), m.turn(np.arange(3)), m.fill.dispatch(4)  # compiled
    return m


def seconds_until_interrupted(run):
    """From the signal on."""
    sent = []

    def send():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.05, send)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        run()
        time.sleep(1)  # a signal that comes late is no surprise to other tests
    return time.monotonic() - sent[0]


def dispatch_endlessly(m):
    m.uniforms["rounds"] = ENDLESS
    m.fill.dispatch(4)


@pytest.mark.parametrize("run", [dispatch_endlessly, lambda m: m.turn(ENDLESS), lambda m: m.turn(np.full(8, ENDLESS))])
def test_a_run_is_interrupted_at_once(busy, run):
    assert min(seconds_until_interrupted(lambda: run(busy)) for _ in range(2)) < 0.1
    assert busy.turn(2) == slope.compile(SOURCE).turn(2)


def test_only_the_main_thread_is_interrupted(busy):
    other, results = slope.compile(SOURCE), []
    thread = threading.Thread(target=lambda: results.append(other.turn(4000)))
    thread.start()
    seconds_until_interrupted(lambda: busy.turn(ENDLESS))
    thread.join()
    assert len(results) == 1


def test_whoever_else_is_woken_by_signals_stays_so(busy):
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    reader.settimeout(5)
    before = signal.set_wakeup_fd(writer.fileno())
    try:
        seconds_until_interrupted(lambda: dispatch_endlessly(busy))
        assert reader.recv(1) == bytes([signal.SIGINT])
    finally:
        assert signal.set_wakeup_fd(before) == writer.fileno()
