"""A session of the OpenAI Agents SDK (`openai-agents`): `Runner.run(agent, text, session=VaultSession(...))`."""

from __future__ import annotations

import asyncio
from typing import Any, List, Optional

from ..generated.vault import Vault
from .session_items import SessionItems


class VaultSession:
    """The history of a conversation in a session of the vault, in the shape of the SDK's `Session` protocol.

    Items come back as they were added; `prepare` and `search` with the same session id find their
    words.
    """

    session_settings: Any = None

    def __init__(self, vault: Vault, session_id: str) -> None:
        self.session_id = session_id
        self._items = SessionItems(vault, session_id, "openai-agents")

    async def get_items(self, limit: Optional[int] = None) -> List[Any]:
        """The items, oldest first; with a limit the newest of them."""
        found = await asyncio.to_thread(self._items.read, limit)
        return [one["item"] for one in found]

    async def add_items(self, items: List[Any]) -> None:
        await asyncio.to_thread(self._items.add, [dict(item) for item in items])

    async def pop_item(self) -> Optional[Any]:
        """Removes the newest item."""
        newest = await asyncio.to_thread(self._items.read, 1)
        if not newest:
            return None
        await asyncio.to_thread(self._items.remove, newest)
        return newest[0]["item"]

    async def clear_session(self) -> None:
        await asyncio.to_thread(self._items.clear)
