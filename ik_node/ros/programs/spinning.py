# SPDX-License-Identifier: Apache-2.0
"""Spinner: spins the node of a program that a signal may interrupt at any time."""

from __future__ import annotations

import signal
from typing import NoReturn

import rclpy
from rclpy.node import Node

from ik_node.ros.signal_flag import ENDING


class Spinner:
    """Raises KeyboardInterrupt after Ctrl-C, SIGTERM or SIGHUP, but never within rclpy.

    There it would become another exception, which does not stop the arm.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._inside = self._interrupted = False

    def handle_signals(self) -> None:
        """Handle these signals from now on, except those that are ignored, as under nohup."""
        for number in ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._interrupt)

    def ignore_signals(self) -> None:
        """Ignore these signals from now on, for the few seconds in which the program stops the arm."""
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)
        self._interrupted = False

    def spin(self, timeout: float) -> None:
        """Spin once, at most for a time [s]."""
        self._inside = True
        try:
            rclpy.spin_once(self._node, timeout_sec=timeout)
        finally:
            self._inside = False
        if self._interrupted:
            self._raise()

    def _interrupt(self, *_: object) -> None:
        if self._inside:
            self._interrupted = True
        else:
            self._raise()

    def _raise(self) -> NoReturn:
        self._interrupted = False
        raise KeyboardInterrupt
