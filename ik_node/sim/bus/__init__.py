# SPDX-License-Identifier: Apache-2.0
"""An emulated servo bus in a process of its own, behind a pseudo-terminal.

python -m ik_node.sim.bus so101 starts it. EmulatedBus starts it for programs, and tells what the arm does.
"""

from ik_node.sim.bus.client import EmulatedBus

__all__ = ['EmulatedBus']
