# SPDX-License-Identifier: Apache-2.0
"""What is controlled, and its settings."""
