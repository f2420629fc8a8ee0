"""The front: which routes there are, who may use them, and what a failure becomes.

Does not choose engines and does not speak to them; how HTTP is served is in `wire`.
"""

import json
import logging
import re
import secrets
import time
from collections.abc import Mapping

from hypic_engine.errors import RequestError

from . import errors, standing
from .asking.relay import Tools
from .call import Call
from .core.choose import candidates
from .core.cut import NoPromptError
from .core.prompt import Endpoint, Prompt, UnknownModelError
from .errors import RouterError
from .guard import Guard
from .guard.refusals import NOTHING_DONE
from .guard.running import Running
from .guard.waiting import Waiting
from .parsing import Parser
from .proxy import Proxy
from .settings import Settings
from .standing import Route, Standing
from .tracing import Tracing, answered
from .wire.bodies import Bodies
from .wire.request import Request
from .wire.server import Connection

REQUEST_ID = re.compile(r"[\x21-\x7e]{1,128}")
CLIENT_LEFT = 499
MODELS = "/v1/models"
# Passed on as they are to any engine: nothing in them makes one engine better than another.
ERRANDS = ("/tokenize", "/detokenize", "/v1/tokenize", "/v1/detokenize", "/v1/embeddings")
ERRAND = Prompt(output_tokens=0, generates=False)

log = logging.getLogger(__name__)


class Front:
    """The port that clients use."""

    def __init__(
        self,
        settings: Settings,
        tools: Tools,
        proxy: Proxy,
        running: Running,
        bodies: Bodies,
        parser: Parser,
        guard: Guard,
        tracing: Tracing,
    ) -> None:
        self._settings = settings
        self._tools = tools
        self._proxy = proxy
        self._running = running
        self._bodies = bodies
        self._parser = parser
        self._guard = guard
        self._tracing = tracing
        generating = {str(endpoint): {"POST": self._generate} for endpoint in Endpoint}
        errands = {path: {"POST": self._errand} for path in ERRANDS}
        self._routes: Mapping[str, Mapping[str, Route]] = {
            **generating,
            **errands,
            MODELS: {"GET": self._models},
            **Standing(settings.names.model, tools, running).routes,
        }

    async def serve(self, connection: Connection) -> None:
        """Answers one request, whatever happens."""
        connection.cors = self._settings.cors_origins
        connection.request_id = _request_id(connection.request)
        connection.closing = self._running.leaving
        self._running.count += 1
        self._running.idle.clear()
        code, request = CLIENT_LEFT, connection.request
        route = request.path if request.path in self._routes else "other"
        try:
            with self._tracing.request(request.method, route, list(request.headers.items())):
                code = await self._answer(connection)
                answered(code)
        finally:
            self._running.count -= 1
            if self._running.count == 0:
                self._running.idle.set()
            self._tools.metrics.requests.labels(str(code)).inc()

    async def _answer(self, connection: Connection) -> int:
        try:
            return await self._routed(connection)
        except UnknownModelError as error:
            return await self._refuse(connection, errors.ModelError(str(error), param=error.field))
        except RequestError as error:
            return await self._refuse(
                connection, errors.BadRequestError(str(error), param=error.field)
            )
        except RouterError as error:
            return await self._refuse(connection, error)
        except ConnectionError:
            raise
        except Exception:
            log.exception("Request failed", extra={"request_id": connection.request_id})
            if connection.begun:
                raise ConnectionAbortedError from None
            return await self._refuse(
                connection, RouterError("the router failed; its log says why")
            )

    async def _refuse(self, connection: Connection, error: RouterError) -> int:
        self._note(connection, error)
        return await connection.send_json(error.status, error.body, error.headers)

    def _note(self, connection: Connection, error: RouterError) -> None:
        """Counts and logs what the client hears."""
        self._tools.metrics.errors.labels(error.code).inc()
        log.info(
            "Refused a request",
            extra={
                "status": error.status,
                "reason": error.code,
                "param": error.param,
                "request_id": connection.request_id,
            },
        )

    async def _routed(self, connection: Connection) -> int:
        request = connection.request
        methods = self._routes.get(request.path) or self._below(request.path)
        if methods is None:
            raise errors.NotFoundError(f"there is no {request.path[:200]} here")
        allow = ", ".join(sorted({*methods, "OPTIONS", *(["HEAD"] if "GET" in methods else [])}))
        if request.method == "OPTIONS":
            return await connection.send_options(allow)
        if request.path not in standing.PATHS:
            self._guard.check(request.headers.get("authorization", ""))
        method = "GET" if request.method == "HEAD" else request.method
        route = methods.get(method)
        if route is None:
            raise errors.MethodNotAllowedError(
                f"{request.path} does not take {request.method[:20]}; it takes {allow}", allow=allow
            )
        return await route(connection)

    def _below(self, path: str) -> Mapping[str, Route] | None:
        """Routes of paths that hold a name."""
        one_model = path.startswith(f"{MODELS}/") and not {"", ".", ".."} & set(path[4:].split("/"))
        return {"GET": self._errand} if one_model else None

    async def _generate(self, connection: Connection) -> int:
        endpoint = Endpoint(connection.request.path)
        async with self._bodies.read(connection.request) as body:
            wanted = await self._prompt(endpoint, body)
            call = self._call(connection, "POST", body)
            waiting = Waiting(connection, stream=wanted.stream)
            try:
                return await self._when_let(call, wanted, waiting)
            except RouterError as error:
                if not waiting.begun:
                    raise
                self._note(connection, error)
                return await waiting.fail(error)

    async def _when_let(self, call: Call, wanted: Prompt, waiting: Waiting) -> int:
        """Serves a request once it may go to the engines, again where they fell asleep."""
        admission = self._guard.admission
        while True:
            await admission.engine(waiting)
            try:
                async with admission.slot(waiting):
                    return await self._proxy.serve(call, wanted, waiting)
            except NOTHING_DONE:
                if not admission.asleep:
                    raise

    async def _prompt(self, endpoint: Endpoint, body: bytes) -> Prompt:
        """What the body asks for; one that asks for nothing is an engine's to refuse, if any is."""
        try:
            return await self._parser.prompt(endpoint, body, self._settings.names)
        except NoPromptError:
            if not candidates(self._tools.store.snapshot, (), time.monotonic()):
                raise
            return Prompt()

    async def _errand(self, connection: Connection) -> int:
        method = "GET" if connection.request.method == "HEAD" else connection.request.method
        async with self._bodies.read(connection.request) as body:
            return await self._proxy.serve(self._call(connection, method, body), ERRAND, connection)

    def _call(self, connection: Connection, method: str, body: bytes) -> Call:
        request = connection.request
        return Call(
            method=method,
            target=request.target,
            headers=self._tracing.for_engine(
                self._guard.without_key(list(request.headers.items()))
            ),
            body=body,
            request_id=connection.request_id,
            received_s=connection.received_s,
            explain=request.headers.get("x-hypic-explain") == "1",
        )

    async def _models(self, connection: Connection) -> int:
        """An engine's own list; ours while there is no engine, so that clients find the model."""
        try:
            return await self._errand(connection)
        except (errors.NoEngineError, errors.EngineError):
            name = self._settings.names.model
            model = {"id": name, "object": "model", "created": 0, "owned_by": "hypic", "root": name}
            body = json.dumps({"object": "list", "data": [model]}).encode()
            return await connection.send_json(200, body)


def _request_id(request: Request) -> str:
    given = request.headers.get("x-request-id", "")
    return given if REQUEST_ID.fullmatch(given) else secrets.token_hex(16)
