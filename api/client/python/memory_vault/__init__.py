"""Typed client of a Memory Vault: every endpoint of its contract, without dependencies."""

from . import types
from .async_vault import AsyncVault
from .errors import NotModified, VaultConnectionError, VaultError, VaultStatusError
from .lines import AsyncLines, Lines
from .operation import UNSET, Unset
from .vault import Vault

__all__ = [
    "UNSET",
    "AsyncLines",
    "AsyncVault",
    "Lines",
    "NotModified",
    "Unset",
    "Vault",
    "VaultConnectionError",
    "VaultError",
    "VaultStatusError",
    "types",
]
