"""Which addresses and URLs webhooks are posted to."""

from ipaddress import ip_address

import pytest

from adapters.http import is_local, is_public
from workflows.shared.webhook_addresses import InvalidReceiver, check_receiver, host_of, shown


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.8.8",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "100.64.0.1",
        "100.100.100.200",
        "169.254.169.254",
        "168.63.129.16",
        "192.0.0.192",
        "198.18.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::127.0.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b:1::1",
        "2002:7f00:1::1",
        "2002:a00:1::1",
        "2001:0:4136:e378::1",
        "2001:db8::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fe80::1%eth0",
        "ff02::1",
    ],
)
def test_an_address_that_is_not_of_the_public_internet_is_refused(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        "8.8.8.8",
        "172.32.0.1",
        "100.128.0.1",
        "2606:4700::1111",
        "::ffff:8.8.8.8",
        "2002:808:808::1",
    ],
)
def test_a_public_address_is_permitted(address: str) -> None:
    assert is_public(ip_address(address))


def test_only_loopback_is_local() -> None:
    local = ("127.0.0.1", "::1", "::ffff:127.0.0.1")
    assert all(is_local(ip_address(each)) for each in local)
    assert not any(is_local(ip_address(each)) for each in ("10.0.0.1", "169.254.169.254", "::2"))


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("ftp://hidden.example.org/", "must begin with https"),
        ("http://hidden.example.org/", "must begin with https"),
        ("https://user:hidden@example.org/", "must not hold a user or password"),
        ("https:///hidden", "is not a URL"),
        ("https://hidden.example.org:99999/", "is not a URL"),
        ("https://hidden.example.org/a b", "is not a URL"),
        ("https://hidden.example.org/\r\nX: y", "is not a URL"),
        ("https://[hidden", "is not a URL"),
        ("https://hidden.example.org/" + 3000 * "a", "is not a URL"),
    ],
)
def test_a_url_that_nothing_is_posted_to(url: str, problem: str) -> None:
    with pytest.raises(InvalidReceiver, match=problem) as refusal:
        check_receiver(url, (), local=False)
    assert "hidden" not in str(refusal.value)


def test_a_list_of_hosts_admits_those_that_it_names() -> None:
    listed = ("hooks.example.org", "*.example.com")
    for url in (
        "https://HOOKS.example.org/x",
        "https://a.b.example.com",
        "https://hooks.example.org.",
    ):
        assert check_receiver(url, listed, local=False) == url
    for url in (
        "https://example.com/",
        "https://hooks.example.org.evil.net",
        "https://badexample.com",
    ):
        with pytest.raises(InvalidReceiver, match="DOCFLOW_WEBHOOK_HOSTS"):
            check_receiver(url, listed, local=False)


def test_what_may_be_a_token_in_a_url_is_not_shown() -> None:
    assert shown("https://a.org:8/hook?token=s3cret") == "https://a.org:8/hook?..."
    assert host_of("https://A.org:8/hook?x") == "a.org:8"
