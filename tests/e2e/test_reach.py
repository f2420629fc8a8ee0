"""Story: from a machine that has no route to the cluster's addresses, kubectl forwards a port."""

from local.demo.ask import get_json
from local.demo.install import NAME
from local.demo.reach import forwarded, opens


def test_a_forwarded_port_leads_to_the_service_and_closes_with_it(demo_kubectl):
    with forwarded(demo_kubectl, f"service/{NAME}", 80) as address:
        assert get_json(f"http://{address}", "/health") == {"status": "ok"}
    host, port = address.split(":")
    assert not opens(host, int(port))
