# SPDX-License-Identifier: Apache-2.0
"""From the ticks of servos to the joint positions of a URDF."""
