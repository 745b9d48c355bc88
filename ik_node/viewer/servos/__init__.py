# SPDX-License-Identifier: Apache-2.0
"""The folder Servos of the panel: the driver ik_servos, its state and its services."""
