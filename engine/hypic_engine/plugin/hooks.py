"""Every place where this plugin touches SGLang, in one table; `host` makes them take.

Checked on the version that `host` names.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .host import Hook
from .models import lightning

if TYPE_CHECKING:
    from .arguments import Arguments
    from .front.chat import Chat
    from .front.early import Early
    from .front.frontend import Frontend
    from .front.rooms import Rooms
    from .front.routes import Routes
    from .front.usage import Usage
    from .loading import Weights
    from .runner.forward import Forward
    from .runner.memory import Memory
    from .scheduler.answers import Answers
    from .scheduler.batching import Batching
    from .scheduler.metrics import Rest
    from .scheduler.scheduling import Scheduling
    from .scheduler.sending import Sending


def for_arguments(arguments: "Arguments") -> list[Hook]:
    """In every process that parses a command line."""
    return [
        Hook("server_args.ServerArgs.add_cli_args", "AFTER", arguments.add, "our flags"),
        Hook("server_args.ServerArgs.from_cli_args", "AROUND", arguments.read, "checks, presets"),
    ]


def for_routes(routes: "Routes", early: "Early") -> list[Hook]:
    """In the HTTP process, whether segments are cached or not."""
    server = "entrypoints.http_server."
    return [
        Hook(f"{server}launch_server", "BEFORE", early.open, "how far the loading is"),
        Hook(f"{server}_setup_and_run_http_server", "BEFORE", early.leave, "its address"),
        Hook(f"{server}_setup_and_run_http_server", "BEFORE", routes.add, "routes under /pic"),
        Hook("utils.auth.decide_request_auth", "AROUND", routes.admit, "probes without a key"),
    ]


def for_frontend(frontend: "Frontend", usage: "Usage", rooms: "Rooms") -> list[Hook]:
    """In the tokenizer process."""
    manager = "managers.tokenizer_manager.TokenizerManager."
    return [
        Hook(f"{manager}__init__", "AFTER", frontend.learn, "the tokenizer cuts"),
        Hook(
            "managers.io_struct.GenerateReqInput.normalize_batch_and_arguments",
            "BEFORE",
            frontend.admit,
            "limits of a request",
        ),
        Hook(f"{manager}_tokenize_one_request", "BEFORE", frontend.enter, "whose text it is"),
        Hook(f"{manager}_create_tokenized_object", "BEFORE", frontend.cut, "ends and digests"),
        Hook(f"{manager}_create_tokenized_object", "AFTER", rooms.number, "rooms of n > 1"),
        Hook(f"{manager}_send_one_request", "BEFORE", rooms.assign, "rooms of n > 1"),
        Hook(f"{manager}_wait_one_response", "AROUND", usage.lift, "meta_info.pic"),
        Hook(f"{manager}_send_one_request", "BEFORE", frontend.note, "ids of n > 1"),
        Hook(f"{manager}_handle_batch_request", "AROUND", frontend.forget, "end of n > 1"),
    ]


def for_openai(chat: "Chat", usage: "Usage") -> list[Hook]:
    """In processes that serve OpenAI's endpoints."""
    openai = "entrypoints.openai."
    processor = f"{openai}usage_processor.UsageProcessor."
    return [
        Hook(
            f"{openai}serving_base.OpenAIServingBase.handle_request",
            "AROUND",
            chat.handle,
            "marked parts",
        ),
        Hook(f"{processor}calculate_response_usage", "AFTER", usage.of_answer, "usage.pic"),
        Hook(f"{processor}calculate_streaming_usage", "AFTER", usage.of_stream, "usage.pic"),
    ]


def for_process(configure: Callable[..., Any], count: Callable[..., Any]) -> list[Hook]:
    """In each scheduler process, before SGLang configures it."""
    target = "managers.scheduler.configure_scheduler_process"
    return [
        Hook(target, "BEFORE", configure, "install the scheduler's hooks"),
        Hook(target, "BEFORE", count, "install those of the loader"),
    ]


def for_loading(weights: "Weights") -> list[Hook]:
    """In the scheduler process of the first rank."""
    loader = "model_loader.loader.DefaultModelLoader."
    return [
        Hook(f"{loader}_prepare_weights", "AFTER", weights.learn, "how much there is"),
        Hook(f"{loader}_get_weights_iterator", "AROUND", weights.count, "how much is read"),
    ]


def for_models() -> list[Hook]:
    """In each scheduler process, whether it caches segments or not."""
    pools = "mem_cache.memory_pool."
    states = f"{pools}MambaPool."
    values = f"{pools}HybridLinearKVPool.get_value_buffer"
    return [
        Hook(values, "AROUND", lightning.value_buffer, "Triton measures layer 0"),
        Hook(f"{states}get_contiguous_buf_infos", "AFTER", lightning.state_buffers, "no tails"),
        Hook(f"{states}get_state_dim_per_tensor", "AFTER", lightning.state_dims, "no tails"),
    ]


def for_scheduler(
    scheduling: "Scheduling",
    batching: "Batching",
    answers: "Answers",
    forward: "Forward",
    memory: "Memory",
) -> list[Hook]:
    """In each scheduler process, only when segments are cached."""
    scheduler = "managers.scheduler.Scheduler."
    streamer = "managers.scheduler_components.output_streamer.SchedulerOutputStreamer."
    kv = "model_executor.model_runner_kv_cache_mixin.ModelRunnerKVCacheMixin."
    runner = "model_executor.model_runner.ModelRunner."
    graph = "model_executor.runner.prefill_cuda_graph_runner.PrefillCudaGraphRunner."
    return [
        Hook(f"{scheduler}__init__", "AFTER", scheduling.attach, "know the scheduler"),
        Hook(f"{scheduler}_add_request_to_queue", "AROUND", scheduling.enqueue, "never fits: 400"),
        Hook(f"{scheduler}_abort_on_queued_limit", "AROUND", scheduling.limit, "fills not counted"),
        Hook(f"{scheduler}process_input_requests", "AFTER", scheduling.sweep, "aborted waiters"),
        Hook(
            "managers.scheduler_components.weight_updater.SchedulerWeightUpdaterManager."
            "flush_cache_after_weight_update",
            "AFTER",
            scheduling.weights_changed,
            "entries of old weights",
        ),
        Hook(
            "managers.schedule_policy.PrefillAdder.add_one_req",
            "AROUND",
            scheduling.admit,
            "wait for fills, count moved copies",
        ),
        Hook("mem_cache.common.alloc_for_extend", "AROUND", batching.allocate, "scattered rows"),
        Hook(
            "mem_cache.common.evict_from_tree_cache",
            "REPLACE",
            batching.make_room,
            "evict what is missing, not what is needed",
        ),
        Hook(
            "managers.schedule_batch.ScheduleBatch.prepare_for_extend",
            "AFTER",
            batching.prepared,
            "scattered tokens, the plan",
        ),
        Hook(f"{streamer}stream_output", "AROUND", answers.stream, "fills have no client"),
        Hook(f"{streamer}get_cached_tokens_details", "AFTER", answers.describe, "our details"),
        Hook(f"{kv}handle_max_mamba_cache", "AROUND", memory.share, "memory for operators"),
        Hook(f"{kv}init_memory_pool", "AFTER", memory.allocate, "the operator pool"),
        Hook(
            "model_executor.forward_batch_info.ForwardBatch.init_new",
            "AFTER",
            forward.position,
            "true positions",
        ),
        Hook(f"{runner}_forward_raw", "AROUND", forward.run, "carry the plan"),
        Hook(f"{graph}can_run_graph", "AROUND", forward.eager, "planned batches run eagerly"),
        Hook(
            "layers.attention.attention_registry.attn_backend_wrapper",
            "AFTER",
            forward.wrap,
            "the hybrid backend",
        ),
    ]


def for_sending(sending: "Sending") -> list[Hook]:
    """In each scheduler process of a prefill server."""
    manager = "disaggregation.mooncake.conn.MooncakeKVManager."
    return [
        Hook(
            "disaggregation.prefill.SchedulerDisaggregationPrefillMixin.send_kv_chunk",
            "AROUND",
            sending.send,
            "fills go nowhere",
        ),
        Hook(f"{manager}maybe_send_extra", "AROUND", sending.send_state, "its outcome is dropped"),
        Hook(f"{manager}send_aux", "AROUND", sending.send_rest, "fail what has no state"),
    ]


def for_gauges(rest: "Rest") -> list[Hook]:
    """In each scheduler process of an engine that takes part in segment caching."""
    scheduler = "managers.scheduler.Scheduler."
    return [
        Hook(f"{scheduler}process_input_requests", "AFTER", rest.received, "work has come"),
        Hook(f"{scheduler}on_idle", "BEFORE", rest.settle, "gauges of an idle engine"),
    ]


def for_receiving(resolve: Callable[..., Any]) -> list[Hook]:
    """In each scheduler process of a decode server."""
    queue = "disaggregation.decode.DecodePreallocQueue."
    return [Hook(f"{queue}_resolve_pending_reqs", "AROUND", resolve, "who was given up is kept")]
