# SPDX-License-Identifier: Apache-2.0
"""Closest configurations for goals that cannot be met."""
