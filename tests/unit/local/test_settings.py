from pathlib import Path

from local import settings


def test_the_cache_is_where_the_environment_says() -> None:
    assert settings.load(environ={"HYPIC_CACHE": "/c"}).state == Path("/c/cluster")


def test_a_kubeconfig_of_others_is_an_existing_cluster() -> None:
    loaded = settings.load(environ={"HYPIC_CACHE": "/c", "KUBECONFIG": "/home/me/kind:/second"})
    assert loaded.existing_kubeconfig == loaded.kubeconfig == Path("/home/me/kind")


def test_our_own_kubeconfig_is_not() -> None:
    own = "/c/cluster/config/admin.kubeconfig"
    loaded = settings.load(environ={"HYPIC_CACHE": "/c", "KUBECONFIG": own})
    assert loaded.existing_kubeconfig is None
    assert loaded.kubeconfig == Path(own)


def test_the_flag_wins_over_the_environment() -> None:
    loaded = settings.load(kubeconfig="/flag", environ={"KUBECONFIG": "/environment"})
    assert loaded.existing_kubeconfig == Path("/flag")


def test_two_caches_never_share_a_control_group() -> None:
    groups = {settings.Settings(cache=Path(cache)).cgroup for cache in ("/a", "/b")}
    assert len(groups) == 2


def test_parts_get_no_secrets_of_the_environment() -> None:
    loaded = settings.load(environ={"TOKEN": "secret", "HTTPS_PROXY": "http://p", "HOME": "/h"})
    assert set(loaded.environment) == {"PATH", "HOME", "HTTPS_PROXY"}
