# SPDX-License-Identifier: Apache-2.0
"""The local methods: which one solves, and how it finds its solution, step by step."""
