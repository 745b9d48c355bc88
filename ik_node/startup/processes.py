# SPDX-License-Identifier: Apache-2.0
"""Programs as processes of this one, each in a session of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from ik_node.startup.plan import Program

PATIENCE = 10.0  # seconds within which the nodes must shut down before they are killed


class Child:
    """A program of this package in a separate process and session, so that Ctrl-C reaches it only from here.

    reads_keys: it stays in this session, otherwise it could not read the keys of the terminal.
    """

    def __init__(
        self,
        program: Program,
        more: Mapping[str, Any],
        folder: Path,
        reads_keys: bool = False,
        kept: socket.socket | None = None,
    ) -> None:
        """more: further parameters. folder: for its parameter file. kept: a socket that it keeps open too."""
        self.name = program.executable
        self.title = '/'.join(filter(None, (program.namespace, self.name)))
        file = folder / f'{self.title.replace("/", "_")}.yaml'
        parameters = {**program.parameters, **more}
        file.write_text(yaml.safe_dump({'/**': {'ros__parameters': parameters}}))
        arguments = [part for path in (*program.files, file) for part in ('--params-file', str(path))]
        if program.namespace:
            arguments += ['-r', f'__ns:=/{program.namespace}']
        for name, other in program.remappings:
            arguments += ['-r', f'{name}:={other}']
        # Until ik_node.start handles it, Ctrl-C waits: it would end an interpreter that begins with an error.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            self._process = subprocess.Popen(
                [sys.executable, '-m', 'ik_node.start', self.name, '--ros-args', *arguments],
                start_new_session=not reads_keys,
                pass_fds=() if kept is None else (kept.fileno(),),
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    @property
    def exit_code(self) -> int | None:
        """The exit code, None while it runs."""
        return self._process.poll()

    def stop(self) -> None:
        """Request its shutdown."""
        if self.exit_code is None:
            self._process.send_signal(signal.SIGINT)

    def wait(self, until: float, say: Callable[[str], None]) -> None:
        """Wait for it until a time (time.monotonic); then log that, and kill it and its children."""
        try:
            self._process.wait(timeout=max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            say(f'{self.title} did not shut down within {PATIENCE:g} s; killing it')
            with contextlib.suppress(ProcessLookupError):  # no group of its own
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()
            self._process.wait()


def stop_all(children: list[Child], say: Callable[[str], None]) -> bool:
    """Stop the children, the last first; return whether all ended without an error."""
    for child in reversed(children):
        child.stop()
    until = time.monotonic() + PATIENCE
    for child in children:
        child.wait(until, say)
    return all(child.exit_code == 0 for child in children)
