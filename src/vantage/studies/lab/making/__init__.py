"""Cells are made: trained, measured, stored, and shared between processes."""
