"""Typed client of a Memory Vault: every endpoint of its contract, without dependencies."""

from .errors import NotModified, VaultConnectionError, VaultError, VaultStatusError
from .generated import types
from .generated.async_vault import AsyncVault
from .generated.vault import Vault
from .lines import AsyncLines, Lines
from .operation import UNSET, Unset

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
