"""The adapters against a running service, by the interfaces that frameworks publish."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
import time
import unittest
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any, Callable, List
from unittest import mock

from memory_vault import Vault

from . import service, shapes

MODULES = mock.patch.dict(sys.modules)


def setUpModule() -> None:
    MODULES.start()
    shapes.install()


def tearDownModule() -> None:
    # Other tests ask which frameworks this Python has.
    MODULES.stop()


def adapter(name: str) -> Any:
    return importlib.import_module(f"memory_vault.adapters.{name}")


def texts(vault: Vault) -> List[str]:
    return sorted(item["text"] for item in vault.list(limit=200)["items"])


def wait_until(is_true: Callable[[], bool]) -> None:
    while not is_true():
        time.sleep(0.02)


class Adapters(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.vault = service.new_vault()
        self.addCleanup(self.vault.close)

    def remember(self, *said: str) -> None:
        for one in said:
            self.vault.ingest(messages=[{"role": "user", "content": one}], wait=True)

    def command(self, name: str, **fields: Any) -> Any:
        return SimpleNamespace(command=name, **fields)

    async def test_files_of_the_memory_tool_of_anthropic(self) -> None:
        tool = adapter("anthropic").VaultMemoryTool(self.vault)
        self.assertEqual(tool.to_dict()["type"], "memory_20250818")

        def run(name: str, **fields: Any) -> Any:
            return tool.execute(self.command(name, **fields))

        path = "/memories/work/notes.md"
        created = run("create", path=path, file_text="Ada sails.\nThe boat lies in Lisbon.\n")
        self.assertEqual(created, f"File created successfully at: {path}")
        self.assertEqual(run("create", path=path, file_text="x"), f"Error: File {path} already exists")
        head = f"Here's the content of {path} with line numbers:\n"
        self.assertEqual(
            run("view", path=path, view_range=[2, -1]), f"{head}     2\tThe boat lies in Lisbon.\n     3\t"
        )
        self.assertEqual(
            run("str_replace", path=path, old_str="sails", new_str="rows"),
            "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
            "     1\tAda rows.\n     2\tThe boat lies in Lisbon.\n     3\t",
        )
        self.assertEqual(
            run("str_replace", path=path, old_str="sails", new_str="x"),
            f"No replacement was performed, old_str `sails` did not appear verbatim in {path}.",
        )
        self.assertIn("in lines: 1, 2.", run("str_replace", path=path, old_str="o", new_str="x"))
        self.assertEqual(
            run("insert", path=path, insert_line=0, insert_text="# Notes\n"), f"The file {path} has been edited."
        )
        self.assertIn("[0, 4]", run("insert", path=path, insert_line=9, insert_text="x"))
        (found,) = self.vault.search(query="where is the boat?", limit=1)["memories"]
        self.assertEqual(found["metadata"]["file_path"], path)
        long = "/memories/long.md"
        run("create", path=long, file_text=" é\n" * 2000)
        self.assertTrue(run("view", path=long, view_range=[2000, 2000]).endswith("  2000\t é"))
        self.assertEqual(
            run("view", path="/memories"),
            "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items and "
            "node_modules:\n7.9K\t/memories\n7.8K\t/memories/long.md\n43B\t/memories/work/\n"
            "43B\t/memories/work/notes.md",
        )
        self.assertEqual(
            run("rename", old_path="/memories/work", new_path="/memories/old"),
            "Successfully renamed /memories/work to /memories/old",
        )
        self.assertEqual(run("delete", path="/memories/old"), "Successfully deleted /memories/old")
        self.assertEqual(run("delete", path="/memories/old"), "Error: The path /memories/old does not exist")
        for bad in ("/memories/../etc", "/memories/%2e%2e/x", "/etc", "memories/x", "/memories/" + "x" * 250):
            for name in ("view", "create", "delete", "str_replace", "insert"):
                fields = {"file_text": "x", "old_str": "x", "insert_line": 0, "insert_text": "x"}
                self.assertRegex(run(name, path=bad, **fields), "^Error: ", bad)
        self.assertEqual(tool.clear_all_memory(), "All memory cleared")
        self.assertEqual(self.vault.stats()["memories"], 0)
        other = adapter("anthropic").AsyncVaultMemoryTool(self.vault)
        missing = await other.execute(self.command("view", path="/memories/x"))
        self.assertEqual(missing, "The path /memories/x does not exist. Please provide a valid path.")

    async def test_a_store_of_langgraph(self) -> None:
        store = adapter("langgraph").VaultStore(self.vault)
        base = importlib.import_module("langgraph.store.base")
        ada = ("users", "ada")
        value = {"text": "My boat lies in Lisbon. " * 40, "n": 900, "東京": ["🦊", None, 2.5]}
        store.put(ada, "boat", value)
        store.put(ada, "cat", {"text": "My cat is called Tom.", "n": 4})
        self.assertEqual(store.get(ada, "boat").value, value)
        store.put(ada, "boat", {"text": "My boat lies in Porto.", "n": 900})
        self.assertEqual((await store.aget(ada, "boat")).value["text"], "My boat lies in Porto.")
        self.assertEqual(store.get(("users",), "boat"), None)
        best = store.search(("users",), query="where is the boat?")[0]
        self.assertEqual((best.key, best.namespace, best.score > 0), ("boat", ada, True))
        self.assertEqual([item.key for item in store.search(ada, filter={"n": {"$gt": 4}})], ["boat"])
        self.assertEqual([item.key for item in store.search(ada)], ["boat", "cat"])
        condition = base.MatchCondition("prefix", ("*", "ada"))
        self.assertEqual(store.batch([base.ListNamespacesOp((condition,))]), [[ada]])
        read, _ = store.batch([base.GetOp(ada, "cat"), base.PutOp(ada, "cat", None)])
        self.assertEqual((read.key, store.get(ada, "cat")), ("cat", None))

    async def test_history_and_retriever_of_langchain(self) -> None:
        langchain = adapter("langchain")
        messages = importlib.import_module("langchain_core.messages")
        history = langchain.VaultChatMessageHistory(self.vault, "chat-1")
        said = [messages.HumanMessage("My canoe is red."), messages.AIMessage("Noted. " * 200)]
        history.add_messages(said)
        history.add_messages([messages.HumanMessage([{"type": "text", "text": "a"}, {"type": "image"}])])
        self.assertEqual(history.messages[:2], said)
        self.assertEqual(len(history.messages), 3)
        retriever = langchain.VaultRetriever(vault=self.vault, limit=1, session_id="chat-1")
        (document,) = retriever.invoke("which colour is the canoe?")
        self.assertEqual(document.page_content, "My canoe is red.")
        history.clear()
        self.assertEqual(history.messages, [])

    async def test_a_session_of_openai_agents(self) -> None:
        session = adapter("openai_agents").VaultSession(self.vault, "chat-1")
        self.assertIsNone(await session.pop_item())
        items = [
            {"role": "user", "content": "yes"},
            {"role": "user", "content": "yes"},
            {"role": "assistant", "content": [{"type": "output_text", "text": "a " * 900, "annotations": []}]},
            {"type": "function_call_output", "call_id": "1", "output": " é🦊\n" * 900},
            {"role": "user", "content": " "},
        ]
        await session.add_items(items[:2])
        await session.add_items(items[2:])
        self.assertEqual(await session.get_items(), items)
        self.assertEqual(await session.get_items(limit=2), items[-2:])
        self.assertEqual(await session.get_items(limit=0), [])
        self.assertEqual(await session.pop_item(), items[-1])
        self.assertEqual(await session.get_items(), items[:-1])
        await session.clear_session()
        self.assertEqual(await session.get_items(), [])
        other = adapter("openai_agents").VaultSession(self.vault, "chat-1")
        with mock.patch.object(adapter("core"), "_now", lambda: 2_000_000_000_000):
            await asyncio.gather(*(one.add_items(items[:3]) for one in (session, other, session)))
        self.assertEqual(len(await session.get_items()), 9)

    async def test_a_memory_service_of_google_adk(self) -> None:
        with service.vault() as owner:
            memory = adapter("google_adk").VaultMemoryService(owner)

            def event(author: str, text: str, at: float) -> Any:
                content = SimpleNamespace(parts=[SimpleNamespace(text=text)])
                return SimpleNamespace(author=author, content=content, timestamp=at)

            app = {"app_name": "app", "user_id": f"ada-{id(self)}"}
            events = [event("user", "My cat is called Ada.", 1e9), event("agent", "A fine name.", 1e9 + 1)]
            empty = SimpleNamespace(author="agent", content=None, timestamp=1e9)
            await memory.add_session_to_memory(SimpleNamespace(id="s", events=[*events, empty], **app))
            events.append(event("user", "She is nine.", 1e9 + 2))
            await memory.add_session_to_memory(SimpleNamespace(id="s", events=events, **app))
            entry = (await memory.search_memory(query="what is the cat called?", **app)).memories[0]
            self.assertEqual(
                (entry.content.parts[0].text, entry.author, entry.timestamp[:19]),
                ("My cat is called Ada.", "user", "2001-09-09T01:46:40"),
            )
            other = {"app_name": "app", "user_id": f"ben-{id(self)}"}
            await memory.add_memory(memories=[SimpleNamespace(**vars(entry))], **other)
            self.assertEqual(len((await memory.search_memory(query="cat", **other)).memories), 1)
            await memory.delete_memory(memory_id=entry.id, **app)
            self.assertEqual(len(owner.for_user("app/" + app["user_id"]).list()["items"]), 2)
            await memory.delete_memories(**app)
            self.assertEqual((await memory.search_memory(query="cat", **app)).memories, [])

    async def test_a_context_provider_of_agent_framework(self) -> None:
        framework = importlib.import_module("agent_framework")
        self.remember("My cat is called Ada.")
        provider = adapter("agent_framework").VaultContextProvider(self.vault)
        added: List[Any] = []
        context = SimpleNamespace(
            input_messages=[framework.Message(role="user", contents=["What is my cat called?"])],
            response=SimpleNamespace(messages=[framework.Message(role="assistant", contents=["Ada."])]),
            extend_messages=lambda source, messages: added.extend(messages),
        )
        fields: Any = {"agent": None, "session": None, "context": context, "state": {}}
        await provider.before_run(**fields)
        self.assertIn("My cat is called Ada.", added[0].text)
        await provider.after_run(**fields)
        wait_until(lambda: len(texts(self.vault)) == 3)
        lost = adapter("agent_framework").VaultContextProvider(Vault("http://127.0.0.1:9", "mk_x", retries=0))
        with self.assertLogs("memory_vault", "WARNING"):
            await lost.before_run(**fields)
            await lost.after_run(**fields)
        self.assertEqual(len(added), 1)

    async def test_a_memory_block_of_llama_index(self) -> None:
        self.remember("My cat is called Ada.")
        block = adapter("llama_index").VaultMemoryBlock(vault=self.vault)
        asked = [SimpleNamespace(role=SimpleNamespace(value="user"), content="What is my cat called?")]
        self.assertIn("My cat is called Ada.", await block.aget(asked))
        self.assertEqual(await block.aget([]), "")
        await block.aput([*asked, SimpleNamespace(role="tool", content="x")])
        wait_until(lambda: len(texts(self.vault)) == 2)

    async def test_memory_of_pydantic_ai(self) -> None:
        parts = importlib.import_module("pydantic_ai.messages")
        self.remember("My cat is called Ada.")
        memory = adapter("pydantic_ai").VaultMemory(self.vault)
        asked = parts.ModelRequest(parts=[parts.UserPromptPart(content=["What is my cat called?"])])
        (changed,) = await memory.recall([asked])
        self.assertIn("My cat is called Ada.", changed.parts[0].content)
        self.assertEqual((len(asked.parts), len(changed.parts)), (1, 2))
        self.assertEqual(await memory.recall([]), [])
        await memory.store([asked, parts.ModelResponse(parts=[parts.TextPart(content="Ada.")])])
        wait_until(lambda: len(texts(self.vault)) == 3)
        tools = memory.toolset().tools
        self.assertEqual(await tools["remember"].function("The boat lies in Lisbon."), "Stored.")
        found = await tools["search_memory"].function("where is the boat?")
        self.assertIn("The boat lies in Lisbon.", found[0])

    async def test_a_memory_provider_of_hermes(self) -> None:
        hermes = adapter("hermes")
        registered: List[Any] = []
        hermes.register(SimpleNamespace(register_memory_provider=registered.append))
        (provider,) = registered
        self.assertFalse(provider.is_available())
        with service.vault() as owner:
            key = owner.create_key(name="hermes")["key"]
        with mock.patch.dict(os.environ, {hermes.ADDRESS: service.BASE_URL, hermes.KEY: key}):
            self.assertTrue(provider.is_available())
            provider.initialize("s1", hermes_home="/tmp", platform="cli")
        stored = provider.handle_tool_call("vault_store", {"text": "My dog is called Ben."})
        self.assertEqual(json.loads(stored), {"stored": True})
        self.assertIn("My dog is called Ben.", provider.prefetch("What is my dog called?"))
        self.assertIn("Ben", provider.handle_tool_call("vault_search", {"query": "dog"}))
        self.assertIn("error", json.loads(provider.handle_tool_call("vault_search", {})))
        self.assertEqual(len(provider.get_tool_schemas()), 2)
        provider.sync_turn("And my fish is Cyd.", "Noted.", session_id="s1", messages=[])
        provider.shutdown()
        with Vault(service.BASE_URL, key) as vault:
            wait_until(lambda: "And my fish is Cyd." in texts(vault))

    async def test_a_storage_of_crewai(self) -> None:
        types = importlib.import_module("crewai.memory.types")
        storage = adapter("crewai").VaultStorage(self.vault)

        def record(id: str, content: str, scope: str, at: int, **fields: Any) -> Any:
            created = datetime.fromtimestamp(at, timezone.utc)
            return types.MemoryRecord(id=id, content=content, scope=scope, created_at=created, **fields)

        boat = record("1", "The boat lies in Lisbon.", "/crew/ada", 1, categories=["place"])
        storage.save([boat, record("2", "The cat is called Tom.", "/crew/ben", 2, metadata={"n": 1})])
        (vector,) = storage.embed(["where is the boat?"])
        (found, score), *_ = storage.search(vector, limit=2)
        self.assertEqual((found.id, found.content, score > 0), ("1", "The boat lies in Lisbon.", True))
        (cat,) = storage.embed(["what is the cat called?"])
        self.assertEqual([one.id for one, _ in storage.search(cat, "/crew/ben")], ["2"])
        self.assertNotIn("2", [one.id for one, _ in storage.search(cat, "/crew/ada")])
        self.assertEqual(await storage.asearch(vector, metadata_filter={"n": 2}), [])
        with self.assertRaises(ValueError):
            storage.search([0.5])
        self.assertEqual([one.id for one in storage.list_records("/crew")], ["2", "1"])
        self.assertEqual((storage.list_scopes("/crew"), storage.list_scopes()), (["/crew/ada", "/crew/ben"], ["/crew"]))
        self.assertEqual((storage.list_categories(), storage.count("/crew/ada")), ({"place": 1}, 1))
        self.assertEqual(storage.get_scope_info("/crew").record_count, 2)
        boat.content = "The boat lies in Porto."
        storage.update(boat)
        self.assertEqual((storage.get_record("1").content, storage.count()), ("The boat lies in Porto.", 2))
        self.assertEqual((storage.delete(record_ids=["1"]), storage.get_record("1")), (1, None))
        storage.reset("/crew")
        self.assertEqual(self.vault.stats()["memories"], 0)
