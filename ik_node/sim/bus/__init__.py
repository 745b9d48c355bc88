# SPDX-License-Identifier: Apache-2.0
"""An emulated servo bus in a process of its own, behind a pseudo-terminal: python -m ik_node.sim.bus."""
