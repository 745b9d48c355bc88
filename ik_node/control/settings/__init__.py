# SPDX-License-Identifier: Apache-2.0
"""The parameters of ik_node: defaults, texts, units and ranges."""
