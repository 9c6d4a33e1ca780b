"""Signatures of run folders: Ed25519 (RFC 8032) over the checksums of what an audit left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from leakgauge.auditing.run import CHECKSUMS, SIGNATURE, Run
from leakgauge.errors import ConfigError, MissingExtra
from leakgauge.storing import refuse_links, write_atomically


def write_signature(run: Run, key: Path) -> Path:
    """Sign ``checksums.sha256``; the signature is the 64 bytes that ``openssl pkeyutl -sign -rawin`` makes too.

    Args:
        run: of a finished audit.
        key: a file with a private Ed25519 key in PEM, without a password.

    Returns:
        The path of the signature.

    Raises:
        ConfigError: the key cannot be read, or is of another kind; the folder holds another signature.
        MissingExtra: cryptography is not installed.
        StoreError: the signature cannot be written.
    """
    private = _key(key, private=True)
    signature = private.sign((run.folder / CHECKSUMS).read_bytes())
    path = run.folder / SIGNATURE
    refuse_links(run.folder)
    if path.exists() and path.read_bytes() != signature:  # Ed25519 has one signature of a text by a key
        raise ConfigError(
            f"{path} is a signature by another key, and a run folder holds one; move it away to sign in its stead"
        )
    write_atomically(path, lambda file: file.write(signature))
    return path


def is_signed(run: Run, key: Path) -> bool:
    """Whether the checksums bear a signature by this key.

    Args:
        run: of a finished audit.
        key: a file with a public Ed25519 key in PEM.

    Raises:
        ConfigError: the key cannot be read, or is of another kind.
        MissingExtra: cryptography is not installed.
    """
    public = _key(key, private=False)
    from cryptography.exceptions import InvalidSignature

    refuse_links(run.folder)
    try:
        public.verify((run.folder / SIGNATURE).read_bytes(), (run.folder / CHECKSUMS).read_bytes())
    except (FileNotFoundError, InvalidSignature):
        return False
    return True


def _key(path: Path, *, private: bool) -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
        from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key
    except ImportError:
        raise MissingExtra(
            "signatures need cryptography, which is not installed; pip install 'leakgauge[signing]'"
        ) from None
    expected, other = ("private", "public") if private else ("public", "private")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}); give a {expected} Ed25519 key in PEM") from None
    what = f"is a {other} key, expected" if f"{other.upper()} KEY-----".encode() in content else "is not"
    advice = (
        " without a password; openssl genpkey -algorithm ed25519 makes one"
        if private
        else "; openssl pkey -in KEY -pubout makes it of the private key"
    )
    wrong = ConfigError(f"{path} {what} a {expected} Ed25519 key in PEM{advice}")
    try:
        made = load_pem_private_key(content, None) if private else load_pem_public_key(content)
    except (ValueError, TypeError):
        raise wrong from None
    kind = ed25519.Ed25519PrivateKey if private else ed25519.Ed25519PublicKey
    if not isinstance(made, kind):
        raise wrong
    return made
