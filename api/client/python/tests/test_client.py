"""The client against a running service: errors, users, exports, threads, asyncio."""

from __future__ import annotations

import asyncio
import time
import unittest
import uuid
from concurrent.futures import ThreadPoolExecutor

from memory_vault import NotModified, Vault, VaultConnectionError, VaultStatusError
from memory_vault.retry import RetryPolicy

from . import service
from .relay import Relay


class Client(unittest.TestCase):
    def test_a_refusal_says_what_is_wrong_and_what_to_change(self) -> None:
        with Vault(service.BASE_URL, "mk_00000000000000000000000000000000") as stranger:
            with self.assertRaises(VaultStatusError) as raised:
                stranger.stats()
            with self.assertRaises(VaultStatusError):
                next(stranger.export_vault())
        error = raised.exception
        self.assertEqual((error.status, error.operation), (401, "stats"))
        self.assertIn("Bearer", error.hint or "")
        self.assertIn(error.error, str(error))
        self.assertIn(error.hint or "?", str(error))

    def test_a_refusal_on_a_path_of_providers(self) -> None:
        with service.vault() as vault, self.assertRaises(VaultStatusError) as raised:
            vault.chat(model="unheard-of/model", messages=[{"role": "user", "content": "Hi"}])
        self.assertEqual(raised.exception.status, 400)
        self.assertNotEqual(raised.exception.error, "")

    def test_none_is_a_value_where_the_contract_says_so(self) -> None:
        with service.new_vault() as vault:
            vault.ingest(
                messages=[{"role": "user", "content": "I parked on level two."}],
                expires_at="2036-01-31T00:00:00Z",
                wait=True,
            )
            (memory,) = vault.list()["items"]
            text, id = "I parked on level three.", memory["memory_id"]
            vault.edit(memory_id=id, text=text)
            (kept,) = vault.list()["items"]
            self.assertIn("expires_at", kept)
            vault.edit(memory_id=id, text=text, expires_at=None)
            (endless,) = vault.list()["items"]
            self.assertIsNone(endless.get("expires_at"))

    def test_every_text_arrives_as_it_is(self) -> None:
        with service.new_vault() as vault:
            session = "Größe / 50%&?#"
            text = 'He said "ça va", 東京 🦊'
            vault.ingest(messages=[{"role": "user", "content": text}], session_id=session, wait=True)
            vault.upload([{"content": "Zeile: Größe"}], session_id=session)
            found = vault.search(query="Größe", limit=5, session_id=session)
            self.assertIn("Zeile: Größe", [memory["content"] for memory in found["memories"]])
            lines = vault.export_vault(session_id=session)
            self.assertEqual({line["content"] for line in lines}, {text, "Zeile: Größe"})
            self.assertEqual(vault.list_sessions()["items"][0]["session_id"], session)
            self.assertEqual(vault.stats()["memories"], 2)
            vault.clear_memory(session_id=session)
            self.assertEqual(vault.stats()["memories"], 0)

    def test_a_filter_in_the_query_is_json(self) -> None:
        with service.new_vault() as vault:
            vault.upload([{"content": "a", "metadata": {"agent_id": "one"}}, {"content": "b"}])
            (item,) = vault.list(metadata={"agent_id": ["one", "two"]})["items"]
            self.assertEqual(item["metadata"], {"agent_id": "one"})

    def test_a_profile_that_is_the_same_is_not_sent_again(self) -> None:
        with service.new_vault() as vault:
            vault.ingest(messages=[{"role": "user", "content": "My name is Ada."}], wait=True)
            version = vault.profile(if_none_match='"another"')["version"]
            with self.assertRaises(NotModified):
                vault.profile(if_none_match=f'"{version}"')

    def test_a_user_by_your_own_id(self) -> None:
        with service.vault() as owner:
            id = f"René 京 {uuid.uuid4()}"
            user = owner.for_user(id)
            user.ingest(messages=[{"role": "user", "content": "Only mine."}], wait=True)
            self.assertEqual(user.stats()["memories"], 1)
            (key,) = owner.list_keys(external_id=id)["items"]
            self.assertEqual(key.get("external_id"), id)
            with self.assertRaises(VaultStatusError) as raised:
                user.erase_account(email="whole-account@example.com")
            self.assertEqual(raised.exception.status, 400)

    def test_an_export_is_read_line_by_line(self) -> None:
        with service.new_vault() as vault:
            self.assertEqual(list(vault.export_vault()), [])
            contents = [f"Line {number} about nothing" for number in range(500)]
            vault.upload({"content": content} for content in contents)
            self.assertEqual(sorted(line["content"] for line in vault.export_vault()), sorted(contents))
            with vault.export_vault() as lines:
                self.assertIn(next(lines)["content"], contents)
            self.assertEqual(list(lines), [], "closed")
            self.assertEqual(vault.stats()["memories"], 500)

    def test_an_export_that_breaks_off_is_an_error_and_no_end(self) -> None:
        relay = Relay(service.BASE_URL)
        self.addCleanup(relay.close)
        with service.vault() as owner:
            key = owner.create_key(name="cut")["key"]
        with Vault(service.BASE_URL, key) as vault:
            vault.upload({"content": f"Line {number} about nothing"} for number in range(200))
        with Vault(relay.base_url, key) as vault:
            relay.faults = ["cut"]
            with self.assertRaises(VaultConnectionError):
                list(vault.export_vault())

    def test_threads_share_a_client_and_its_connections(self) -> None:
        with service.new_vault() as vault, ThreadPoolExecutor(8) as threads:
            counts = list(threads.map(lambda _: vault.stats()["memories"], range(64)))
            self.assertEqual(counts, [0] * 64)

    def test_an_address_that_is_none(self) -> None:
        for address in ("memory.example.com", "ftp://memory.example.com", ""):
            with self.assertRaises(ValueError):
                Vault(address, "mk_x")


class Asynchronous(unittest.IsolatedAsyncioTestCase):
    async def test_calls_run_beside_each_other(self) -> None:
        async with service.new_async_vault() as vault:
            said = [[{"role": "user", "content": f"Fact number {n}."}] for n in range(8)]
            await asyncio.gather(*(vault.ingest(messages=one, wait=True) for one in said))
            self.assertEqual((await vault.stats())["memories"], 8)
            contents = [line["content"] async for line in vault.export_vault()]
            self.assertEqual(sorted(contents), [one[0]["content"] for one in said])
            async with vault.export_vault() as lines:
                self.assertIn((await lines.__anext__())["content"], contents)

    async def test_a_refusal_is_raised(self) -> None:
        async with service.new_async_vault() as vault:
            with self.assertRaises(VaultStatusError):
                await vault.search(query="x", limit=0)

    async def test_a_cancelled_call_ends(self) -> None:
        relay = Relay(service.BASE_URL, retry_after="50")
        self.addCleanup(relay.close)
        relay.faults = ["refuse"] * 9
        async with service.new_async_vault() as other:
            vault = type(other)(relay.base_url, "mk_x", retries=RetryPolicy(attempts=9))
            began = time.monotonic()
            task = asyncio.ensure_future(vault.stats())
            while not relay.heads:
                await asyncio.sleep(0.01)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            # The thread has ended too: it would wait for 50 seconds.
            await asyncio.get_running_loop().run_in_executor(None, vault._threads.shutdown)
            self.assertLess(time.monotonic() - began, 45)
