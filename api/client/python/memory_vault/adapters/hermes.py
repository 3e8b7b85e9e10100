"""The memory provider of Hermes Agent, by `from memory_vault.adapters.hermes import VaultMemoryProvider, register`.

The plug-in is the folder `$HERMES_HOME/plugins/memory-vault/` with that line as its `__init__.py` and a `plugin.yaml`
(`name: memory-vault`); `hermes config set memory.provider memory-vault` selects it.

The owner's memory is told and kept at the machine and in private conversations with the senders of `MEMORY_VAULT_OWNERS`
(`telegram:7,discord:9`). With `MEMORY_VAULT_USER` (the owner's id, with a key that names users) everyone else has a vault of
their own in a private conversation; without it nothing of theirs is recalled or stored. Groups, jobs and helpers have none.
"""

from __future__ import annotations

import json
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, List, Optional, Tuple

from agent.memory_provider import MemoryProvider

from ..errors import VaultError
from ..generated.vault import Vault
from .core import recall, store

logger = logging.getLogger(__name__)
ADDRESS, KEY = "MEMORY_VAULT_URL", "MEMORY_VAULT_KEY"
OWNERS, USER = "MEMORY_VAULT_OWNERS", "MEMORY_VAULT_USER"
#: Platforms on which a person sits at the machine.
OWN_PLATFORMS = {"cli", "tui", "desktop"}
#: A turn waits no longer for what is remembered.
RECALL_SECONDS = 3


class VaultMemoryProvider(MemoryProvider):
    """Recalls before each turn, stores it after, and offers a search and a store as tools."""

    def __init__(self) -> None:
        self._vault: Optional[Vault] = None
        self._queue = ThreadPoolExecutor(1, thread_name_prefix="memory-vault")

    @property
    def name(self) -> str:
        return "memory-vault"

    def is_available(self) -> bool:
        return bool(os.environ.get(ADDRESS) and os.environ.get(KEY))

    def unavailable_reason(self) -> str:
        return f"set {ADDRESS} and {KEY}"

    def initialize(self, session_id: str, **kwargs: Any) -> None:
        """Opens the vault of who speaks, or none (kwargs of hermes-agent 0.19: platform, user_id, chat_type, agent_context)."""
        speaks, user = _find_user(kwargs)
        self._vault = (
            Vault(os.environ[ADDRESS], os.environ[KEY], timeout=RECALL_SECONDS, retries=0, user=user)
            if speaks
            else None
        )

    def get_config_schema(self) -> List[Dict[str, Any]]:
        return [
            {"key": "url", "description": "Address of the service", "required": True, "env_var": ADDRESS},
            {"key": "key", "description": "Memory Key", "secret": True, "required": True, "env_var": KEY},
            {"key": "owners", "description": "Senders who are you, such as telegram:7", "env_var": OWNERS},
            {"key": "user", "description": "Your id, of a key that names users", "env_var": USER},
        ]

    def system_prompt_block(self) -> str:
        if self._vault is None:
            return ""
        return (
            "# Memory Vault\nWhat was said in earlier conversations comes with the message where it matters. "
            "vault_search looks for more, vault_store keeps a fact."
        )

    def prefetch(self, query: str, *, session_id: str = "") -> str:
        if self._vault is None:
            return ""
        try:
            return recall(self._vault, [{"role": "user", "content": query}])
        except VaultError as error:
            logger.warning("nothing was recalled: %s", error)
            return ""

    def sync_turn(
        self,
        user_content: str,
        assistant_content: str,
        *,
        session_id: str = "",
        messages: Optional[List[Dict[str, Any]]] = None,
    ) -> None:
        if self._vault is not None:
            turns = [
                {"role": "user", "content": user_content},
                {"role": "assistant", "content": assistant_content},
            ]
            self._queue.submit(self._store, self._vault, turns)

    def _store(self, vault: Vault, turns: List[Dict[str, str]]) -> None:
        try:
            store(vault, turns)
        except VaultError as error:
            logger.warning("the turn was not stored: %s", error)

    def get_tool_schemas(self) -> List[Dict[str, Any]]:
        return [
            _tool("vault_search", "Searches what is remembered of earlier conversations.", "query"),
            _tool("vault_store", "Keeps a fact for later conversations, as one sentence.", "text"),
        ]

    def handle_tool_call(self, tool_name: str, args: Dict[str, Any], **kwargs: Any) -> str:
        if self._vault is None:
            return json.dumps({"error": "there is no memory in this conversation"})
        try:
            if tool_name == "vault_search":
                found = self._vault.search(query=args["query"], limit=8)["memories"]
                rows = [{"content": one["content"], "timestamp": one["timestamp"]} for one in found]
                return json.dumps({"memories": rows})
            if tool_name == "vault_store":
                store(self._vault, [{"role": "user", "content": args["text"]}], wait=True)
                return json.dumps({"stored": True})
        except (VaultError, KeyError) as error:
            return json.dumps({"error": f"{type(error).__name__}: {error}"})
        return json.dumps({"error": f"no tool {tool_name}"})

    def shutdown(self) -> None:
        """Waits for what is being stored."""
        self._queue.shutdown(wait=True)
        if self._vault:
            self._vault.close()


def _find_user(told: Dict[str, Any]) -> Tuple[bool, Optional[str]]:
    """Whether a person's memory is used in a conversation, and the id of the user whose it is."""
    owner = os.environ.get(USER) or None
    # Jobs and helpers of the agent are no words of a person.
    if told.get("agent_context", "primary") != "primary":
        return False, None
    platform, sender = told.get("platform") or "cli", told.get("user_id")
    if platform in OWN_PLATFORMS and not sender:
        return True, owner
    if not sender or told.get("chat_type") != "dm":
        return False, None
    owners = [one.strip() for one in os.environ.get(OWNERS, "").split(",")]
    if f"{platform}:{sender}" in owners or str(sender) in owners:
        return True, owner
    return owner is not None, f"{platform}:{sender}"


def _tool(name: str, description: str, field: str) -> Dict[str, Any]:
    parameters = {"type": "object", "properties": {field: {"type": "string"}}, "required": [field]}
    return {"name": name, "description": description, "parameters": parameters}


def register(ctx: Any) -> None:
    """Called by Hermes when it loads the plug-in."""
    ctx.register_memory_provider(VaultMemoryProvider())
