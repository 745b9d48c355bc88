# SPDX-License-Identifier: Apache-2.0
"""ManagedNode: a lifecycle node that also starts by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lifecycle_msgs.msg import Transition
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn

from ik_node.errors import IkError
from ik_node.ros.compat import RCLError, wrap_change_state
from ik_node.ros.run import ClosableNode

SUCCESS, FAILURE = TransitionCallbackReturn.SUCCESS, TransitionCallbackReturn.FAILURE
ENDS = (Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_ACTIVE_SHUTDOWN)
END_LABELS = ('deactivate', 'shutdown')


class ManagedNode(LifecycleNode, ClosableNode):
    """A node with four steps; options are those of rclpy's Node.

    Subclasses fill in configure, activate, deactivate, rest and clean_up, and call start at the end of
    __init__.
    """

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self._configured = self._active = False
        wrap_change_state(self, self._answered)

    def configure(self) -> None:
        """Load and check the configuration of the node. Raises IkError."""

    def activate(self) -> None:
        """Start."""

    def deactivate(self) -> None:
        """Begin to come to rest."""

    async def rest(self) -> None:
        """Return at rest, or after a timeout; callbacks of the node continue to run."""

    def clean_up(self) -> None:
        """Undo configure."""

    def start(self) -> None:
        """Configure and activate the node without a manager. Raises IkError if it cannot be configured."""
        self.configure()
        self._configured = True
        self.trigger_configure()
        self.trigger_activate()

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Configure; FAILURE leaves the node unconfigured."""
        try:
            if not self._configured:
                self.configure()
        except IkError as error:
            self.get_logger().error(str(error))
            return FAILURE
        self._configured = True
        return super().on_configure(state)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Activate."""
        self.activate()
        self._active = True
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Deactivate, even if it takes longer to come to rest: the node could not be activated again."""
        self._end()
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Clean up."""
        self._undo()
        return super().on_cleanup(state)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Come to rest before the end."""
        self._end()
        return super().on_shutdown(state)

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Come to rest, and be unconfigured afterwards."""
        self._end()
        self._undo()
        return super().on_error(state)

    def _answered(self, change: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        """Return a callback for change_state that comes to rest first, and answers where change raises.

        change is rclpy's callback. It calls on_deactivate, which cannot wait without keeping all other
        callbacks waiting too.
        """

        async def callback(request: Any, response: Any) -> Any:
            asked = request.transition
            if self._active and (asked.label in END_LABELS if asked.label else asked.id in ENDS):
                self.deactivate()
                await self.rest()
            try:
                return change(request, response)
            except RCLError as error:  # there is no such transition now
                self.get_logger().error(f'change_state rejected: {error}', throttle_duration_sec=2.0)
                response.success = False
                return response

        return callback

    def _end(self) -> None:
        self.deactivate()
        self._active = False

    def _undo(self) -> None:
        self.clean_up()
        self._configured = False
