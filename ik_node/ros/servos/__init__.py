# SPDX-License-Identifier: Apache-2.0
"""The node ik_servos: the driver of arms with servos on a bus."""
