"""A memory block of LlamaIndex (`llama-index-core`): `Memory.from_defaults(memory_blocks=[VaultMemoryBlock(vault=vault)])`."""

from __future__ import annotations

import asyncio
from typing import Any, Dict, List, Optional

from llama_index.core.bridge.pydantic import Field
from llama_index.core.memory import BaseMemoryBlock

from .core import recall, store


class VaultMemoryBlock(BaseMemoryBlock[str]):
    """Recalls for the conversation at hand, and stores messages that leave the short-term memory."""

    name: str = Field(default="MemoryVault")
    vault: Any = Field(exclude=True)
    #: the newest messages that the question is made of
    turns: int = Field(default=6)

    async def _aget(self, messages: Optional[List[Any]] = None, **block_kwargs: Any) -> str:
        return await asyncio.to_thread(recall, self.vault, _turns(messages or [])[-self.turns :])

    async def _aput(self, messages: List[Any]) -> None:
        await asyncio.to_thread(store, self.vault, _turns(messages))


def _turns(messages: List[Any]) -> List[Dict[str, str]]:
    return [
        {"role": str(getattr(one.role, "value", one.role)), "content": one.content or ""}
        for one in messages
        if one.content
    ]
