"""Each method against its endpoint, with the requests that the reference shows."""

from __future__ import annotations

import json
import unittest
from typing import Any, Dict, Set, get_type_hints

from memory_vault import Lines, Vault, VaultStatusError, types
from memory_vault.generated.operations import OPERATIONS

from . import service
from .answers import faults

HEADERS = {"x-session-id": "session_id"}
called: Set[str] = set()


class EveryOperation(unittest.TestCase):
    """The order of the tests is that of their names: the last one asks whether all were called."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.examples = service.examples()
        cls.real: Dict[str, str] = {}

    def made(self, sample: str, real: str) -> None:
        """A real id, for one that the reference shows."""
        self.real[self.examples["sampleIds"][sample]] = real

    def arguments(self, operation: str) -> Dict[str, Any]:
        text = json.dumps(self.examples["requests"].get(operation, {}))
        for sample, real in self.real.items():
            text = text.replace(sample, real)
        example = json.loads(text)
        body = example.get("body") or {}
        if isinstance(body, str):
            is_file = OPERATIONS[service.python_name(operation)].body == "bytes"
            fields = {"file": body.encode()} if is_file else {"lines": body}
        else:
            fields = body
        named = {**example.get("path", {}), **example.get("query", {}), **fields}
        headers = {HEADERS[name]: value for name, value in example.get("headers", {}).items()}
        return {**{service.python_name(name): value for name, value in named.items()}, **headers}

    def run_one(self, vault: Vault, operation: str, **more: Any) -> Any:
        name = service.python_name(operation)
        called.add(name)
        method = getattr(vault, name)
        answer = method(**{**self.arguments(operation), **more})
        kind = get_type_hints(method)["return"]
        if isinstance(answer, Lines):
            lines = list(answer)
            (line,) = kind.__args__
            for one in lines:
                self.assertEqual(faults(one, line), [], name)
            return lines
        self.assertEqual(faults(answer, kind), [], name)
        return answer

    def run_all(self, vault: Vault, operations: str) -> None:
        for operation in operations.split():
            with self.subTest(operation):
                self.run_one(vault, operation)

    def refused(self, vault: Vault, operation: str, *statuses: int, **more: Any) -> None:
        """An endpoint that answers its example so where nothing has gone before."""
        with self.assertRaises(VaultStatusError) as raised:
            self.run_one(vault, operation, **more)
        self.assertIn(raised.exception.status, statuses, operation)

    def test_1_a_vault_in_the_order_of_a_life(self) -> None:
        with service.vault() as vault:
            self.made("destinationKey", vault.create_key(name="Destination")["key"])
            self.made("operation", self.run_one(vault, "ingest")["operation_id"])
            items = self.run_one(vault, "list")["items"]
            self.made("memory", next(item for item in items if item["role"] == "user")["memory_id"])
            self.run_all(
                vault,
                "prepare search edit dateSearch upload importVault warmup stats statsOfKey transfer"
                " graft listOperations readOperation createKey listSessions profile usage"
                " putProviderKey listProviderKeys deleteProviderKey health live ready information",
            )
            self.files(vault)
            self.assertGreater(len(self.run_one(vault, "exportVault")), 1)
            self.made("batch", self.run_one(vault, "checkout")["batch_id"])
            self.run_one(vault, "commit")
            keys = self.run_one(vault, "listKeys")["items"]
            self.made("memoryKey", next(key for key in keys if not key["current"])["id"])
            self.assertEqual(self.run_one(vault, "changeKey")["budget"]["requests"], 500)
            self.run_one(vault, "inspect")
            self.feedback(vault)
            self.run_all(vault, "deleteIds clearMemory remintKey revokeKey")
            self.assertEqual(self.run_one(vault, "deleteAccountUser")["erased"]["keys"], 1)
            self.assertEqual(self.run_one(vault, "account")["users"], 0)
            self.refused(vault, "cancelOperation", 409)

    def files(self, vault: Vault) -> None:
        vault.put_account_policy(keep_files=True)
        stored = self.run_one(vault, "storeFile")
        self.assertIsInstance(self.run_one(vault, "downloadFile"), bytes)
        self.assertEqual((stored["status"], stored["skipped"]), ("complete", 0))
        again = self.run_one(vault, "storeFile")
        self.assertEqual((again["stored"], again["skipped"]), (0, stored["stored"]), "the same file adds nothing")
        (file,) = self.run_one(vault, "listFiles")["items"]
        self.assertEqual((file["name"], file["memories"]), ("lease.txt", stored["stored"]))
        self.assertEqual(self.run_one(vault, "deleteFile")["deleted"], stored["stored"])
        self.assertEqual(self.run_one(vault, "listFiles")["items"], [])

    def feedback(self, vault: Vault) -> None:
        of_one = self.run_one(vault, "feedback")
        self.assertIn(self.arguments("feedback")["memory_id"], of_one["ids"])
        self.assertEqual(vault.stats()["feedback"]["wrong"], of_one["count"])
        told = [{"role": "user", "content": "The boiler is from 1998."}]
        vault.ingest(messages=told, metadata={"origin": "program", "run_id": "r-7"}, wait=True)
        of_run = self.run_one(vault, "feedbackOfMany")
        self.assertEqual((of_run["count"], of_run["dry_run"]), (1, True))
        taken_back = self.run_one(vault, "feedbackOfMany", dry_run=False)
        self.assertEqual((taken_back["ids"], taken_back["dry_run"]), (of_run["ids"], False))
        self.assertEqual(vault.stats()["feedback"]["wrong"], of_one["count"] + 1)

    def test_2_model_calls(self) -> None:
        with service.vault("MODEL_KEY") as vault:
            for provider in ("openai", "anthropic", "google"):
                vault.put_provider_key(provider, key="sk-of-theirs")
            self.run_all(
                vault,
                "checkProviderKey models chat responses anthropicMessages generateContent embed"
                " streamGenerateContent drawImages reembed generateContentBeta"
                " streamGenerateContentBeta",
            )
            chats = self.run_one(vault, "listTraces", model="openai/gpt-5-mini")["items"]
            self.made("trace", chats[0]["trace_id"])
            self.assertEqual(self.run_one(vault, "readTrace")["model"], "openai/gpt-5-mini")
            self.assertIsInstance(self.run_one(vault, "speak"), bytes)
            heard = self.run_one(
                vault, "transcribe", model="openai/whisper-1", file=("a.wav", b"RIFF\0\0\0\0WAVE")
            )
            self.assertTrue(heard)
            streamed = vault.chat(
                model="openai/gpt-5-mini", messages=[{"role": "user", "content": "Hi"}], stream=True
            )
            self.assertIn("data: [DONE]", str(streamed))

    def test_3_an_organization_in_the_order_of_a_life(self) -> None:
        with service.vault("ADMIN_KEY") as admin:
            self.made("org", self.run_one(admin, "createOrg")["org_id"])
            member = self.run_one(admin, "createMemberKey")
            self.made("memberKey", member["key_id"])
            self.made("tag", self.run_one(admin, "createTag")["tag_id"])
            self.made("role", self.run_one(admin, "createRole")["role_id"])
            self.made("user", self.run_one(admin, "createUser")["user_id"])
            seeded = self.run_one(admin, "seedMemories")
            self.made("sharedMemory", seeded["mem_id"] if "mem_id" in seeded else seeded["items"][0]["mem_id"])
            self.run_all(
                admin,
                "listOrgs readOrg listMemberKeys readMemberKey listRoles listUsers listTags"
                " orgOverview readInstructions listSharedMemories searchAsMember memoryAudit orgAudit orgUsage reviewQueue"
                " debugPasses memoryHistory listAdminKeys orgPolicy exportOrg changeOrg changeTag"
                " changeRole changeUser assignRoles mintUserKey putInstructions"
                " changeSharedMemory createAdminKey putOrgPolicy redrivePipeline applyTag"
                " createReviewer",
            )
            self.refused(admin, "readTagRun", 404)
            self.refused(admin, "tryText", 400)
            (reviewer,) = self.run_one(admin, "listReviewers")["reviewers"]
            self.run_one(admin, "removeReviewer", reviewer_id=reviewer["reviewer_id"])
            self.directory(admin)
            self.refused(admin, "reviewMemory", 404, 409)
            self.refused(admin, "undoReview", 404, 409)
            self.run_one(admin, "deleteSharedMemory")
            self.run_one(admin, "restoreMemory")
            with Vault(service.BASE_URL, member["memory_key"]) as rosa:
                self.run_all(rosa, "listShared changeSharing")
                self.refused(rosa, "withdrawShared", 404)
            self.run_all(admin, "revokeMemberKey deleteTag deleteRole deleteUser")
            issued = admin.create_admin_key()["id"]
            self.run_one(admin, "revokeAdminKey", admin_key_id=issued)
            self.run_one(admin, "deleteOrg")

    def directory(self, admin: Vault) -> None:
        (grant,) = self.run_one(admin, "putDirectory")["grants"]
        self.assertEqual((grant["group"], grant["reviews"]), ("Finance", True))
        self.assertEqual(self.run_one(admin, "readDirectory")["grants"], [grant])
        token = self.run_one(admin, "createScimToken")
        self.made("scimToken", token["token_id"])
        (listed,) = self.run_one(admin, "listScimTokens")["tokens"]
        self.assertEqual((listed["token_id"], listed["description"]), (token["token_id"], "Okta"))
        self.assertNotIn("token", listed, "shown once")
        self.run_one(admin, "removeScimToken")
        self.assertEqual(self.run_one(admin, "listScimTokens")["tokens"], [])

    def test_4_an_account_and_its_end(self) -> None:
        with service.vault("LEAVING_KEY") as owner:
            self.made("webhook", self.run_one(owner, "createWebhook")["id"])
            self.made("delivery", self.run_one(owner, "testWebhook")["id"])
            self.run_all(
                owner,
                "replayWebhookDelivery accountPolicy putAccountPolicy listWebhooks readWebhook"
                " changeWebhook renewWebhookSecret listWebhookDeliveries deleteWebhook receiptKeys"
                " accountEvents usageReport listAccountUsers listTraces listRecalled",
            )
            self.assertGreater(len(self.run_one(owner, "exportAccount")), 1)
            rotated = self.run_one(owner, "rotateKey")
        with Vault(service.BASE_URL, rotated["key"]) as owner:
            self.made("receipt", self.run_one(owner, "eraseAccount")["receipt_id"])
        with service.vault() as anyone:
            self.run_one(anyone, "readReceipt")

    def test_5_the_operator(self) -> None:
        with service.vault("OPERATOR_KEY") as operator:
            self.made("account", self.run_one(operator, "listTenants")["items"][0]["account_id"])
            self.run_all(operator, "changeTenant serviceUsage listServiceOperations")
            self.made("job", self.run_one(operator, "sendQueueJob")["job_id"])
            self.run_all(operator, "listQueues readQueueHistory listQueueJobs readQueueJob runQueueJobs")
            self.run_all(operator, "cancelQueueJobs deleteQueueJobs")

    def test_6_a_client_that_has_logged_in(self) -> None:
        with service.vault() as vault:
            (client,) = self.run_one(vault, "listApplications")["items"]
            self.assertEqual(client["name"], "Test client")
            ended = self.run_one(vault, "disconnectApplication", application_id=client["id"])
            self.assertEqual(ended["id"], client["id"])
            self.assertEqual(self.run_one(vault, "listApplications")["items"], [])

    def test_7_nothing_is_left_out(self) -> None:
        operations = {service.python_name(name) for name in self.examples["operations"]}
        self.assertEqual(set(OPERATIONS), operations)
        self.assertEqual(operations - called, set(), "each is called in a story above")
