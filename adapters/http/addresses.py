"""Which addresses a message may be sent to, when others name the host."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

IPAddress = IPv4Address | IPv6Address

_REFUSED_V4: Final = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",  # between a provider and its customers
            "127.0.0.0/8",
            "168.63.129.16/32",  # the platform of Azure
            "169.254.0.0/16",  # link-local, metadata of clouds
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",
            "240.0.0.0/4",
        ),
    )
)
_GLOBAL_V6: Final = IPv6Network("2000::/3")
_REFUSED_V6: Final = tuple(
    map(IPv6Network, ("2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16"))
)
_TRANSLATED: Final = IPv6Network("64:ff9b::/96")
_SIX_TO_FOUR: Final = IPv6Network("2002::/16")


def is_public(address: IPAddress) -> bool:
    """Whether an address is one of the public internet.

    Loopback, link-local, private, shared, reserved and multicast addresses are not, nor those at
    which clouds serve metadata. An IPv6 address that stands for an IPv4 address is what that is.
    """
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _REFUSED_V4)
    if (inner := _inner(address)) is not None:
        return is_public(inner)
    return address in _GLOBAL_V6 and not any(address in network for network in _REFUSED_V6)


def is_local(address: IPAddress) -> bool:
    """Whether it is an address of the machine itself."""
    inner = _inner(address) if isinstance(address, IPv6Address) else None
    return (inner or address).is_loopback


def literal(host: str) -> IPAddress | None:
    """The address that a host is written as; None: it is a name."""
    try:
        return ip_address(host.strip("[]"))
    except ValueError:
        return None


def _inner(address: IPv6Address) -> IPv4Address | None:
    number = int(address)
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _TRANSLATED or (number >> 32 == 0 and number > 1):
        return IPv4Address(number & 0xFFFFFFFF)
    if address in _SIX_TO_FOUR:
        return IPv4Address((number >> 80) & 0xFFFFFFFF)
    return None
