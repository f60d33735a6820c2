"""Files at addresses such as s3://bucket/a.txt, which fsspec reads: for who reads text, they are like paths.

s3:// needs the package s3fs, gs:// gcsfs, hf:// huggingface_hub. Keys and endpoints are found as those packages do,
such as in AWS_ACCESS_KEY_ID and AWS_ENDPOINT_URL.
"""

import pathlib
import re
import types
from typing import Any, cast

from bert.errors import InputError
from bert.extras import check_installed

PACKAGES = {"s3": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "hf": "huggingface_hub"}
_CHANGES = ("ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "created", "blob_id", "sha256")


class RemotePath(pathlib.PurePosixPath):
    """The address of a file, with the methods of `pathlib.Path` that readers of text call."""

    url: str
    system: Any  # of fsspec
    info: dict[str, Any]  # of fsspec, when it was found

    def __str__(self) -> str:
        return self.url

    def is_file(self) -> bool:
        return True

    exists = is_file

    def is_dir(self) -> bool:
        return False

    def stat(self) -> types.SimpleNamespace:
        """st_size in bytes; st_mtime_ns: a text that changes with the file, as far as the server tells.

        Raises InputError where the server does not tell the size, without which no part of the file can be read.
        """
        if self.info.get("size") is None:
            raise InputError(f"{self.url}: the server does not tell its size; copy the file to a disk, and name that")
        changes = "".join(f"{name}={self.info[name]}" for name in _CHANGES if name in self.info)
        return types.SimpleNamespace(st_size=int(self.info["size"]), st_mtime_ns=changes)

    def open(self, mode: str = "rb") -> Any:
        return self.system.open(self.url, mode)


def is_remote(text: str) -> bool:
    return re.match(r"[a-z][a-z0-9+.-]*://", text) is not None


def find(url: str) -> list[pathlib.Path]:
    """The files at an address, sorted: of a folder all below it, of a pattern those that match; empty: there are none.

    Raises InputError where a package is missing, or the server refuses.
    """
    protocol = url.partition("://")[0]
    check_installed("fsspec", "fsspec", "arrow", url)
    import fsspec

    try:
        system, path = fsspec.core.url_to_fs(url)
        infos = system.glob(path, detail=True) if set("*?[") & set(path) else system.find(path, detail=True)
        infos = {  # some servers list names alone
            name: info if info.get("size") is not None else system.info(name) for name, info in infos.items()
        }
    except ImportError as error:
        package = PACKAGES.get(protocol, "the package that fsspec names")
        raise InputError(f"{url}: needs another package: pip install {package} ({error})") from None
    except Exception as error:  # each server has classes of its own
        why = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InputError(f"{url}: cannot be listed ({why:.200}); correct the address, or the keys for it") from None
    files = []
    for name, info in sorted(infos.items()):
        if info.get("type", "file") == "file":
            file = RemotePath(system.unstrip_protocol(name))
            file.url, file.system, file.info = system.unstrip_protocol(name), system, info
            files.append(cast(pathlib.Path, file))
    return files
