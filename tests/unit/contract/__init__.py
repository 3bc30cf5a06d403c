"""Tests of what both sides of the wire share."""
