"""Certificates for servers of tests."""

import datetime as dt
import ssl
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Certificate:
    """What a server shows, and a client that trusts it."""

    server: ssl.SSLContext
    client: ssl.SSLContext


@dataclass(frozen=True)
class Pem:
    """A certificate that signs itself, and its key, as files hold them."""

    certificate: bytes
    key: bytes


def pem_for(host: str) -> Pem:
    """A certificate for a name or an address."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([_name_of(host)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Pem(
        made.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


def certificate_for(host: str) -> Certificate:
    """A certificate for a name or an address that only its own client trusts."""
    made = pem_for(host)
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with TemporaryDirectory() as folder:
        pem = Path(folder) / "server.pem"
        pem.write_bytes(made.certificate + made.key)
        server.load_cert_chain(pem)
        return Certificate(server, ssl.create_default_context(cafile=str(pem)))


def _name_of(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
