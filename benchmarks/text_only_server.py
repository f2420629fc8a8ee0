"""Stock SGLang without its multimodal processor, which a model of random weights does not have.

python benchmarks/text_only_server.py --model-path MODEL ...   # flags of sglang.launch_server
"""

import argparse
import sys

from sglang.launch_server import run_server
from sglang.srt.server_args import ServerArgs, prepare_server_args

if __name__ == "__main__":
    read = ServerArgs.from_cli_args.__func__

    def text_only(cls: type[ServerArgs], arguments: argparse.Namespace) -> ServerArgs:
        arguments.enable_multimodal = False
        return read(cls, arguments)

    ServerArgs.from_cli_args = classmethod(text_only)
    run_server(prepare_server_args(sys.argv[1:]))
