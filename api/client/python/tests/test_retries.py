"""What is sent again, and that it does nothing twice. A relay loses requests and answers on the way."""

from __future__ import annotations

import time
import unittest
from email.utils import format_datetime
from datetime import datetime, timedelta, timezone
from typing import Any

from memory_vault import Vault, VaultConnectionError, VaultStatusError
from memory_vault.errors import VaultError
from memory_vault.generated.operations import OPERATIONS
from memory_vault.retry import RetryPolicy, parse_retry_after

from . import service
from .relay import Relay

QUICK = RetryPolicy(first_delay=0.01, longest_delay=0.02)
SAID = [{"role": "user", "content": "My bicycle is orange."}]


class Retries(unittest.TestCase):
    def setUp(self) -> None:
        self.relay = Relay(service.BASE_URL)
        self.addCleanup(self.relay.close)
        with service.vault() as owner:
            self.key = owner.create_key(name="retries")["key"]

    def vault(self, **options: Any) -> Vault:
        client = Vault(self.relay.base_url, self.key, **{"retries": QUICK, **options})
        self.addCleanup(client.close)
        return client

    def test_a_write_whose_answer_was_lost_is_done_once(self) -> None:
        vault = self.vault()
        self.relay.faults = ["lose", "cut", "lose"]
        vault.ingest(messages=SAID, wait=True)
        self.assertEqual(vault.stats()["memories"], 1)
        keys = [fields.get("idempotency-key") for line, fields in self.relay.heads if "ingest" in line]
        self.assertEqual(len(keys), 4)
        self.assertEqual(len(set(keys)), 1)
        self.assertIsNotNone(keys[0])

    def test_two_calls_have_two_keys_and_the_callers_own_is_kept(self) -> None:
        vault = self.vault()
        vault.ingest(messages=SAID, idempotency_key="mine")
        vault.ingest(messages=[{"role": "user", "content": "And another."}])
        vault.ingest(messages=[{"role": "user", "content": "And a third."}])
        keys = [fields["idempotency-key"] for _, fields in self.relay.heads]
        self.assertEqual(keys[0], "mine")
        self.assertEqual(len(set(keys)), 3)

    def test_a_question_carries_no_key(self) -> None:
        self.vault().search(query="bicycle", limit=1)
        self.assertNotIn("idempotency-key", self.relay.heads[0][1])

    def test_retry_after_is_waited_for(self) -> None:
        vault = self.vault()
        self.relay.faults = ["refuse"]
        began = time.monotonic()
        vault.stats()
        self.assertGreaterEqual(time.monotonic() - began, 1)
        self.assertEqual(len(self.relay.heads), 2)

    def test_a_long_retry_after_is_raised_at_once(self) -> None:
        vault = self.vault()
        relay = Relay(service.BASE_URL, retry_after="3600")
        self.addCleanup(relay.close)
        relay.faults = ["refuse"]
        with self.assertRaises(VaultStatusError) as raised:
            Vault(relay.base_url, self.key).stats()
        self.assertEqual((raised.exception.status, raised.exception.retry_after), (503, 3600))
        self.assertEqual((raised.exception.error, raised.exception.hint), ("The relay refuses", "Try again"))
        self.assertEqual(len(relay.heads), 1)
        vault.stats()

    def test_retries_have_an_end(self) -> None:
        self.relay.faults = ["lose"] * 9
        with self.assertRaises(VaultConnectionError) as raised:
            self.vault(retries=RetryPolicy(attempts=2, first_delay=0.01)).stats()
        self.assertEqual(len(self.relay.heads), 3)
        self.assertTrue(raised.exception.sent)
        self.assertEqual(raised.exception.operation, "stats")

    def test_without_retries_the_first_fault_is_raised(self) -> None:
        self.relay.faults = ["lose"]
        with self.assertRaises(VaultConnectionError):
            self.vault(retries=0).stats()
        self.assertEqual(len(self.relay.heads), 1)

    def test_a_refusal_is_not_sent_again(self) -> None:
        with self.assertRaises(VaultStatusError) as raised:
            self.vault().search(query="x", limit=0)
        self.assertEqual(raised.exception.status, 400)
        self.assertEqual(len(self.relay.heads), 1)

    def test_where_nobody_listens(self) -> None:
        self.relay.close()
        with self.assertRaises(VaultConnectionError) as raised:
            self.vault(retries=RetryPolicy(attempts=1, first_delay=0.01)).stats()
        self.assertFalse(raised.exception.sent)

    def test_delays(self) -> None:
        policy = RetryPolicy(attempts=3, first_delay=1, longest_delay=3)
        refused = VaultStatusError("stats", 503, "", None, {})
        fault = VaultStatusError("x", 502, "", None, {})
        lost = VaultConnectionError("x", OSError("gone"), sent=True)
        search, embed = OPERATIONS["search"], OPERATIONS["embed"]

        def between(low: float, error: VaultError, high: float, retry: int) -> None:
            delay = policy.delay_before(retry, error, search)
            self.assertIsNotNone(delay)
            self.assertTrue(low <= (delay or 0) <= high, delay)

        between(0.5, refused, 1, 1)
        between(1, refused, 2, 2)
        between(1.5, lost, 3, 3)
        self.assertIsNone(policy.delay_before(4, refused, search))
        self.assertIsNone(policy.delay_before(1, VaultStatusError("x", 400, "", None, {}), search))
        # A call that takes no key and may cost money is not sent twice, unless it was refused.
        self.assertIsNone(policy.delay_before(1, fault, embed))
        self.assertIsNone(policy.delay_before(1, lost, embed))
        self.assertIsNotNone(policy.delay_before(1, refused, embed))

    def test_forms_of_retry_after(self) -> None:
        soon = format_datetime(datetime.now(timezone.utc) + timedelta(seconds=30), usegmt=True)
        self.assertAlmostEqual(parse_retry_after(soon) or 0, 30, delta=25)
        self.assertEqual(parse_retry_after("2.5"), 2.5)
        self.assertEqual(parse_retry_after("Thu, 01 Jan 1970 00:00:00 GMT"), 0)
        for unreadable in (None, "", "soon"):
            self.assertIsNone(parse_retry_after(unreadable))
