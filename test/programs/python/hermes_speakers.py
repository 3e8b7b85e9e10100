"""Hermes Agent: whose memory its conversations use, by its own manager of memory providers."""

import json
import os
from unittest import mock

from harness import BASE_URL, OWNER, check, equal, main, texts

from agent.memory_manager import MemoryManager
from memory_vault import Vault
from memory_vault.adapters.hermes import ADDRESS, KEY, OWNERS, USER, VaultMemoryProvider

DIRECT = {"platform": "telegram", "user_id": "7", "chat_id": "7", "chat_type": "dm"}
#: What is no private conversation of the owner.
OTHERS = {
    "another person": {**DIRECT, "user_id": "8"},
    "a group in which the owner speaks": {**DIRECT, "chat_id": "-5", "chat_type": "group"},
    "a channel": {**DIRECT, "chat_type": "channel"},
    "a conversation of an unknown kind": {"platform": "telegram", "user_id": "7"},
    "a job": {"platform": "cron", "agent_context": "cron"},
    "a subagent": {"platform": "cli", "agent_context": "subagent"},
    "its API": {"platform": "api_server"},
}


def told(question, said=None, **context):
    """What a conversation is told, and the tool's answer; the turn is over then."""
    manager = MemoryManager()
    manager.add_provider(VaultMemoryProvider())
    manager.initialize_all(session_id="s", hermes_home="/nowhere", **{"agent_context": "primary", **context})
    block = manager.prefetch_all(question, session_id="s")
    found = manager.handle_tool_call("vault_search", {"query": question})
    if said:
        manager.sync_all(said, "Noted.", session_id="s")
    manager.shutdown_all()
    return block, json.loads(found)


def first() -> None:
    key = OWNER.create_key(name=os.environ["RUN"] + "owner")["key"]
    vault = Vault(BASE_URL, key)
    with mock.patch.dict(os.environ, {ADDRESS: BASE_URL, KEY: key, OWNERS: "telegram:7"}):
        told("Hello", "My doctor is Dr. Roe.", platform="cli")
        stored = texts(vault)
        equal("the owner's words at the machine are stored", sorted(stored), ["My doctor is Dr. Roe.", "Noted."])
        block, _ = told("Who is my doctor?", **DIRECT)
        check("the owner is told in a private conversation", "Roe" in block, block)
        for name, context in OTHERS.items():
            block, found = told("Who is my doctor?", f"These are words of {name}.", **context)
            equal(f"{name} is told nothing", (block, "error" in found), ("", True))
        equal("and nothing of them is stored", texts(vault), stored)


def again() -> None:
    """With a key that names users everyone has a vault of their own."""
    run = os.environ["RUN"]
    users = OWNER.create_key(name=run + "users", rights="users")["key"]
    with mock.patch.dict(os.environ, {ADDRESS: BASE_URL, KEY: users, OWNERS: "telegram:7", USER: run + "ada"}):
        told("Hello", "My doctor is Dr. Roe.", **DIRECT)
        other = {**DIRECT, "user_id": run + "8"}
        told("Hello", "My parrot is called Kiwi.", **other)
        vault = Vault(BASE_URL, users, user=f"telegram:{run}8")
        equal("the other's words are their own", sorted(texts(vault)), ["My parrot is called Kiwi.", "Noted."])
        check("they are told theirs", "Kiwi" in told("What is my parrot called?", **other)[0])
        check("and not the owner's", "Roe" not in told("Who is my doctor?", **other)[0])
        check("the owner is told at the machine", "Roe" in told("Who is my doctor?", platform="cli")[0])


main({"first": first, "again": again})
