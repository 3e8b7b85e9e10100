"""What the adapters share, against a running service; with their frameworks they are run by `test/programs`."""

from __future__ import annotations

import threading
import unittest
from typing import Any, List
from unittest import mock

from memory_vault import Vault
from memory_vault.adapters import core, long_texts, session_items
from memory_vault.adapters.memory_files import CommandFault, MemoryFiles

from . import service


def texts(vault: Vault) -> List[str]:
    return sorted(item["text"] for item in vault.list(limit=200)["items"])


class Adapters(unittest.TestCase):
    def setUp(self) -> None:
        self.vault = service.new_vault()
        self.addCleanup(self.vault.close)

    def test_files_of_the_memory_tool_of_anthropic(self) -> None:
        tool = MemoryFiles(self.vault)

        def run(name: str, **fields: Any) -> Any:
            return tool.run({"command": name, **fields})

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
        with self.assertRaises(CommandFault):
            tool.execute({"command": "view", "path": "/memories/x"})
        tool.clear()
        self.assertEqual(self.vault.stats()["memories"], 0)

    def test_items_of_a_session_come_back_as_they_were(self) -> None:
        session = session_items.SessionItems(self.vault, "chat-1", "test")
        items: List[Any] = [
            {"role": "user", "content": "yes"},
            {"role": "user", "content": "yes"},
            {"role": "assistant", "content": [{"type": "output_text", "text": "a " * 900, "annotations": []}]},
            {"type": "function_call", "name": "find", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "1", "output": " é🦊\n" * 900},
            {"role": "user", "content": ["Mixed. ", {"type": "image", "data": "🦊" * 5000}, {"text": "Parts."}]},
            {"role": "user", "content": " "},
            {"role": "user", "content": ""},
        ]
        session.add(items[:2])
        session.add(items[2:])
        self.assertEqual([one["item"] for one in session.read()], items)
        self.assertEqual([one["item"] for one in session.read(2)], items[-2:])
        self.assertEqual(session.read(0), [])
        found = self.vault.date_search(from_="0001-01-01", to="9999-12-31", session_id="chat-1")["memories"]
        contents = [row["content"] for row in found]
        self.assertEqual([text for text in contents if text.startswith(("{", "["))], [])
        self.assertLess({"yes", "Mixed. Parts.", "(function_call find)", "(no text)"}, set(contents))
        session.remove(session.read(1))
        self.assertEqual([one["item"] for one in session.read()], items[:-1])
        session.clear()
        self.assertEqual(session.read(), [])

    def test_writers_of_the_same_words_in_the_same_millisecond(self) -> None:
        sessions = [session_items.SessionItems(self.vault, "chat-1", "test") for _ in range(3)]
        said = [{"role": "user", "content": one} for one in ("yes", "no", "a " * 500)]
        with mock.patch.object(session_items, "now", lambda: 2_000_000_000_000):
            writers = [threading.Thread(target=session.add, args=(said,)) for session in sessions]
            for one in writers:
                one.start()
            for one in writers:
                one.join()
        self.assertEqual(len(sessions[0].read()), 9)
        with mock.patch.object(long_texts, "now", lambda: 2_000_000_000_000):
            for n in range(3):
                long_texts.put_texts(self.vault, "x_", [long_texts.LongText({"n": n}, "tea", data="1")])
        rows = core.list_rows(self.vault, {"n": [0, 1, 2]})
        self.assertEqual((len(rows), len(long_texts.to_texts("x_", rows))), (3, 3))

    def test_texts_and_items_of_the_first_form(self) -> None:
        at = 1_700_000_000_000

        def line(part: int, text: str) -> Any:
            counters = {"file_at": at + 0.5, "file_since": at, "file_part": part, "file_parts": 2}
            metadata = {"file_tree": "memories", "file_path": "/memories/a.md", **counters}
            return {"content": f"a.md 1.{part}\n[{text}]", "role": "assistant", "timestamp": at, "metadata": metadata}

        self.vault.upload([line(0, "I sa"), line(1, "il.\n")])
        files = MemoryFiles(self.vault)
        view = {"command": "view", "path": "/memories/a.md"}
        self.assertIn("1\tI sail.", files.run(view))
        files.run({"command": "str_replace", "path": "/memories/a.md", "old_str": "sail", "new_str": "row"})
        self.assertEqual(texts(self.vault), ["I row.\n"])

        def item(n: int, content: str, **rest: str) -> Any:
            metadata = {"item_of": "test", "item_at": at + n, "item_part": 0, "item_parts": 1, **rest}
            return {"content": content, "role": "user", "timestamp": at + n, "metadata": metadata}

        lines = [item(0, "Hello", item_rest='{"role":"user","content":null}'), item(1, '[{"type":"x"}]')]
        self.vault.upload(lines, session_id="old")
        session = session_items.SessionItems(self.vault, "old", "test")
        found = [one["item"] for one in session.read()]
        self.assertEqual(found, [{"role": "user", "content": "Hello"}, {"type": "x"}])

    def test_what_is_too_long_is_refused_before_it_is_sent(self) -> None:
        session = session_items.SessionItems(self.vault, "chat-1", "test")
        with self.assertRaises(ValueError):
            session.add([{"role": "user", "content": [{"text": "A picture."}, {"data": "A" * 40_000_000}]}])
        self.assertEqual(session.read(), [])
