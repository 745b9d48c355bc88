# SPDX-License-Identifier: Apache-2.0
"""EmulatedBus: starts an emulated bus in a process of its own, and asks it for the truth."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import faulty_bus
from virtual_time import KnownBus

PATIENCE = 10.0  # [s] for the process to start and to end


class EmulatedBus(KnownBus):
    """The bus of a profile; port is the path of its serial port. Close it, or use it in a with block."""

    def __init__(self, profile: str = 'so101', seed: int = 0) -> None:
        self._folder, self._lock = tempfile.mkdtemp(prefix='ik_bus_'), threading.Lock()
        self.port = str(Path(self._folder, 'port'))
        command = [sys.executable, faulty_bus.__file__, profile, self.port]
        self._process = subprocess.Popen(
            [*command, '--seed', str(seed)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C ends the driver first
        )
        try:
            self.state()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> EmulatedBus:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def call(self, do: str, **arguments: Any) -> Any:
        """Call what CalledServer.do_... does; raises RuntimeError if it fails."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            try:
                self._process.stdin.write(json.dumps({'do': do, **arguments}) + '\n')
                self._process.stdin.flush()
            except BrokenPipeError:
                line = ''
            else:
                line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f'the emulated bus has ended with {self._process.poll()}')
        result = json.loads(line)
        if 'error' in result:
            raise RuntimeError(result['error'])
        return result['ok']
