"""A context provider of Microsoft's Agent Framework (`agent-framework`): `context_providers=[VaultContextProvider(vault)]`."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Dict, List, Optional

from agent_framework import ContextProvider, Message

from ..errors import VaultError
from ..generated.vault import Vault
from .core import recall, store

logger = logging.getLogger(__name__)


class VaultContextProvider(ContextProvider):
    """Adds the block of what is remembered before a run, and stores the messages after it.

    A fault of the memory is logged, and the agent runs all the same.
    """

    def __init__(
        self,
        vault: Vault,
        *,
        source_id: str = "memory_vault",
        session_id: Optional[str] = None,
        store_messages: bool = True,
    ) -> None:
        super().__init__(source_id)
        self._vault = vault
        self._options: Dict[str, Any] = {} if session_id is None else {"session_id": session_id}
        self._store_messages = store_messages

    async def before_run(self, *, agent: Any, session: Any, context: Any, state: Any) -> None:
        try:
            turns = _turns(context.input_messages)
            block = await asyncio.to_thread(recall, self._vault, turns, **self._options)
        except VaultError as error:
            logger.warning("nothing was recalled: %s", error)
            return
        if block:
            context.extend_messages(self.source_id, [Message(role="user", contents=[block])])

    async def after_run(self, *, agent: Any, session: Any, context: Any, state: Any) -> None:
        if not self._store_messages:
            return
        answered = context.response.messages if context.response else []
        turns = _turns([*context.input_messages, *(answered or [])])
        try:
            await asyncio.to_thread(store, self._vault, turns, **self._options)
        except VaultError as error:
            logger.warning("the turn was not stored: %s", error)


def _turns(messages: List[Any]) -> List[Dict[str, str]]:
    return [
        {"role": str(getattr(one.role, "value", one.role)), "content": one.text or ""} for one in messages
    ]
