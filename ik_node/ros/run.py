# SPDX-License-Identifier: Apache-2.0
"""run: create, spin and close a node; returns an exit code, prints no traceback."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import rclpy
from rclpy.duration import Duration
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.logging import get_logger
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.signals import SignalHandlerOptions
from std_srvs.srv import Trigger

from ik_node.console import ENDING, SignalFlag
from ik_node.errors import IkError, InputError, escaped
from ik_node.steady import steady

PACKAGE = Path(__file__).resolve().parents[1]
CLOSING = 2.0  # [s] within which a callback in progress should end
AFTER_ERROR = 0.001  # [s] to wait after an error of rclpy, so that the loop does not spin


class SpinThread:
    """Calls the callbacks of a node in a thread, from start() until ROS shuts down or it is closed.

    rclpy raises for some messages, such as negative times on /clock, before any callback: these are logged
    and do not end it. on_error: whether to go on after another error, which is one of a callback.
    """

    def __init__(self, node: Node, name: str, on_error: Callable[[Exception], bool]) -> None:
        self._node, self._on_error = node, on_error
        self._executor = SingleThreadedExecutor(context=node.context)
        self._executor.add_node(node)
        self._closing = threading.Event()  # then rclpy may fail: its entities go while it waits for them
        self._thread = threading.Thread(target=self._spin, name=name, daemon=True)
        self.start = self._thread.start

    def _spin(self) -> None:
        goes_on = True
        while goes_on:
            try:
                self._executor.spin()
                return
            except ExternalShutdownException:
                return
            except Exception as error:
                if self._closing.is_set() or not self._node.context.ok():
                    return
                frames = traceback.extract_tb(error.__traceback__)
                own = (frame for frame in frames if frame.filename != __file__)
                if any(PACKAGE in Path(frame.filename).parents for frame in own):
                    goes_on = self._on_error(error)
                else:
                    what = f'{type(error).__name__}: {escaped(str(error))}'
                    line = f'message ignored, rclpy cannot read it: {what}'
                    self._node.get_logger().error(line, throttle_duration_sec=2.0)
                time.sleep(AFTER_ERROR)

    @property
    def alive(self) -> bool:
        """Whether it calls callbacks."""
        return self._thread.is_alive()

    def close(self) -> None:
        """End the thread."""
        self._closing.set()
        self._executor.shutdown(timeout_sec=CLOSING)
        if self._thread.ident is not None:
            self._thread.join(timeout=CLOSING)


class SideNode:
    """A node beside another one, whose callbacks run in a thread of their own: they wait for no others.

    An unexpected error of a callback is logged, and the thread goes on.
    """

    def __init__(self, beside: Node, task: str) -> None:
        """task: the end of its name. Callbacks are called once it is started."""
        name = f'{beside.get_name()}_{task}'
        self.node = Node(
            name,
            context=beside.context,
            namespace=beside.get_namespace(),
            cli_args=['--ros-args', '-r', f'__node:={name}'],  # remappings of topics hold here, too
            enable_rosout=False,
            start_parameter_services=False,
            parameter_overrides=[Parameter('start_type_description_service', value=False)],
        )
        self._thread = SpinThread(self.node, task, self._log)
        self.start = self._thread.start

    def _log(self, _: Exception) -> bool:
        self.node.get_logger().error(f'unexpected error, please report it: {traceback.format_exc()}')
        return True

    def close(self) -> None:
        """End the thread and the node."""
        self._thread.close()
        self.node.destroy_node()


SWITCH_INTERVAL = 0.0005  # [s]: how long one thread may hold the interpreter while another waits
NOTICE = 0.1  # [s] within which a signal is processed
DELIVERY = 0.5  # [s] for the last messages to arrive, if their subscribers acknowledge them


class ArgumentError(InputError):
    """ROS arguments of the command line cannot be read."""


class ClosableNode(Node):
    """A node with resources to close."""

    def start_threads(self) -> None:
        """Start the threads of the node."""

    def come_to_rest(self) -> None:
        """Prepare the shutdown, for example bring an arm to rest; callbacks continue to run."""

    def close(self) -> None:
        """Close the resources of the node, and the node."""
        self.destroy_node()


def run(name: str, make: Callable[[], ClosableNode]) -> int:
    """Make the node called name, spin it until a signal or a shutdown, close it; return the exit code.

    Signals are those of Ctrl-C, of kill, and of a terminal that is closed. 0 after a requested shutdown, 1 if
    the node cannot start, with the reason in the log, 2 for arguments that ROS cannot read.
    """
    ended = SignalFlag()
    # From here on no signal raises an exception, not even a second one. ROS would shut down its context at
    # the first one, and an arm in motion could no longer be commanded to rest.
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, ended.set)
    _find_log_folder()
    node: ClosableNode | None = None
    try:
        begin()
        if not ended.is_set():
            node = make()
            node.start_threads()
            sys.setswitchinterval(SWITCH_INTERVAL)
            _spin(node, ended)
    except ArgumentError as error:
        print(f'{name}: error: {error}', file=sys.stderr)
        return 2
    except IkError as error:
        get_logger(name).fatal(str(error))
        return 1
    finally:
        if node is not None:
            node.close()
        rclpy.utilities.try_shutdown()
    return 0


def begin() -> None:
    """Initialise rclpy without its signal handlers. Raises ArgumentError for arguments it cannot read."""
    try:
        rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    except RuntimeError as error:
        reason = str(error).split(', at /')[0].removeprefix('failed to initialize rcl: ')
        raise ArgumentError(
            f'ROS cannot read the arguments after --ros-args: {reason}. They are -p NAME:=VALUE, '
            '--params-file FILE, -r FROM:=TO and those of ros2 run'
        ) from None


def _spin(node: ClosableNode, ended: SignalFlag) -> None:
    """Spin node until ended is set or ROS shuts down, then let it come to rest.

    The main thread only waits: signal handlers run in it, but not while it waits for messages.
    """
    failures: list[Exception] = []

    def fail(error: Exception) -> bool:
        failures.append(error)
        return False

    thread = SpinThread(node, 'executor', fail)
    thread.start()
    while thread.alive and not ended.is_set():
        ended.wait(NOTICE)  # a signal delivered to another thread does not wake this one: poll
    node.come_to_rest()
    _deliver(node)
    thread.close()
    if failures:
        raise failures[0]


def _deliver(node: Node) -> None:
    """Wait for the last messages: those of a process that exits immediately may be lost."""
    end = steady() + DELIVERY
    for publisher in node.publishers:
        with contextlib.suppress(RuntimeError, NotImplementedError):
            publisher.wait_for_all_acked(Duration(seconds=max(0.0, end - steady())))


def _find_log_folder() -> None:
    """Log to a temporary folder if the log folder of ROS is not writable, which would prevent its start."""
    if os.environ.get('ROS_LOG_DIR'):
        return
    home = Path(os.environ.get('ROS_HOME') or Path('~/.ros').expanduser())
    try:
        (home / 'log').mkdir(parents=True, exist_ok=True)
        writable = os.access(home / 'log', os.W_OK)
    except OSError:
        writable = False
    if not writable:
        os.environ['ROS_LOG_DIR'] = folder = tempfile.mkdtemp(prefix='ros-log-')
        print(
            f'{home} is not writable, so ROS logs go to {folder}. Set ROS_LOG_DIR to choose another folder',
            file=sys.stderr,
        )


PATIENCE = 10.0  # [s] of a program of a terminal for ik_node to appear, and to answer


class Spinner:
    """Raises KeyboardInterrupt after Ctrl-C, SIGTERM or SIGHUP, but never within rclpy.

    There it would become another exception, which does not stop the arm. Its executor is its own: that of rclpy serves
    one thread at a time.
    """

    def __init__(self, node: Node) -> None:
        self._node, self._executor = node, SingleThreadedExecutor(context=node.context)
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
            rclpy.spin_once(self._node, executor=self._executor, timeout_sec=timeout)
        finally:
            self._inside = False
        if self._interrupted:
            self._raise()

    def wait(self, condition: Callable[[], Any], otherwise: str) -> None:
        """Spin until condition() is true. Raises InputError with a sentence if it is not within PATIENCE."""
        end = steady() + PATIENCE
        while not condition():
            if steady() > end:
                raise InputError(otherwise)
            self.spin(0.1)

    def call(self, service: str, absent: str, silent: str) -> Trigger.Response:
        """Call a service. Raises InputError with a sentence if there is none, or if it does not respond."""
        client = self._node.create_client(Trigger, service)
        try:
            self.wait(client.service_is_ready, absent)
            future = client.call_async(Trigger.Request())
            self.wait(future.done, silent)
        finally:
            self._node.destroy_client(client)
        return future.result()

    def _interrupt(self, *_: object) -> None:
        if self._inside:
            self._interrupted = True
        else:
            self._raise()

    def _raise(self) -> NoReturn:
        self._interrupted = False
        raise KeyboardInterrupt
