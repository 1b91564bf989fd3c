"""Signals that ask the process to end, and a thread that makes sure that it does.

Python runs signal handlers between two of its own instructions, in the main thread. While that thread waits for native
code, above all for LLVM, no handler runs; and an exception raised in a destructor or a callback is dropped. So a thread
receives signals through a pipe that Python's C code writes to, and ends the process if the main thread does not. There
are few imports, so that few interrupts come before `Interruption.install`: those are not reported well.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

GRACE = 0.8
"""Seconds from a signal to the end of the process if there is nothing to keep."""
ECHO = 0.15
"""Seconds in which signals count as one: a wrapper may pass on a Ctrl-C that the terminal also sends to Shine."""
SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""The signals that are handled, all in the same way: Ctrl-C, `kill`, and a terminal that closes."""


class Interruption:
    """Whether the process was asked to end, and by which signal.

    The first signal raises one `KeyboardInterrupt` in the main thread. A process that still runs after `GRACE` is
    ended, unless there is something to `keep`: then it has all the time it needs, until a second signal.

    Attributes
    ----------
    signal : int
        Number of the first signal; 0 before it.
    began : float
        When the process began, on `time.monotonic`, but for the start of Python.
    """

    def __init__(self) -> None:
        self.signal, self.began = 0, time.monotonic()
        self._keeping = False
        self._raised = False

    def install(self) -> None:
        """Handle the signals of this process, except signals it was started to ignore (``nohup``, ``command &``)."""
        answered = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        if sys.platform != "win32":  # its select() only knows sockets; there, native code ends first
            reader, writer = os.pipe()
            os.set_blocking(writer, False)
            signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
            threading.Thread(target=self._watch, args=(reader, set(answered)), daemon=True).start()
        for number in answered:
            signal.signal(number, self._raise_once)
        sys.unraisablehook = _quiet_hook(sys.unraisablehook)

    def keep(self) -> None:
        """From now on there is something to write: the first signal no longer sets a time limit."""
        self._keeping = True

    @property
    def code(self) -> int:
        """Exit code of an interrupted process, by the convention of shells."""
        return 128 + (self.signal or signal.SIGINT)

    def leave(self, message: str = "") -> NoReturn:
        """End the interrupted process, after a message, without waiting for threads in native code."""
        if message:
            _say(message)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (AttributeError, OSError, ValueError):  # None, a closed pipe, a closed file
                continue
        os._exit(self.code)

    def _raise_once(self, number: int, frame: FrameType | None) -> None:
        self.signal = self.signal or number
        if not self._raised:
            self._raised = True
            raise KeyboardInterrupt

    def _watch(self, reader: int, answered: set[int]) -> None:
        while not (heard := os.read(reader, 1)) or heard[0] not in answered:
            pass
        self.signal = self.signal or heard[0]
        if self._keeping:
            _say("interrupted: writing the result; again to quit at once")
        time.sleep(ECHO)
        if select.select([reader], [], [], 0)[0]:
            os.read(reader, 512)
        again = select.select([reader], [], [], None if self._keeping else GRACE - ECHO)[0]
        _say("error: interrupted again; unwritten results are lost" if again else "error: interrupted")
        os._exit(self.code)


def _quiet_hook(hook: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A hook for exceptions that Python drops. It does not report interrupts, because the thread ends the process."""

    def quiet(dropped: Any) -> None:
        if not issubclass(dropped.exc_type, KeyboardInterrupt):
            hook(dropped)

    return quiet


def _say(message: str) -> None:
    """Write to standard error, over a progress bar; without Python's buffer, whose lock the main thread may hold."""
    try:
        start = "\r\x1b[K" if os.isatty(2) else ""
        os.write(2, f"{start}{message}\n".encode())
    except OSError:
        return
