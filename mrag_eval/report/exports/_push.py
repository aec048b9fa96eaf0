"""Pull requests on the hub with the files of an export; nothing else in this package uploads anything."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrag_eval.platform import ConfigError, DataError, replaced

if TYPE_CHECKING:
    from huggingface_hub import HfApi

CARD = "README.md"


def api_with_token() -> HfApi:
    """Return the hub's client. Raise ConfigError without a token (``HF_TOKEN``, or ``hf auth login``)."""
    from huggingface_hub import HfApi, get_token

    if not get_token():
        raise ConfigError("--push: there is no token for the hub", "hf auth login   or set HF_TOKEN")
    return HfApi()


def fetch_card(repo: str, folder: Path, api: Any) -> Path:
    """Copy the repository's README.md to ``folder``, so that figures can be merged into it; return its path.

    If the repository has no README.md, return the path for a new one.
    """
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, RepositoryNotFoundError

    try:
        found = Path(api.hf_hub_download(repo_id=repo, filename=CARD))
    except EntryNotFoundError:
        return folder / CARD
    except RepositoryNotFoundError:
        raise _no_repository(repo) from None
    except HfHubHTTPError as error:
        raise _refused(repo, error) from None
    card = folder / CARD
    with replaced(card) as part:
        part.write_bytes(found.read_bytes())
    return card


def push(files: Sequence[Path], folder: Path, repo: str, repo_type: str, message: str, api: Any) -> str:
    """Open a pull request with ``files`` (under ``folder``, whose paths they keep) and return its address.

    Raises ConfigError if the hub refuses, and for a repository that does not exist.
    """
    from huggingface_hub import CommitOperationAdd
    from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError

    adds = [CommitOperationAdd(file.relative_to(folder).as_posix(), str(file)) for file in files]
    if not adds:
        raise DataError("--push: there is nothing to send", "run without --push and read what it says")
    try:
        done = api.create_commit(
            repo_id=repo, repo_type=repo_type, operations=adds, commit_message=message, create_pr=True
        )
    except RepositoryNotFoundError:
        raise _no_repository(repo) from None
    except HfHubHTTPError as error:
        raise _refused(repo, error) from None
    return str(done.pr_url or done.commit_url)


def _no_repository(repo: str) -> ConfigError:
    return ConfigError(f"--push {repo}: no such repository, or your token does not see it", f"hf repos create {repo}")


def _refused(repo: str, error: Exception) -> ConfigError:
    line = next(iter(str(error).splitlines()), type(error).__name__)
    return ConfigError(f"--push {repo}: the hub says: {line}", "hf auth whoami   shows whose token it is")
