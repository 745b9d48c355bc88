"""All solutions of arms of any geometry, by elimination of joints."""
