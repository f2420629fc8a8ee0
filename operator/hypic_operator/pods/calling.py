"""One short HTTP request to a pod; one that fails is an answer that did not come.

Does not know what pods say.
"""

from typing import Any

import aiohttp

from ..core.pods import Pod

ANSWER_WITHIN_S = 2.0


class Caller:
    """Sends requests to pods by their addresses.

    Args:
        session: what it sends with.
    """

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def ask(
        self, pod: Pod, port: int, path: str, *, verb: str = "GET", body: Any = None, also: int = 0
    ) -> str | None:
        """The text of a good answer; None for any other, and for none in time.

        Args:
            pod: whom is asked.
            port: where.
            path: what for.
            verb: how.
            body: of the request, as JSON.
            also: a status that is a good answer too.
        """
        host = f"[{pod.address}]" if ":" in pod.address else pod.address
        timeout = aiohttp.ClientTimeout(total=ANSWER_WITHIN_S)
        try:
            async with self._session.request(
                verb,
                f"http://{host}:{port}{path}",
                json=body,
                timeout=timeout,
            ) as answer:
                return await answer.text() if answer.ok or answer.status == also else None
        except (aiohttp.ClientError, TimeoutError, OSError, UnicodeDecodeError):
            return None
