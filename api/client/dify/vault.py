"""Calls of the service, for the tools of this plug-in."""

from typing import Any, Optional

import httpx

TIMEOUT_S = 15


class Refused(Exception):
    """A refusal in the words of the service; status 0 where it could not be reached."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


def person_of(tool: Any, parameters: dict[str, Any]) -> Optional[str]:
    """The person whose vault is opened: the one that the app names, else the one of Dify; none for a shared vault."""
    if tool.runtime.credentials.get("shared"):
        return None
    person = str(parameters.get("person") or tool.runtime.user_id or "").strip()
    if not person:
        raise Refused(0, "Dify names no person here, so that nobody is remembered: fill in Person")
    return person


def call(
    credentials: dict[str, Any], method: str, path: str, body: Optional[dict] = None, person: Optional[str] = None
) -> dict[str, Any]:
    """Makes a call for a person. Raises Refused."""
    headers = {"Authorization": f"Bearer {credentials.get('key', '')}"}
    if person is not None:
        headers["X-Memory-User"] = person
    url = str(credentials.get("url", "")).rstrip("/") + path
    try:
        response = httpx.request(method, url, json=body, headers=headers, timeout=TIMEOUT_S)
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeEncodeError) as error:
        raise Refused(0, f"Memory Vault cannot be reached: {error}") from error
    if response.is_error:
        raise Refused(response.status_code, _words(response))
    return response.json()


def _words(response: httpx.Response) -> str:
    try:
        said = response.json()
        return ". ".join(str(said[name]) for name in ("error", "hint") if said.get(name))
    except ValueError:
        return f"Memory Vault answered {response.status_code}"
