"""Anthropic's memory tool, run by the SDK: synchronous, asynchronous, streamed."""

import json
import tempfile

from anthropic import Anthropic, AsyncAnthropic
from anthropic.lib.tools import ToolError
from anthropic.lib.tools._beta_builtin_memory_tool import BetaLocalFilesystemMemoryTool
from harness import apart, check, equal, main, seen, texts, vault_of, words_only
from memory_vault.adapters.anthropic import AsyncVaultMemoryTool, VaultMemoryTool

ada, ben = vault_of("ada"), vault_of("ben")
NOTES = "/memories/notes.md"


def ask(command) -> dict:
    said = [{"role": "user", "content": f"call memory {json.dumps(command)}"}]
    return {"model": "claude-sonnet-5", "max_tokens": 300, "messages": said}


def result_of(bodies):
    """What the model was sent as the outcome of its call."""
    return [part for message in json.loads(bodies[-1])["messages"] for part in message["content"] if isinstance(part, dict) and part.get("type") == "tool_result"][-1]


async def first() -> None:
    client, tool = Anthropic(), VaultMemoryTool(ada)
    seen()
    create = {"command": "create", "path": NOTES, "file_text": "My canoe is red.\nThe boat lies in Lisbon.\n"}
    client.beta.messages.tool_runner(tools=[tool], **ask(create)).until_done()
    equal("created", result_of(seen())["content"], f"File created successfully at: {NOTES}")
    client.beta.messages.tool_runner(tools=[tool], **ask({"command": "view", "path": "/memories/no.md"})).until_done()
    missing = result_of(seen())
    check("a fault is one", missing.get("is_error") is True and "does not exist" in str(missing["content"]), missing)
    runner = AsyncAnthropic().beta.messages.tool_runner(tools=[AsyncVaultMemoryTool(ada)], stream=True, **ask({"command": "view", "path": NOTES}))
    async for stream in runner:
        await stream.get_final_message()
    check("streamed", "My canoe is red." in str(result_of(seen())["content"]))
    equal("the lines of the file", texts(ada), ["My canoe is red.\nThe boat lies in Lisbon.\n"])
    words_only(ada)
    apart(ben, "canoe")
    compare(tool)


def compare(tool) -> None:
    """The same commands on files of the SDK: faults in both or in neither, and the same files."""
    local = BetaLocalFilesystemMemoryTool(tempfile.mkdtemp())
    local.call({"command": "create", "path": NOTES, "file_text": "My canoe is red.\nThe boat lies in Lisbon.\n"})
    long = "/memories/a/long.md"
    commands = [
        {"command": "view", "path": NOTES},
        {"command": "view", "path": NOTES, "view_range": [2, 2]},
        {"command": "create", "path": NOTES, "file_text": "x"},
        {"command": "str_replace", "path": NOTES, "old_str": "red", "new_str": "blue"},
        {"command": "str_replace", "path": NOTES, "old_str": "green", "new_str": "blue"},
        {"command": "str_replace", "path": NOTES, "old_str": "e", "new_str": "blue"},
        {"command": "insert", "path": NOTES, "insert_line": 1, "insert_text": "It is old.\n"},
        {"command": "insert", "path": NOTES, "insert_line": 99, "insert_text": "x"},
        {"command": "create", "path": long, "file_text": " é\n" * 2000},
        {"command": "create", "path": "/memories/blank.md", "file_text": "   \n"},
        {"command": "view", "path": "/memories/blank.md"},
        {"command": "view", "path": long, "view_range": [1999, 2000]},
        {"command": "rename", "old_path": long, "new_path": "/memories/b.md"},
        {"command": "view", "path": "/memories/b.md", "view_range": [1, 2]},
        {"command": "view", "path": "/memories/none.md"},
        {"command": "view", "path": "/etc/passwd"},
        {"command": "delete", "path": "/memories/none.md"},
        {"command": "delete", "path": "/memories"},
        {"command": "delete", "path": "/memories/b.md"},
        {"command": "view", "path": NOTES},
    ]

    def outcome(one, command):
        try:
            return (True, one.call(command))
        except ToolError as fault:
            return (False, str(fault))

    for command in commands:
        own, theirs = outcome(tool, command), outcome(local, command)
        equal(f"{command}: both refuse it or neither", own[0], theirs[0])
        if command["command"] == "view" and own[0]:
            equal(f"{command}: the same lines", own[1].rstrip(), theirs[1].rstrip())


def again() -> None:
    tool = VaultMemoryTool(vault_of("ada"))
    check("after a restart the file is there", "My canoe is blue." in tool.call({"command": "view", "path": NOTES}))
    equal("search finds it", ada.search("where is the boat?", limit=1)["memories"][0]["metadata"]["file_path"], NOTES)
    tool.clear_all_memory()
    equal("cleared", texts(ada), [])


main({"first": first, "again": again})
