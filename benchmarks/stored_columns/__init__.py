"""Columns that version 0.1.0 stored, trained again: which scores are the same, which changed, and why."""
