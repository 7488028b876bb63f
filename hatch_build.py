"""The address of the repository, in the one place where the package needs it.

A package index shows the README away from the repository, where relative links lead
nowhere. If the environment variable ARBORAX_REPOSITORY holds the address, as in the
workflow `release`, links and pictures lead to the files of this version there, and the
metadata name the repository. Without it, links stay as they are.
"""

import os
import pathlib
import re

from hatchling.metadata.plugin.interface import MetadataHookInterface


LINK = re.compile(r"(!?)(\[[^\]]*\])\((?![a-z]+:|#)([^)\s]+)\)")


def absolute(text: str, address: str, version: str) -> str:
    """Markdown with the links to files of the repository written out."""

    def link(match: re.Match) -> str:
        picture, label, target = match.groups()
        kind = "raw" if picture else "blob"
        return f"{picture}{label}({address}/{kind}/v{version}/{target})"

    return LINK.sub(link, text)


class Metadata(MetadataHookInterface):
    def update(self, metadata: dict) -> None:
        text = (pathlib.Path(self.root) / "README.md").read_text(encoding="utf-8")
        address = os.environ.get("ARBORAX_REPOSITORY", "").rstrip("/")
        if address:
            text = absolute(text, address, metadata["version"])
            metadata["urls"] = {
                "Source": address,
                "Changelog": f"{address}/blob/main/CHANGELOG.md",
                "Issues": f"{address}/issues",
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
