"""Anthropic's memory tool (`anthropic`): `client.beta.messages.run_tools(tools=[VaultMemoryTool(vault)], …)`."""

from __future__ import annotations

import asyncio
from typing import Any

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool

from ..generated.vault import Vault
from .memory_files import MemoryFiles


def _fields(command: Any) -> Any:
    return command if isinstance(command, dict) else vars(command)


class VaultMemoryTool(BetaAbstractMemoryTool):
    """The tool's files as memories of a vault; its commands answer as `MemoryFiles.run`."""

    def __init__(self, vault: Vault, **options: Any) -> None:
        super().__init__(**options)
        self._files = MemoryFiles(vault)

    def _run(self, command: Any) -> str:
        return self._files.run(_fields(command))

    view = create = str_replace = insert = delete = rename = _run

    def clear_all_memory(self) -> str:
        self._files.clear()
        return "All memory cleared"


class AsyncVaultMemoryTool(BetaAsyncAbstractMemoryTool):
    """The same for `AsyncAnthropic`."""

    def __init__(self, vault: Vault, **options: Any) -> None:
        super().__init__(**options)
        self._files = MemoryFiles(vault)

    async def _run(self, command: Any) -> str:
        return await asyncio.to_thread(self._files.run, _fields(command))

    view = create = str_replace = insert = delete = rename = _run

    async def clear_all_memory(self) -> str:
        await asyncio.to_thread(self._files.clear)
        return "All memory cleared"
