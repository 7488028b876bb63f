"""Ctrl-C that waits for the end of a training step."""

import signal
import threading
from types import FrameType
from typing import Any


class InterruptGuard:
    """A context in which the first SIGINT sets `requested`, the second raises.

    A step donates its buffers: interrupted in the middle it would leave no state to
    save. Outside the main thread Python delivers no signals, and the guard does
    nothing.
    """

    def __init__(self):
        self.requested = False
        self._previous: Any = None
        self._active = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True

    def __enter__(self) -> "InterruptGuard":
        if threading.current_thread() is threading.main_thread():
            current = signal.getsignal(signal.SIGINT)
            # Only Python's default handler is replaced; others are left in place.
            if current is signal.default_int_handler:
                self._previous = signal.signal(signal.SIGINT, self._handle)
                self._active = True
        return self

    def __exit__(self, *exception: object) -> None:
        if self._active:
            signal.signal(signal.SIGINT, self._previous)
            self._active = False
