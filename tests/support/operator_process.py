"""The operator as a process of its own with a front door that always answers: to be killed.

    python -m tests.support.operator_process KUBECONFIG NAMESPACE LEASE

Its Lease is given up and taken over in seconds, so that a test need not wait for long.
"""

import asyncio
import sys

from prometheus_client import CollectorRegistry

from hypic_operator import __main__ as operator_main
from hypic_operator.core import lease
from hypic_operator.metrics import Metrics
from hypic_operator.settings import Settings

from . import resources
from .playing import PlayedProber


def main(kubeconfig: str, namespace: str, named: str) -> None:
    lease.DURATION_S, lease.RENEW_EVERY_S, lease.RENEW_WITHIN_S = 3.0, 0.5, 2.0
    settings = Settings(
        resources.POLICY,
        namespaces=(namespace,),
        lease=named,
        metrics_port=0,
        health_port=0,
        kubeconfig=kubeconfig,
    )
    asyncio.run(operator_main.run(settings, Metrics(CollectorRegistry()), prober=PlayedProber()))


if __name__ == "__main__":
    main(*sys.argv[1:])
