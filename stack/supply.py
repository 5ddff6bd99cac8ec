"""What docflow is made of, for whoever has to answer for it.

`python -m stack.supply FOLDER` writes the wheel, a bill of materials (CycloneDX), the licences and
the checksums of all of them, and refuses a licence or a secret that must not be there.
`python -m stack.supply --accept` accepts what looks like a secret and is none.
"""

import argparse
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from detect_secrets.core.potential_secret import PotentialSecret
from detect_secrets.core.secrets_collection import SecretsCollection
from detect_secrets.settings import transient_settings
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_ROOT: Final = Path(__file__).parents[1]
LOCK: Final = _ROOT / "requirements-workers.lock"
"""What an installation has."""
BASELINE: Final = _ROOT / ".secrets.baseline"
"""How secrets are looked for, and what looks like one and is none, by its hash."""
_DENIED: Final = re.compile(r"\bA?GPL|\bGNU (Affero )?General|\bUNKNOWN\b", re.IGNORECASE)
_LICENCE_FIELDS: Final = ("License-Expression", "License-Classifier", "License-Metadata")
"""The one that says most first."""
_UNKNOWN: Final = "UNKNOWN"
Secret = tuple[str, PotentialSecret]
"""A file, and what stands there."""


def locked(lock: Path) -> Mapping[str, str]:
    """Name and version of each package of a lock file that this machine needs."""
    lines = lock.read_text().replace("\\\n", " ").splitlines()
    wanted = [Requirement(line.partition(" --hash")[0]) for line in lines if "==" in line]
    return {
        canonicalize_name(each.name): str(each.specifier).removeprefix("==")
        for each in wanted
        if each.marker is None or each.marker.evaluate()
    }


def licences(packages: Mapping[str, str]) -> Mapping[str, str]:
    """The licence of each package; `UNKNOWN` if it says none or is not installed as locked.

    Args:
        packages: Name and version.
    """
    read = [sys.executable, "-m", "piplicenses", "--format=json", "--from=all", "--with-system"]
    answer = subprocess.run(read, check=True, capture_output=True, text=True, cwd=_ROOT)
    listed: list[dict[str, str]] = json.loads(answer.stdout)
    said: dict[str, dict[str, str]] = {canonicalize_name(each["Name"]): each for each in listed}
    return {
        name: _licence(said.get(name, {})) if _installed(name) == wanted else _UNKNOWN
        for name, wanted in sorted(packages.items())
    }


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _licence(said: Mapping[str, str]) -> str:
    found = (said.get(field, _UNKNOWN) for field in _LICENCE_FIELDS)
    # Some packages have the whole text.
    return next((each for each in found if each != _UNKNOWN), _UNKNOWN).partition("\n")[0]


def is_denied(licence: str) -> bool:
    """Whether a package may not be used: under a GPL or AGPL alone, or nobody knows under what.

    Args:
        licence: An SPDX expression or words; of alternatives, which `OR` divides, one is enough.
    """
    return all(_DENIED.search(each) for each in re.split(r"\s+OR\s+", licence.strip("() ")))


def new_secrets(files: Sequence[str], baseline: Mapping[str, Any]) -> Sequence[Secret]:
    """What looks like a secret and is not in the baseline, with its file.

    Args:
        files: Paths below the root of the repository.
        baseline: How to look, and what is accepted.
    """
    accepted = baseline["results"]
    return [
        (file, secret)
        for file, secret in _secrets(files, baseline)
        if secret.secret_hash not in accepted.get(file, ())
    ]


def _secrets(files: Sequence[str], baseline: Mapping[str, Any]) -> Sequence[Secret]:
    found = SecretsCollection(root=str(_ROOT))
    with transient_settings({key: baseline[key] for key in ("plugins_used", "filters_used")}):
        found.scan_files(*files)
    return list(found)


def _tracked() -> Sequence[str]:
    listing = ("git", "ls-files", "-z")
    listed = subprocess.run(listing, check=True, capture_output=True, cwd=_ROOT)
    return [name for name in listed.stdout.decode().split("\0") if name]


def accept() -> None:
    """Write the baseline anew: everything found now is accepted."""
    baseline = json.loads(BASELINE.read_text())
    found: dict[str, set[str]] = {}
    for file, secret in _secrets(_tracked(), baseline):
        found.setdefault(file, set()).add(secret.secret_hash)
    # Without line numbers, which every edit would change.
    results = {file: sorted(hashes) for file, hashes in sorted(found.items())}
    BASELINE.write_text(json.dumps({**baseline, "results": results}, indent=1) + "\n")


def problems(found: Mapping[str, str], secrets: Sequence[Secret]) -> Iterator[str]:
    """What must not be there, a sentence each.

    Args:
        found: Licence of each package.
        secrets: What looks like a secret and is not accepted.
    """
    for name, licence in found.items():
        if is_denied(licence):
            yield f"{name}: its licence is {licence}; use another package"
    for file, secret in secrets:
        yield (
            f"{file}:{secret.line_number}: looks like a secret ({secret.type}); take it out and "
            "change it, or, if it is none, run `python -m stack.supply --accept`"
        )


def write(folder: Path) -> None:
    """Write wheel, bill of materials, licences and checksums.

    Args:
        folder: Is made; files of before are replaced.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.whl"):
        old.unlink()
    python = sys.executable
    bill = (python, "-m", "cyclonedx_py", "requirements", str(LOCK), "--output-reproducible")
    wheel = (python, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder))
    own = ("--pyproject", str(_ROOT / "pyproject.toml"))
    subprocess.run([*bill, *own, "-o", str(folder / "sbom.json")], check=True, cwd=_ROOT)
    subprocess.run(wheel, check=True, cwd=_ROOT)
    packages = locked(LOCK)
    lines = [
        f"{name}\t{packages[name]}\t{licence}\n" for name, licence in licences(packages).items()
    ]
    (folder / "licences.tsv").write_text("package\tversion\tlicence\n" + "".join(lines))
    (folder / LOCK.name).write_bytes(LOCK.read_bytes())
    sums = folder / "SHA256SUMS"
    files = sorted(each for each in folder.iterdir() if each != sums)
    sums.write_text("".join(f"{_digest(each)}  {each.name}\n" for each in files))


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="what is written goes here")
    parser.add_argument("--accept", action="store_true", help="accept what looks like a secret")
    given = parser.parse_args()
    if given.accept:
        accept()
    baseline = json.loads(BASELINE.read_text())
    wrong = list(problems(licences(locked(LOCK)), new_secrets(_tracked(), baseline)))
    if wrong:
        sys.exit("\n".join(wrong))
    if given.folder is not None:
        write(given.folder)


if __name__ == "__main__":
    _main()
