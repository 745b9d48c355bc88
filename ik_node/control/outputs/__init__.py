# SPDX-License-Identifier: Apache-2.0
"""What a controller of the arm is sent."""
