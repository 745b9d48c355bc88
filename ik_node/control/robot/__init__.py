"""What is controlled, and its settings."""
