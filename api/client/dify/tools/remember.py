from collections.abc import Generator
from typing import Any

from dify_plugin import Tool
from dify_plugin.entities.tool import ToolInvokeMessage

from vault import call, person_of


class RememberTool(Tool):
    """Keeps what a person said, and the answer where there is one."""

    def _invoke(self, tool_parameters: dict[str, Any]) -> Generator[ToolInvokeMessage, None, None]:
        person = person_of(self, tool_parameters)
        turn = [{"role": "user", "content": str(tool_parameters.get("said") or "")}]
        if answer := str(tool_parameters.get("answer") or ""):
            turn.append({"role": "assistant", "content": answer})
        body = {"messages": turn, "metadata": {"source": "dify"}}
        call(self.runtime.credentials, "POST", "/v1/memory/ingest", body, person)
        yield self.create_text_message("It is kept.")
        yield self.create_json_message({"kept": True})
