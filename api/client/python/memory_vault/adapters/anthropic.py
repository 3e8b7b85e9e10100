"""Anthropic's memory tool (`anthropic`): `client.beta.messages.run_tools(tools=[VaultMemoryTool(vault)], …)`."""

from __future__ import annotations

import asyncio
from typing import Any

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError

from ..generated.vault import Vault
from .memory_files import CommandFault, MemoryFiles


def _execute(files: MemoryFiles, command: Any) -> str:
    """The answer of a command; a fault is raised, so that its result has `is_error`."""
    try:
        return files.execute(command if isinstance(command, dict) else vars(command))
    except CommandFault as fault:
        raise ToolError(str(fault)) from fault


class VaultMemoryTool(BetaAbstractMemoryTool):
    """The tool's files as memories of a vault; its commands answer as `MemoryFiles.execute`."""

    def __init__(self, vault: Vault, **options: Any) -> None:
        super().__init__(**options)
        self._files = MemoryFiles(vault)

    def _run(self, command: Any) -> str:
        return _execute(self._files, command)

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
        return await asyncio.to_thread(_execute, self._files, command)

    view = create = str_replace = insert = delete = rename = _run

    async def clear_all_memory(self) -> str:
        await asyncio.to_thread(self._files.clear)
        return "All memory cleared"
