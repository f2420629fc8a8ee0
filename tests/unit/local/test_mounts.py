from local.machine import mounts

MOUNTINFO = """22 1 254:0 / / rw - ext4 /dev/vda rw
30 22 254:0 /a /c/cluster/kubelet rw - ext4 /dev/vda rw
31 30 0:50 / /c/cluster/kubelet/pods/1/token rw - tmpfs tmpfs rw
32 22 0:51 / /c/cluster-other rw - tmpfs tmpfs rw
33 22 0:52 / /c/cluster/with\\040space rw - tmpfs tmpfs rw
"""


def test_mounts_below_a_folder_come_last_first() -> None:
    assert mounts.parse(MOUNTINFO, "/c/cluster") == [
        "/c/cluster/with space",
        "/c/cluster/kubelet/pods/1/token",
        "/c/cluster/kubelet",
    ]


def test_a_folder_that_only_starts_alike_is_another() -> None:
    assert "/c/cluster-other" not in mounts.parse(MOUNTINFO, "/c/cluster")
