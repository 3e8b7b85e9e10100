from typing import Any

from dify_plugin import ToolProvider
from dify_plugin.errors.tool import ToolProviderCredentialValidationError

from vault import Refused, call


class MemoryVaultProvider(ToolProvider):
    """Checks the credentials without opening a vault of a person."""

    def _validate_credentials(self, credentials: dict[str, Any]) -> None:
        try:
            call(credentials, "GET", "/v1/memory/stats")
        except Refused as refused:
            # A key that names users answers so: it asks for whom.
            if refused.status == 400 and not credentials.get("shared"):
                return
            if refused.status == 400:
                raise ToolProviderCredentialValidationError("This key names users: do not tick Shared") from refused
            raise ToolProviderCredentialValidationError(str(refused)) from refused
        if not credentials.get("shared"):
            raise ToolProviderCredentialValidationError(
                'This key opens one vault for all: make one with the rights "users", or tick Shared'
            )
