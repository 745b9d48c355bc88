"""All solutions by elimination of joints."""
