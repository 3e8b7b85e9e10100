"""Adapters for agent frameworks, each in a module of its own that needs its framework installed.

All take a `Vault`; those that a framework awaits run its calls in threads.
"""
