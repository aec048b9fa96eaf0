"""The dataset repositories of the hub's stand-in (:mod:`tests.worlds.hub_server`), and its answers about them."""

from __future__ import annotations

import base64
import hashlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

TOKEN = "hf_token_of_the_stand_in"
# Errors as the hub names them in the header X-Error-Code.
_NO_REPO, _NO_REVISION, NO_ENTRY = "RepoNotFound", "RevisionNotFound", "EntryNotFound"


@dataclass(frozen=True)
class Stored:
    """One version of a file: its content on disk, size, git object id, and SHA-256."""

    path: Path
    size: int
    oid: str
    sha256: str

    @classmethod
    def of(cls, path: Path) -> Stored:
        size = path.stat().st_size
        oid, sha256 = hashlib.sha1(b"blob %d\0" % size), hashlib.sha256()
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                oid.update(block)
                sha256.update(block)
        return cls(path, size, oid.hexdigest(), sha256.hexdigest())


@dataclass
class Repo:
    """A dataset repository: the files of every commit, and the commits of branches and tags."""

    private: bool = False
    commits: dict[str, dict[str, Stored]] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)

    def commit(self, files: Mapping[str, Stored], branch: str = "main", message: str = "") -> str:
        """Make ``files`` the content of a branch; return the commit."""
        told = sorted((name, file.sha256) for name, file in files.items())
        sha = hashlib.sha1(repr((told, self.refs.get(branch), message)).encode()).hexdigest()
        self.commits[sha], self.messages[sha], self.refs[branch] = dict(files), message, sha
        return sha

    def find(self, revision: str) -> str | None:
        """Return the commit of a branch, a tag or a commit's own hash."""
        return self.refs.get(revision) or (revision if revision in self.commits else None)


class Fault(Exception):
    """An answer other than 200, with the hub's headers for it."""

    def __init__(self, status: int, message: str, code: str = "", commit: str = "", url: str = "") -> None:
        self.status, self.body = status, {"error": message, "url": url}
        self.headers = {"X-Error-Message": message}
        self.headers |= {"X-Error-Code": code} if code else {}
        self.headers |= {"X-Repo-Commit": commit} if commit else {}


class Repos:
    """The repositories by name; ``home`` keeps what is uploaded, and ``url`` is the address of the hub."""

    def __init__(self, home: Path) -> None:
        self.repos: dict[str, Repo] = {}
        self.lfs_from = sys.maxsize
        self.url = ""
        self._blobs = home / "blobs"
        self._blobs.mkdir(parents=True, exist_ok=True)

    def store(self, content: bytes) -> Stored:
        """Keep the content of a file."""
        path = self._blobs / hashlib.sha256(content).hexdigest()
        path.write_bytes(content)
        return Stored.of(path)

    def stored(self, sha256: str) -> Stored | None:
        """Return a file that was uploaded by LFS."""
        path = self._blobs / sha256
        return Stored.of(path) if path.is_file() else None

    def repo(self, name: str, token: str | None) -> Repo:
        there = self.repos.get(name)
        if there is None or (there.private and token != TOKEN):
            # the hub does not tell strangers whether there is a private one
            raise Fault(404 if token == TOKEN else 401, "Repository not found", _NO_REPO)
        return there

    def revision(self, name: str, revision: str, token: str | None) -> tuple[str, dict[str, Stored]]:
        there = self.repo(name, token)
        sha = there.find(unquote(revision))
        if sha is None:
            raise Fault(404, f"Invalid rev id: {revision}", _NO_REVISION)
        return sha, there.commits[sha]

    def info(self, name: str, revision: str, token: str | None) -> Any:
        sha, files = self.revision(name, revision, token)
        siblings = [{"rfilename": path, "size": file.size, "blobId": file.oid} for path, file in files.items()]
        private = self.repos[name].private
        return {"id": name, "sha": sha, "private": private, "gated": False, "tags": [], "siblings": siblings}

    def tree(self, name: str, revision: str, folder: str, recursive: bool, token: str | None) -> Any:
        sha, files = self.revision(name, revision, token)
        inside = f"{folder}/" if folder else ""
        found = {path: file for path, file in files.items() if path.startswith(inside)}
        if folder and not found:
            raise Fault(404, f"{folder} does not exist on {revision}", NO_ENTRY, sha)
        folders = {"/".join(path.split("/")[:n]) for path in found for n in range(1, path.count("/") + 1)}
        shown = [self._entry(path, file) for path, file in found.items() if recursive or "/" not in path[len(inside) :]]
        shown += [
            {"type": "directory", "path": path, "oid": hashlib.sha1(path.encode()).hexdigest(), "size": 0}
            for path in sorted(folders)
            if path.startswith(inside) and (recursive or "/" not in path[len(inside) :])
        ]
        return shown

    def paths_info(self, name: str, revision: str, paths: list[str], token: str | None) -> Any:
        files = self.revision(name, revision, token)[1]
        return [self._entry(path, files[path]) for path in paths if path in files]

    def _entry(self, path: str, file: Stored) -> dict[str, Any]:
        entry: dict[str, Any] = {"type": "file", "path": path, "size": file.size, "oid": file.oid}
        if file.size >= self.lfs_from:
            entry["lfs"] = {"oid": file.sha256, "size": file.size, "pointerSize": 130}
        return entry

    def create(self, asked: Mapping[str, Any]) -> Any:
        name = f"{asked.get('organization') or 'me'}/{asked['name']}"
        if asked.get("type") != "dataset":
            raise Fault(400, "this stand-in has datasets only")
        url = f"{self.url}/datasets/{name}"
        if name in self.repos:
            raise Fault(409, "You already created this dataset repo", url=url)
        self.repos[name] = Repo(asked.get("visibility") == "private")
        self.repos[name].commit({".gitattributes": self.store(b"")}, message="initial commit")
        return {"url": url, "name": name, "id": name}

    def point(self, name: str, kind: str, ref: str, asked: Mapping[str, Any], token: str | None) -> Any:
        """Make a branch, or a tag of the revision ``ref``."""
        there = self.repo(name, token)
        new, start = (asked["tag"], ref) if kind == "tag" else (ref, asked.get("startingPoint") or "main")
        if new in there.refs:
            raise Fault(409, f"Reference already exists: {new}")
        there.refs[new] = self.revision(name, start, token)[0]
        return {}

    def preupload(self, name: str, revision: str, asked: Mapping[str, Any], token: str | None) -> Any:
        there = self.revision(name, revision, token)[1]
        modes = []
        for file in asked["files"]:
            by_lfs, known = file["size"] >= self.lfs_from, there.get(file["path"])
            oid = None if known is None else known.sha256 if by_lfs else known.oid
            mode = {"path": file["path"], "uploadMode": "lfs" if by_lfs else "regular", "shouldIgnore": False}
            modes.append(mode | ({} if oid is None else {"oid": oid}))
        return {"files": modes}

    def lfs_batch(self, asked: Mapping[str, Any]) -> Any:
        objects = []
        for one in asked["objects"]:
            upload = {"upload": {"href": f"{self.url}/lfs/{one['oid']}"}}
            objects.append({**one, **({} if self.stored(one["oid"]) else {"actions": upload})})
        return {"objects": objects, "transfer": "basic"}

    def take_commit(self, name: str, branch: str, lines: list[dict[str, Any]], token: str | None) -> Any:
        files = dict(self.revision(name, branch, token)[1])
        message = ""
        for line in lines:
            value = line["value"]
            if line["key"] == "header":
                message = value["summary"]
            elif line["key"] == "file":
                files[value["path"]] = self.store(base64.b64decode(value["content"]))
            elif line["key"] == "lfsFile":
                stored = self.stored(value["oid"])
                if stored is None:
                    raise Fault(400, f"LFS pointer pointed to a file that does not exist: {value['path']}")
                files[value["path"]] = stored
            elif line["key"] == "deletedFile":
                del files[value["path"]]
        sha = self.repos[name].commit(files, unquote(branch), message)
        return {"commitOid": sha, "commitUrl": f"{self.url}/datasets/{name}/commit/{sha}", "success": True}
