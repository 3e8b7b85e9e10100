"""The memory of Google's Agent Development Kit (`google-adk`): `Runner(memory_service=VaultMemoryService(vault))`."""

from __future__ import annotations

import asyncio
from typing import Any, Callable, Iterable, List, Mapping, Optional, Sequence

from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.genai import types

from ..generated.vault import Vault
from .core import Fields, delete_rows, list_rows, upload

LIMIT = 10


class VaultMemoryService(BaseMemoryService):
    """A vault for each user of each app, by the key that was made with the account.

    :param per_user: False: the vault of the key, whoever the user is: for a program of one user
    :param user_of: your id of the user, from the name of the app and ADK's id: `lambda app_name, user_id: user_id`
        opens the vault that the same id has elsewhere. `app/user` when missing
    """

    def __init__(
        self, vault: Vault, *, per_user: bool = True, user_of: Optional[Callable[[str, str], str]] = None
    ) -> None:
        self._vault = vault
        self._per_user = per_user
        self._user_of = user_of or (lambda app_name, user_id: f"{app_name}/{user_id}")

    def _open(self, app_name: str, user_id: str) -> Vault:
        """:raises ValueError: for an id that no header holds, and an empty one"""
        if not self._per_user:
            return self._vault
        if not user_id.strip() or not user_id.isprintable():
            raise ValueError(f"the user id {user_id!r} is empty or has control characters: it opens no vault")
        return self._vault.for_user(self._user_of(app_name, user_id))

    async def add_session_to_memory(self, session: Any) -> None:
        """Stores what was said; a session that is added again adds what is new."""
        await self.add_events_to_memory(
            app_name=session.app_name,
            user_id=session.user_id,
            events=session.events,
            session_id=session.id,
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Any],
        session_id: Optional[str] = None,
        custom_metadata: Optional[Mapping[str, Any]] = None,
    ) -> None:
        lines = [
            # Of equal text and time: the service skips what it has.
            _line(event.content, event.author, event.timestamp * 1000, session_id, custom_metadata)
            for event in events
            if event.content and _text(event.content)
        ]
        await self._upload(app_name, user_id, lines)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[Any],
        custom_metadata: Optional[Mapping[str, Any]] = None,
    ) -> None:
        lines = [
            _line(memory.content, memory.author, memory.timestamp, None, custom_metadata)
            for memory in memories
            if _text(memory.content)
        ]
        await self._upload(app_name, user_id, lines)

    async def _upload(self, app_name: str, user_id: str, lines: List[Fields]) -> None:
        if lines:
            await asyncio.to_thread(upload, self._open(app_name, user_id), lines)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> Any:
        vault = self._open(app_name, user_id)
        found = await asyncio.to_thread(lambda: vault.search(query=query, limit=LIMIT))
        return SearchMemoryResponse(
            memories=[
                MemoryEntry(
                    id=memory["id"],
                    content=types.Content(
                        role="user" if memory["role"] == "user" else "model",
                        parts=[types.Part(text=memory["content"])],
                    ),
                    author=str(memory.get("metadata", {}).get("adk_author", memory["role"])),
                    timestamp=memory["timestamp"],
                )
                for memory in found["memories"]
            ]
        )

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str) -> None:
        await asyncio.to_thread(delete_rows, self._open(app_name, user_id), [{"id": memory_id}])

    async def delete_memories(self, *, app_name: str, user_id: str) -> None:
        """Deletes what this service has stored for the user."""
        vault = self._open(app_name, user_id)
        rows = await asyncio.to_thread(list_rows, vault, {"adk": True})
        await asyncio.to_thread(delete_rows, vault, rows)


def _text(content: Any) -> str:
    parts: Iterable[Any] = content.parts or []
    # A thought is a text of the model, and nothing that it has said.
    said = [part.text for part in parts if getattr(part, "text", None) and not getattr(part, "thought", None)]
    return "\n".join(said).strip()


def _line(
    content: Any, author: Optional[str], time: Any, session_id: Optional[str], given: Optional[Mapping[str, Any]]
) -> Fields:
    metadata: Fields = {
        name: value for name, value in (given or {}).items() if isinstance(value, (str, int, float))
    }
    metadata["adk"] = True
    if author:
        metadata["adk_author"] = author
    if session_id:
        metadata["adk_session"] = session_id
    role = author if author in ("user", "system") else "assistant" if author else "user"
    line: Fields = {"content": _text(content), "role": role, "metadata": metadata}
    return line if time is None else {**line, "timestamp": time if isinstance(time, str) else int(time)}
