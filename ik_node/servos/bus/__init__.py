# SPDX-License-Identifier: Apache-2.0
"""bus: packets of both protocols, the port, and the registers of the servos.

packets: what the protocols share. feetech, dynamixel: to bytes and back.
transport: what every port does. serial_transport: the port of an adapter on this machine.
models: the servos, and where they keep which quantity, its sign and unit.
"""
