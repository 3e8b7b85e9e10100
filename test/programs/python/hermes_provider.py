"""Hermes Agent: the memory provider as a plug-in of the program, and the published one for the hosted contract."""

import json
import os
import pathlib
import sys

from harness import BASE_URL, MODEL_KEY, MODEL_URL, OWNER, check, equal, main, seen
from harness import texts as texts_of
from memory_vault import Vault

HOME = pathlib.Path(os.environ["HOME"]) / (os.environ["RUN"] + "hermes")
KEYS = HOME / "keys.json"
os.environ["HERMES_HOME"] = str(HOME)


def install(name: str, line: str, manifest: str) -> None:
    """The plug-in as its page says, and the program's choice of it."""
    folder = HOME / "plugins" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "__init__.py").write_text(line)
    (folder / "plugin.yaml").write_text(manifest)
    (HOME / "config.yaml").write_text(f"memory:\n  provider: {name}\n")


def agent(session: str, **options):
    from run_agent import AIAgent

    return AIAgent(
        base_url=MODEL_URL, api_key=MODEL_KEY, provider="custom", api_mode="chat_completions", model="gpt-4o-mini",
        session_id=session, quiet_mode=True, skip_context_files=True, enabled_toolsets=["memory"], **options,
    )


def say(session: str, text: str, **options) -> str:
    one = agent(session, **options)
    answer = one.run_conversation(text)["final_response"]
    one.shutdown_memory_provider()
    return answer


def first() -> None:
    keys = {user: OWNER.create_key(name=os.environ["RUN"] + user)["key"] for user in ("ada", "router")}
    HOME.mkdir(parents=True, exist_ok=True)
    KEYS.write_text(json.dumps(keys))
    install("memory-vault", "from memory_vault.adapters.hermes import VaultMemoryProvider, register\n", "name: memory-vault\n")
    os.environ.update(MEMORY_VAULT_URL=BASE_URL, MEMORY_VAULT_KEY=keys["ada"])
    check("an answer", "Noted" in say("s1", "My canoe is red.", platform="cli"))
    vault = Vault(BASE_URL, keys["ada"])
    check("the words are stored", "My canoe is red." in texts_of(vault), texts_of(vault))
    check("and no text of the program", len(texts_of(vault)) == 2, texts_of(vault))


def again() -> None:
    keys = json.loads(KEYS.read_text())
    os.environ.update(MEMORY_VAULT_URL=BASE_URL, MEMORY_VAULT_KEY=keys["ada"])
    seen()
    say("s2", "What colour is my canoe?", platform="cli")
    check("after a restart the model is told", "My canoe is red." in "".join(seen()))
    router(keys["router"])


def router(key: str) -> None:
    """`hermes-memoryrouter`, unchanged but for its address and key."""
    from hermes_memoryrouter.client import MemoryRouterClient

    client = MemoryRouterClient(api_key=key, base_url=BASE_URL)
    equal("a turn is stored", client.ingest(user_text="My hat is blue.", assistant_text="Noted.", model="gpt-4o-mini"), True)
    equal("its words", sorted(texts_of(Vault(BASE_URL, key))), ["My hat is blue.", "Noted."])
    block = client.prepare(query_text="Which colour has my hat?", density="high", context_limit=20)
    check("and recalled", block and "My hat is blue." in block["context"], block)


sys.argv = sys.argv[:2]
main({"first": first, "again": again})
