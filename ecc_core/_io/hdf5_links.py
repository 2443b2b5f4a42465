"""Datasets of HDF5 files. Links to other files are not followed."""

from typing import Any

from ecc_core._optional import import_optional

MOST_PARTS = 256
"""The most parts of a path that are followed, because links can lead to themselves."""
EXTRA = "dask"


def hdf5_library(kind: str) -> Any:
    """Import h5py to read files of a kind, such as "Imaris"."""
    return import_optional("h5py", extra=EXTRA, purpose=f"reading {kind} files")


def node_at(h5py: Any, opened: Any, name: str) -> Any:
    """Return the group or dataset of a name, or None.

    Soft links are followed within the file, and links to other files are not.
    """
    place = opened
    parts = [part for part in name.split("/") if part]
    for _ in range(MOST_PARTS):
        if not parts:
            return place
        if not isinstance(place, h5py.Group):
            return None
        part, *parts = parts
        link = place.get(part, getlink=True)
        if isinstance(link, h5py.SoftLink):
            target = [step for step in link.path.split("/") if step not in ("", ".")]
            place = opened if link.path.startswith("/") else place
            parts = [*target, *parts]
        elif isinstance(link, h5py.HardLink):
            place = place[part]
        else:
            return None
    return None


def dataset_at(h5py: Any, opened: Any, name: str) -> Any:
    """Return the dataset of a name, whose values are in this file."""
    found = node_at(h5py, opened, name)
    if not isinstance(found, h5py.Dataset):
        raise ValueError(f"damaged: it has no dataset {name}")
    return with_own_values(found, name)


def with_own_values(dataset: Any, name: str) -> Any:
    """Return a dataset; raise an error if its values are in other files."""
    if dataset.is_virtual or dataset.external:
        raise ValueError(f"the values of {name} lie in other files, which are not read")
    return dataset


def names_in(group: Any, prefix: str) -> list[str]:
    """Return the names in a group that are a prefix and a number, ordered by the number."""

    def number_of(name: str) -> int:
        return int(name.removeprefix(prefix))

    named = [name for name in group if name.startswith(prefix)]
    numbered = [name for name in named if name.removeprefix(prefix).isdecimal()]
    return sorted(numbered, key=number_of)
