"""Runs the tests against the service at BASE_URL and prints one line of JSON for each of them."""

from __future__ import annotations

import json
import logging
import sys
import unittest
from typing import Any


class Outcomes(unittest.TestResult):
    def _write(self, test: Any, outcome: str, text: str = "") -> None:
        # A fault before the first test of a class has no method.
        name = str(getattr(test, "_testMethodName", test)).replace("test_", "").replace("_", " ")
        print(json.dumps({"test": name, "outcome": outcome, "text": text}), flush=True)

    def addSuccess(self, test: Any) -> None:
        self._write(test, "passed")

    def addFailure(self, test: Any, err: Any) -> None:
        super().addFailure(test, err)
        self._write(test, "failed", self.failures[-1][1])

    def addError(self, test: Any, err: Any) -> None:
        super().addError(test, err)
        self._write(test, "failed", self.errors[-1][1])

    def addSkip(self, test: Any, reason: str) -> None:
        super().addSkip(test, reason)
        self._write(test, "skipped", reason)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        super().addSubTest(test, subtest, err)
        if err is not None:
            self._write(test, "failed", f"{subtest}: {err[1]!r}")


# It would tell of every slow step, on a busy machine of all.
logging.getLogger("asyncio").setLevel(logging.ERROR)
suite = unittest.defaultTestLoader.loadTestsFromNames(sys.argv[1:])
print(json.dumps({"count": suite.countTestCases(), "python": sys.version.split()[0]}), flush=True)
sys.exit(0 if suite.run(Outcomes()).wasSuccessful() else 1)
