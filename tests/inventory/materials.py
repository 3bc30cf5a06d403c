"""The bill of materials of a lock file, as CycloneDX has it: names, versions, hashes.

Made from the lock file itself, not from an installed environment, since the lock is what every
install is held to. The same lock gives the same bytes.
"""

from pathlib import Path
from typing import Final

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from pip_requirements_parser import RequirementsFile  # type: ignore[import-untyped]

from gateway import __version__

LOCKS: Final = ("requirements-client.txt", "requirements.txt", "requirements-dev.txt")


def bill_of_materials(lock: Path) -> str:
    """The JSON of CycloneDX 1.6 for what a lock file pins."""
    bom = Bom()
    # Otherwise each is of another moment, with another number.
    bom.metadata.timestamp = None  # type: ignore[assignment]
    bom.serial_number = None  # type: ignore[assignment]
    whole = Component(name="gateway", version=__version__, type=ComponentType.APPLICATION)
    whole.bom_ref.value = "gateway"
    bom.metadata.component = whole
    for requirement in RequirementsFile.from_file(str(lock)).requirements:
        name, version = requirement.name, requirement.get_pinned_version
        url = PackageURL("pypi", name=name, version=version)
        component = Component(
            name=name,
            version=version,
            purl=url,
            bom_ref=str(url),
            hashes=[_hash(each) for each in requirement.hash_options],
        )
        bom.components.add(component)
        bom.register_dependency(whole, [component])
    text: str = JsonV1Dot6(bom).output_as_string(indent=1)
    return text


def _hash(text: str) -> HashType:
    """A hash as pip writes it, `sha256:` and hex digits."""
    return HashType(alg=HashAlgorithm.SHA_256, content=text.removeprefix("sha256:"))


def write_materials(lock: Path, folder: Path) -> Path:
    """Write a lock file's bill of materials into a folder; answers where."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{lock.stem}.cdx.json"
    path.write_text(bill_of_materials(lock) + "\n")
    return path
