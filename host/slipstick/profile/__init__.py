"""Profiles a program: what was executed, when, and what bounds its speed."""
