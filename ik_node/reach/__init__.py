# SPDX-License-Identifier: Apache-2.0
"""What an arm can do at each position of its workspace."""
