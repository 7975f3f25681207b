"""Writes models in the formats that the backends run."""
