"""Ctrl-C while compiled code runs.

Python notices a signal when a call into the library returns, which for a long run is late. So its signal handler, which runs at once, is made to
write to a socket as well (signal.set_wakeup_fd); a thread that waits for that ends the run of the main thread with slope_stop, and Python raises KeyboardInterrupt.
Only the main thread is interrupted, as everywhere in Python. Whoever else wants to be woken, an event loop for one, is told what we read.

That the run was stopped the library says by calling back, and there Python notices the signal first. What is raised in a callback gets no further
than sys.unraisablehook: from there it is taken along to where the call returns.
"""
from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
import time
from typing import Any, Callable, Iterator, Optional, Tuple

NOBODY, AGAIN = -1, 0.01  # seconds


class Interrupts:
    """What the main thread has under way, and who ends it."""

    def __init__(self, stop: Callable[[int], None]):
        self.stop = stop
        self.main = threading.main_thread().ident
        self.running: Optional[Tuple[int]] = None  # the session of the main thread's call; each call has a tuple of its own
        self.handler: Optional[socket.socket] = None  # where Python's signal handler writes to
        self.other = NOBODY  # a file that it wrote to before
        self.guard = threading.Lock()  # `running` stays what it is
        self.hook: Optional[Callable[[Any], Any]] = None  # sys.unraisablehook, while ours is in its place
        self.raised: Optional[BaseException] = None
        os.register_at_fork(after_in_child=self._forked)

    def begin(self, session: int) -> None:
        """A call that may take long begins. It is followed by `end`, whatever happens; both cost next to nothing."""
        if threading.get_ident() == self.main:
            if self.handler is None:
                self._start()
            self.running = (session,)

    def end(self) -> None:
        if threading.get_ident() == self.main:
            with self.guard:
                self.running = None
            if self.hook is not None:
                self._leave()

    def _take(self, unraisable: Any) -> None:
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            self.raised = unraisable.exc_value
        elif self.hook is not None:
            self.hook(unraisable)

    def _leave(self) -> None:
        """After an interrupt."""
        sys.unraisablehook, self.hook = self.hook, None
        raised, self.raised = self.raised, None
        if raised is not None:
            raise raised

    @contextlib.contextmanager
    def during(self, session: int) -> Iterator[None]:
        """The same for calls that do take long: also where an event loop has taken our place since."""
        self.begin(session)
        other = self._watch()
        try:
            yield
        finally:
            if other != NOBODY:
                signal.set_wakeup_fd(other)
            self.end()

    def _start(self) -> None:
        reader, self.handler = socket.socketpair()
        self.handler.setblocking(False)
        self._watch()
        threading.Thread(target=self._wait, args=(reader,), name="slope-interrupts", daemon=True).start()

    def _watch(self) -> int:
        """Sees to it that we are woken; returns who was before, if that is somebody else."""
        if self.handler is None or threading.get_ident() != self.main:
            return NOBODY
        before = signal.set_wakeup_fd(self.handler.fileno(), warn_on_full_buffer=False)
        self.other = NOBODY if before == self.handler.fileno() else before
        return self.other

    def _wait(self, reader: socket.socket) -> None:
        while numbers := reader.recv(64):
            running, other = self.running, self.other
            if other != NOBODY:
                with contextlib.suppress(OSError):  # it was closed, or has enough to read
                    os.write(other, numbers)
            while signal.SIGINT in numbers and running is not None and self._interrupt(running):
                time.sleep(AGAIN)  # it may have been about to begin

    def _interrupt(self, running: Tuple[int]) -> bool:
        """False: it has ended."""
        with self.guard:
            if running is not self.running:
                return False
            if self.hook is None:
                self.hook, sys.unraisablehook = sys.unraisablehook, self._take
            self.stop(running[0])
            return True

    def _forked(self) -> None:
        """The thread is not in the child."""
        self.main = threading.main_thread().ident
        if self.handler is not None:
            signal.set_wakeup_fd(NOBODY)
        self.running = self.handler = None
        self.guard = threading.Lock()
