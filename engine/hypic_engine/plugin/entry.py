"""What SGLang calls in each of its processes, before it reads its arguments.

Composes the plugin's objects and installs their hooks. The main process learns its settings from
the command line, its children from the environment; with segment caching off the scheduler gets no
hook at all.
"""

import functools
import multiprocessing
import os
import sys
from pathlib import Path
from typing import Any

from ..errors import SettingsError
from . import cpu, hooks, host, loading, models
from .arguments import Arguments
from .compatibility import BACKEND
from .settings import Settings, from_environment

# SGLang imports this package's modules for more models; one that the user set stays.
MODELS_VARIABLE = "SGLANG_EXTERNAL_MODEL_PACKAGE"


def register() -> None:
    """Entry point ``sglang.srt.plugins``."""
    problem = host.host_problem()
    on_cpu = cpu.wanted()
    if on_cpu and problem is None:
        cpu.prepare()
    if problem is None:
        _add_models()
    process = _Process()
    arguments = Arguments(
        on_cpu=on_cpu,
        host_problem=problem,
        on_read=process.activate if problem is None else _ignore,
    )
    host.install(hooks.for_arguments(arguments))
    if problem is None and _is_child():
        process.activate(from_environment())


def _add_models() -> None:
    """Let SGLang find the models that it does not register itself."""
    from .models import ring_config  # noqa: PLC0415 - SGLang may not be there

    ring_config.register()
    os.environ.setdefault(MODELS_VARIABLE, models.__name__)


def _is_child() -> bool:
    # Not parent_process(): it is still unset while a spawned child unpickles its arguments.
    return multiprocessing.current_process().name != "MainProcess"


def _ignore(settings: Settings) -> None:
    """A host that cannot be extended is left alone."""


class _Process:
    """One process: its hooks are installed once, for every engine that it starts."""

    def __init__(self) -> None:
        self._front: Settings | None = None

    def activate(self, settings: Settings) -> None:
        """Install what these settings need in this process.

        Raises:
            SettingsError: an engine with other settings of the tokenizer was started here before.
        """
        if self._front is not None:
            _refuse_another(self._front, settings)
            return
        self._install_routes(settings)
        if settings.enabled:
            self._front = settings
            _install_front(settings)
        configure = _serve_models
        if settings.caches:
            scheduler = _SchedulerProcess(settings)
            host.register_cache(BACKEND, scheduler.cache)
            configure = scheduler.configure
        elif settings.enabled:
            configure = _receive_prompts
        count = functools.partial(_count_weights, _folder(settings))
        host.install(hooks.for_process(configure, count))

    @staticmethod
    def _install_routes(settings: Settings) -> None:
        from .front.early import Early  # noqa: PLC0415
        from .front.routes import Routes  # noqa: PLC0415

        early = Early(_folder(settings))
        routes = Routes(settings, early)
        host.install(hooks.for_routes(routes, early))
        if _is_child() and _serves_http():
            routes.add()


def _refuse_another(first: Settings, settings: Settings) -> None:
    for flag, one, other in (
        ("--pic-enable", first.enabled, settings.enabled),
        ("--pic-separator-str", first.separator, settings.separator),
        ("--disaggregation-mode", first.role, settings.role),
        ("--pic-max-segments", first.max_segments, settings.max_segments),
    ):
        if one != other:
            raise SettingsError(
                f"{flag} was {one} for an engine that this process started before; "
                f"start one with {other} in another process"
            )


def _serves_http() -> bool:
    return "sglang.srt.entrypoints.http_server" in sys.modules


def _install_front(settings: Settings) -> None:
    from .front.chat import Chat  # noqa: PLC0415
    from .front.frontend import Frontend  # noqa: PLC0415
    from .front.rooms import Rooms  # noqa: PLC0415
    from .front.tokens import Marks  # noqa: PLC0415
    from .front.usage import Usage, open_models  # noqa: PLC0415

    marks, usage = Marks(), Usage()
    host.install(hooks.for_frontend(Frontend(settings, marks), usage, Rooms()))
    if not _is_child() or _serves_http():
        open_models()
        host.install(hooks.for_openai(Chat(separator=settings.separator, marks=marks), usage))


def _folder(settings: Settings) -> Path:
    """The engine's own, which all of its processes share."""
    return Path(settings.control_path).parent


def _count_weights(folder: Path, *scheduler: Any) -> None:
    """In a scheduler process: the first of all ranks tells how far the loading is."""
    _server_args, _gpu_id, tp_rank, *_, pp_rank, dp_rank = scheduler
    if not (tp_rank or pp_rank or dp_rank):
        host.install(hooks.for_loading(loading.Weights(folder)))


def _serve_models(*_: Any) -> None:
    """In a scheduler process: what the models that we add need, with segments or without."""
    host.install(hooks.for_models())


def _receive_prompts(*_: Any) -> None:
    """In a scheduler process of a decode server."""
    from .scheduler import receiving  # noqa: PLC0415 - after SGLang chose its platform
    from .scheduler.metrics import Rest  # noqa: PLC0415

    _serve_models()
    host.install([*hooks.for_receiving(receiving.resolve), *hooks.for_gauges(Rest())])


class _SchedulerProcess:
    """What one scheduler process holds; made when SGLang configures that process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._memory: Any = None

    def configure(self, server_args: Any, gpu_id: int, tp_rank: int, *args: Any) -> None:
        """Before ``configure_scheduler_process``: install the scheduler's hooks."""
        _serve_models()
        from .control import ControlServer  # noqa: PLC0415
        from .runner.forward import Forward  # noqa: PLC0415
        from .runner.memory import Memory  # noqa: PLC0415
        from .scheduler.answers import Answers  # noqa: PLC0415
        from .scheduler.batching import Batching  # noqa: PLC0415
        from .scheduler.metrics import Rest  # noqa: PLC0415
        from .scheduler.scheduling import Scheduling  # noqa: PLC0415
        from .scheduler.sending import Sending  # noqa: PLC0415

        self._memory = Memory(self._settings)
        answers = Answers()
        batching = Batching(self._settings, answers)
        scheduling = Scheduling(self._settings, batching)
        forward = Forward(self._settings, self._memory)
        made = hooks.for_scheduler(scheduling, batching, answers, forward, self._memory)
        # In one go: what SGLang has patched once, it does not patch again.
        host.install([*made, *hooks.for_gauges(Rest())])
        if self._settings.role == "prefill":
            host.install(hooks.for_sending(Sending()))
        if tp_rank == 0:
            path = self._settings.control_path
            ControlServer(path, self._memory.ledger, scheduling.describe_engine).start()

    def cache(self, context: Any) -> Any:
        """Factory of our ``--radix-cache-backend``."""
        from .scheduler import ownership  # noqa: PLC0415 - after SGLang chose its platform
        from .scheduler.cache import SegmentCache  # noqa: PLC0415
        from .scheduler.metrics import Metrics  # noqa: PLC0415
        from .scheduler.prefixes import Prefixes  # noqa: PLC0415
        from .scheduler.reader import Reader  # noqa: PLC0415
        from .scheduler.store import Store  # noqa: PLC0415

        args, memory = context.server_args, self._memory
        metrics = Metrics(enabled=args.enable_metrics and context.tp_rank == 0)
        revision = f"{args.model_path}@{args.revision or ''}#{args.weight_version}"
        reader = Reader(self._settings, model=revision)
        allocator = context.params.token_to_kv_pool_allocator
        store = Store(allocator, pool=memory.pool, ledger=memory.ledger, metrics=metrics)
        prefixes = Prefixes.of(context, token_bytes=store.token_bytes)
        cache = SegmentCache(
            context.params,
            store=store,
            prefixes=prefixes,
            reader=reader,
            ledger=memory.ledger,
            metrics=metrics,
        )
        if self._settings.check_ownership:
            cache.after_change = functools.partial(ownership.check, cache)
        return cache
