"""``kill -9`` at random moments over every command that writes: ``make kills``."""
