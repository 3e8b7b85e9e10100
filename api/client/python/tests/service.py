"""The service under test, and the requests of its reference."""

from __future__ import annotations

import json
import keyword
import os
import re
from typing import Any, Dict

from memory_vault import AsyncVault, Vault

BASE_URL = os.environ.get("BASE_URL", "")


def vault(key: str = "MEMORY_KEY", **options: Any) -> Vault:
    """A client with the key that stands in a variable of the environment."""
    return Vault(BASE_URL, os.environ[key], **options)


def new_vault(**options: Any) -> Vault:
    """A client of a vault that is empty."""
    with vault() as owner:
        return Vault(BASE_URL, owner.create_key(name="test")["key"], **options)


def new_async_vault(**options: Any) -> AsyncVault:
    with vault() as owner:
        return AsyncVault(BASE_URL, owner.create_key(name="test")["key"], **options)


def examples() -> Dict[str, Any]:
    """`requests` by operation, `sampleIds` in them, and `paths` by operation."""
    with open(os.environ["EXAMPLES"], encoding="utf-8") as file:
        return json.load(file)


def python_name(name: str) -> str:
    snake = re.sub(r"(?<=[a-z0-9])[A-Z]", lambda match: "_" + match[0], name).lower()
    return snake + "_" if keyword.iskeyword(snake) else snake
