"""A program measures itself: the monitor, its windows, and what their timestamps need."""
