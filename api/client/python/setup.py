"""Builds the package, and before it the synchronous client from the asynchronous one.

To import the package from this folder without installing it, run `python3 -c 'import setup'` once.
"""

from pathlib import Path

GENERATED = Path(__file__).resolve().parent / "memory_vault" / "generated"
REPLACED = {
    "async def ": "def ",
    "return await self": "return self",
    "Async": "",
}

text = (GENERATED / "async_vault.py").read_text(encoding="utf-8")
for old, new in REPLACED.items():
    text = text.replace(old, new)
(GENERATED / "vault.py").write_text(text, encoding="utf-8")

if __name__ == "__main__":
    from setuptools import setup

    setup()
