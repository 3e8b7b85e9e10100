"""The memory provider of Hermes Agent: `from memory_vault.adapters.hermes import register` in its plug-in's `__init__.py`.

The plug-in is the folder `$HERMES_HOME/plugins/memory-vault/` with that file and a `plugin.yaml`
(`name: memory-vault`); `hermes config set memory.provider memory-vault` selects it.
"""

from __future__ import annotations

import json
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Dict, List, Optional

from agent.memory_provider import MemoryProvider

from ..errors import VaultError
from ..generated.vault import Vault
from .core import recall, store

logger = logging.getLogger(__name__)
ADDRESS, KEY = "MEMORY_VAULT_URL", "MEMORY_VAULT_KEY"
#: A turn waits no longer for what is remembered.
RECALL_SECONDS = 3


class VaultMemoryProvider(MemoryProvider):
    """Recalls before each turn, stores it after, and offers a search and a store as tools."""

    def __init__(self) -> None:
        self._vault: Optional[Vault] = None
        self._writes = False
        self._queue = ThreadPoolExecutor(1, thread_name_prefix="memory-vault")

    @property
    def name(self) -> str:
        return "memory-vault"

    def is_available(self) -> bool:
        return bool(os.environ.get(ADDRESS) and os.environ.get(KEY))

    def unavailable_reason(self) -> str:
        return f"set {ADDRESS} and {KEY}"

    def initialize(self, session_id: str, **kwargs: Any) -> None:
        self._vault = Vault(os.environ[ADDRESS], os.environ[KEY], timeout=RECALL_SECONDS, retries=0)
        # Jobs and helpers of the agent are no words of a person.
        self._writes = kwargs.get("agent_context", "primary") == "primary"

    def get_config_schema(self) -> List[Dict[str, Any]]:
        return [
            {"key": "url", "description": "Address of the service", "required": True, "env_var": ADDRESS},
            {"key": "key", "description": "Memory Key", "secret": True, "required": True, "env_var": KEY},
        ]

    def system_prompt_block(self) -> str:
        return (
            "# Memory Vault\nWhat was said in earlier conversations comes with the message where it matters. "
            "vault_search looks for more, vault_store keeps a fact."
        )

    def prefetch(self, query: str, *, session_id: str = "") -> str:
        try:
            return recall(self._open(), [{"role": "user", "content": query}])
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
        if self._writes:
            turns = [
                {"role": "user", "content": user_content},
                {"role": "assistant", "content": assistant_content},
            ]
            self._queue.submit(self._store, turns)

    def _store(self, turns: List[Dict[str, str]]) -> None:
        try:
            store(self._open(), turns)
        except VaultError as error:
            logger.warning("the turn was not stored: %s", error)

    def get_tool_schemas(self) -> List[Dict[str, Any]]:
        return [
            _tool("vault_search", "Searches what is remembered of earlier conversations.", "query"),
            _tool("vault_store", "Keeps a fact for later conversations, as one sentence.", "text"),
        ]

    def handle_tool_call(self, tool_name: str, args: Dict[str, Any], **kwargs: Any) -> str:
        try:
            if tool_name == "vault_search":
                found = self._open().search(query=args["query"], limit=8)["memories"]
                rows = [{"content": one["content"], "timestamp": one["timestamp"]} for one in found]
                return json.dumps({"memories": rows})
            if tool_name == "vault_store":
                store(self._open(), [{"role": "user", "content": args["text"]}], wait=True)
                return json.dumps({"stored": True})
        except (VaultError, KeyError) as error:
            return json.dumps({"error": f"{type(error).__name__}: {error}"})
        return json.dumps({"error": f"no tool {tool_name}"})

    def shutdown(self) -> None:
        """Waits for what is being stored."""
        self._queue.shutdown(wait=True)
        if self._vault:
            self._vault.close()

    def _open(self) -> Vault:
        if self._vault is None:
            raise RuntimeError("initialize comes first")
        return self._vault


def _tool(name: str, description: str, field: str) -> Dict[str, Any]:
    parameters = {"type": "object", "properties": {field: {"type": "string"}}, "required": [field]}
    return {"name": name, "description": description, "parameters": parameters}


def register(ctx: Any) -> None:
    """Called by Hermes when it loads the plug-in."""
    ctx.register_memory_provider(VaultMemoryProvider())
