from local.machine import host


def test_name_servers_are_read_and_other_lines_are_not() -> None:
    text = "# nameserver 192.0.2.1\nnameserver 192.0.2.2\nsearch x\nnameserver fe80::1\n"
    assert host.parse_nameservers(text) == ("192.0.2.2",)
