# SPDX-License-Identifier: Apache-2.0
"""Emulated servos on a bus in a process of its own, behind a pseudo-terminal: for demos and tests."""
