"""Recordings read back: their tables, power curves and reports."""
