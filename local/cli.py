"""The commands of ``python3 -m local``; each is one call into a module that does the work."""

import argparse
import sys
from collections.abc import Callable, Sequence

from . import settings as settings_module
from . import toolchain
from .cluster import down as down_module
from .cluster import existing, status
from .cluster import up as up_module
from .demo import run as demo_run
from .errors import LocalError, RefusedError
from .images import build, load, tag
from .settings import Settings
from .storage import engine_env, model, publish

Command = Callable[[Settings, argparse.Namespace], int]


def _up(settings: Settings, _: argparse.Namespace) -> int:
    if settings.existing_kubeconfig is not None:
        existing.require_reachable(settings)
    else:
        up_module.up(settings)
    return 0


def _down(settings: Settings, _: argparse.Namespace) -> int:
    if settings.existing_kubeconfig is not None:
        raise RefusedError(
            f"{settings.existing_kubeconfig} was not made here and stays as it is; unset "
            "KUBECONFIG to end the cluster of this machine"
        )
    down_module.down(settings)
    return 0


def _status(settings: Settings, _: argparse.Namespace) -> int:
    print(status.show(settings))
    return 0


def _load(settings: Settings, arguments: argparse.Namespace) -> int:
    print("\n".join(load.load(settings, arguments.image)))
    return 0


def _images(settings: Settings, _: argparse.Namespace) -> int:
    print("\n".join(build.images(settings)))
    return 0


def _tag(settings: Settings, _: argparse.Namespace) -> int:
    print(tag.tag(settings.repository))
    return 0


def _kubeconfig(settings: Settings, _: argparse.Namespace) -> int:
    if not settings.kubeconfig.exists():
        raise RefusedError("no cluster yet: run `python3 -m local up` first")
    print(settings.kubeconfig)
    return 0


def _tool(settings: Settings, arguments: argparse.Namespace) -> int:
    print(toolchain.program(settings, arguments.name))
    return 0


def _engine_python(settings: Settings, _: argparse.Namespace) -> int:
    print(engine_env.python(settings))
    return 0


def _model(settings: Settings, _: argparse.Namespace) -> int:
    print(model.path(settings))
    return 0


def _publish(settings: Settings, arguments: argparse.Namespace) -> int:
    print("\n".join(publish.publish(settings, arguments.namespace)))
    return 0


def _demo(settings: Settings, arguments: argparse.Namespace) -> int:
    return demo_run.main(settings, arguments.words)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(
        prog="python3 -m local", description="A real Kubernetes on one machine."
    )
    top.add_argument(
        "--kubeconfig",
        help="use the cluster of this file instead of making one (so does KUBECONFIG)",
    )
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, run: Command, text: str) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(run=run)
        return command

    add("up", _up, "make the cluster run; repairs what died; again is harmless")
    add("down", _down, "end the cluster and remove its traces; caches stay")
    add("status", _status, "parts, node, images, caches")
    image = add("load", _load, "bring an image archive, or an image of Docker, into the node")
    image.add_argument("image", metavar="IMAGE")
    add("images", _images, "build the three images and bring them into the node")
    add("tag", _tag, "print the tag that the sources of the images have")
    add("kubeconfig", _kubeconfig, "print the path of the kubeconfig in use")
    tool = add("tool", _tool, "print the path of a program, built or installed when missing")
    tool.add_argument("name", metavar="NAME")
    add("engine-python", _engine_python, "print the path of the engine's Python, made when missing")
    add("model", _model, "print the path of the tiny model, made when missing")
    demo = add("demo", _demo, "the whole path: cluster, images, charts, engines, a table")
    demo.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    claims = add("publish", _publish, "give a namespace claims on environment and models")
    claims.add_argument("namespace", metavar="NAMESPACE")
    return top


def main(argv: Sequence[str]) -> int:
    """Run one command; errors of this tool are one message and status 1."""
    arguments = parser().parse_args(argv)
    try:
        settings = settings_module.load(kubeconfig=arguments.kubeconfig)
        result: int = arguments.run(settings, arguments)
    except LocalError as error:
        print(f"local: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("local: interrupted; the same command goes on where it was", file=sys.stderr)
        return 130
    return result
