"""What the operator's keys for front doors are made of, kept in a Secret over its restarts.

Reads and writes this one Secret and no other; does not know what the keys open.
"""

import base64
import logging
import secrets
from http import HTTPStatus

from .connection import MERGE, Connection, done

logger = logging.getLogger(__name__)

_FIELD = "secret"
_N_BYTES = 32


async def kept(connection: Connection, place: str) -> str:
    """What is in the Secret; in an empty one something new is put first.

    Args:
        connection: how the API server is reached.
        place: namespace/name of the Secret.

    Returns:
        The same every time; empty when there is no such Secret, or no right to it.

    Raises:
        UnavailableError: it cannot be read or written now.
    """
    namespace, name = place.split("/")
    path = f"/api/v1/namespaces/{namespace}/secrets/{name}"
    while True:
        status, body = await connection.answer("GET", path)
        if status in {HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN}:
            words = "Secret %s: status %d, so routers that ask for keys will refuse the operator"
            logger.warning(words, place, status)
            return ""
        found = (done(status, body).get("data") or {}).get(_FIELD)
        if found:
            return base64.b64decode(found).decode()
        # With the version, of two operators that start at once only one puts something in.
        version = {"resourceVersion": body["metadata"]["resourceVersion"]}
        fresh = base64.b64encode(secrets.token_hex(_N_BYTES).encode()).decode()
        patch = {"metadata": version, "data": {_FIELD: fresh}}
        status, body = await connection.answer("PATCH", path, patch, content_type=MERGE)
        if status != HTTPStatus.CONFLICT:
            done(status, body)
