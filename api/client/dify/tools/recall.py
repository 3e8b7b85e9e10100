from collections.abc import Generator
from typing import Any

from dify_plugin import Tool
from dify_plugin.entities.tool import ToolInvokeMessage

from vault import call, person_of


class RecallTool(Tool):
    """Returns the block of what is remembered, and how much that is."""

    def _invoke(self, tool_parameters: dict[str, Any]) -> Generator[ToolInvokeMessage, None, None]:
        person = person_of(self, tool_parameters)
        question = str(tool_parameters.get("question") or "")
        body = {"messages": [{"role": "user", "content": question}]}
        found = call(self.runtime.credentials, "POST", "/v1/memory/prepare", body, person)
        yield self.create_text_message(found["context"] or "Nothing is remembered of this.")
        yield self.create_json_message(
            {"context": found["context"] or "", "memories_found": found["memories_found"]}
        )
