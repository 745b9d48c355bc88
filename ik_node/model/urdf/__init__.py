# SPDX-License-Identifier: Apache-2.0
"""From the text of a URDF or xacro to a robot, with every fault named."""
