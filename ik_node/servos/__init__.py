# SPDX-License-Identifier: Apache-2.0
"""servos: arms whose joints are bus servos (Feetech STS, Dynamixel X). Nothing here needs ROS.

bus: what goes over the wire, and the port.
"""
