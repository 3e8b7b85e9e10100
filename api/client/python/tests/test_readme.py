"""The programs of the page run as they stand there."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import tempfile
import unittest
from pathlib import Path
from typing import List, Optional

PAGE = Path(__file__).parent.parent / "README.md"


def programs() -> List[str]:
    return re.findall(r"\n```python\n(.*?)\n```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def missing_sdk(program: str) -> Optional[str]:
    names = re.findall(r"^from (\w+)", program, re.MULTILINE)
    for name in names:
        module = "google.genai" if name == "google" else name
        try:
            found = importlib.util.find_spec(module)
        except ModuleNotFoundError:
            found = None
        if found is None:
            return module
    return None


class Readme(unittest.TestCase):
    def run_program(self, program: str) -> str:
        printed = io.StringIO()
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(printed):
            before = os.getcwd()
            os.chdir(folder)
            try:
                exec(compile(program, str(PAGE), "exec"), {"__name__": "__main__"})
            finally:
                os.chdir(before)
        return printed.getvalue()

    def test_the_programs_of_the_client_run(self) -> None:
        # Those with a framework are run with its package by `test/programs`.
        named = [program for program in programs() if "from memory_vault" in program]
        own = [one for one in named if ".adapters" not in one or ".memory_files" in one]
        self.assertEqual(len(own), 6)
        printed = "".join(self.run_program(program) for program in own)
        for expected in ("Ada turns nine in May.", "I moved to Lisbon in June.", "400 ", "     1\tAda"):
            self.assertIn(expected, printed)

    def _sdk(self, name: str) -> None:
        # Frameworks stand below the SDKs: test/programs runs these.
        program = next(text for text in programs() if f"\nfrom {name} import" in text)
        compile(program, str(PAGE), "exec")
        missing = missing_sdk(program)
        if missing:
            self.skipTest(f"this Python has no package {missing}")
        self.assertIn("Noted", self.run_program(program))

    def test_openai(self) -> None:
        self._sdk("openai")

    def test_anthropic(self) -> None:
        self._sdk("anthropic")

    def test_google(self) -> None:
        self._sdk("google")
