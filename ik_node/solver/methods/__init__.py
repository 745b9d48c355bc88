# SPDX-License-Identifier: Apache-2.0
"""Local methods: their registry, and those in plain Python."""
