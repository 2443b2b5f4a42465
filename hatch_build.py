"""The URLs in the metadata, from the setting ``repository`` in pyproject.toml."""

from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class RepositoryHook(MetadataHookInterface):
    """Add the URLs of a repository on GitHub, once its address has been filled in."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set ``urls``."""
        address = self.config["repository"].rstrip("/")
        pages = {"Source": "", "Issues": "/issues", "Changelog": "/blob/main/CHANGELOG.md"}
        metadata["urls"] = {name: address + page for name, page in pages.items() if address}
