"""Mangled files of every kind the package reads, thrown at it by the thousand: ``make fuzz``."""
