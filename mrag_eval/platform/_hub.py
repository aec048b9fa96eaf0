"""Dataset repositories of the Hugging Face hub: their names, single files at one commit, and its faults in one line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mrag_eval.platform._disk import room_on_disk
from mrag_eval.platform._errors import ConfigError, DataError, MragError
from mrag_eval.platform._keys import keep_key

_PREFIX = "hub:"
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
_REVISION = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)*", re.ASCII)


@dataclass(frozen=True, slots=True)
class HubPlace:
    """Name a dataset repository; ``revision`` is a commit, a tag or a branch, None for ``main``."""

    repo: str
    revision: str | None = None

    @classmethod
    def named(cls, text: str, key: str) -> HubPlace | None:
        """Return the repository of ``hub:ORG/NAME`` or ``hub:ORG/NAME@REVISION``; None for any other text.

        Raises ConfigError, naming ``key``, if what follows ``hub:`` is no such name.
        """
        if not text.startswith(_PREFIX):
            return None
        repo, at, revision = text.removeprefix(_PREFIX).partition("@")
        if not _NAME.fullmatch(repo) or ".." in text or (at and not _REVISION.fullmatch(revision)):
            raise ConfigError(
                f"{key}: {text!r:.80} is no dataset of the hub",
                "write it as hub:ORG/NAME@REVISION; the revision is a commit or a tag",
            )
        return cls(repo, revision or None)

    def __str__(self) -> str:
        return f"{_PREFIX}{self.repo}" + (f"@{self.revision}" if self.revision else "")

    def at(self, commit: str) -> HubPlace:
        """Return the repository at a commit."""
        return HubPlace(self.repo, commit)


def hub_file(place: HubPlace, name: str, limit: int, missing: str) -> tuple[Path, str]:
    """Return a file at the top of a dataset repository, in the hub's own cache, and the commit that it belongs to.

    Asks the hub that ``HF_ENDPOINT`` names, with the token in ``HF_TOKEN``. A file of a commit that is cached is taken
    from there unasked; without a connection, so is one of a tag or branch. ``missing`` is the next step if the dataset
    has no such file.

    Raises DataError, in one line, for a file of more than ``limit`` bytes, which is not downloaded, and for whatever
    the hub does not give.
    """
    from huggingface_hub import constants, get_hf_file_metadata, hf_hub_download, hf_hub_url
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError

    known = _cached(place, name)
    if known is not None and known.parent.name == place.revision:
        return known, known.parent.name
    with (
        hub_faults(place, cached=True),
        room_on_disk(Path(constants.HF_HUB_CACHE), "free some space there, or set HF_HOME"),
    ):
        revision = place.revision or "main"
        try:
            size = get_hf_file_metadata(hf_hub_url(place.repo, name, repo_type="dataset", revision=revision)).size
        except EntryNotFoundError:
            raise DataError(f"{place} has no file {name}", missing) from None
        except Exception as error:
            # where the hub could not be asked, or is down, as opposed to an answer of no
            refused = isinstance(error, HfHubHTTPError) and error.response.status_code < 500
            if known is None or refused:
                raise
            return known, known.parent.name
        if size is not None and size > limit:
            raise DataError(
                f"{place}: {name} has {size / 1e9:,.1f} GB, and files of more than {limit / 1e9:,.1f} GB are not read",
                f"if you trust it: hf download --repo-type dataset {place.repo} --local-dir FOLDER, and name FOLDER",
            )
        path = Path(hf_hub_download(place.repo, name, repo_type="dataset", revision=revision))
        return path, path.parent.name


def hub_token() -> str | None:
    """Return the token for the hub (``HF_TOKEN``, or that of ``hf auth login``), which is hidden from then on."""
    from huggingface_hub import get_token

    token = get_token()
    return None if token is None else keep_key(token, "the token for the hub (HF_TOKEN)")


@contextmanager
def hub_faults(place: HubPlace, *, cached: bool = False) -> Iterator[None]:
    """Turn a failure of the hub's client within the block into one line that names ``place``.

    ``cached``: whether the cache would have done without a connection.
    """
    from huggingface_hub import errors

    try:
        yield
    except errors.GatedRepoError:
        raise DataError(f"{place} is gated", "ask for access on its page, with the account of your token") from None
    except errors.RepositoryNotFoundError:
        token = "the one in use does not see it" if hub_token() else "none is set"
        raise DataError(
            f"{place}: {_host()} has no such dataset, or it needs a token ({token})",
            "check the name; for a private dataset: export HF_TOKEN=..., or hf auth login",
        ) from None
    except errors.RevisionNotFoundError:
        raise DataError(
            f"{place}: the dataset has no revision '{place.revision}'", "name one of its commits or tags after the @"
        ) from None
    except errors.HfHubHTTPError as error:
        raise _refused(place, error) from None
    except (errors.LocalEntryNotFoundError, ConnectionError) as error:
        raise _no_connection(place, error, cached) from None
    except Exception as error:
        if _is_of_http(error):
            raise _no_connection(place, error, cached) from None
        # of uploads by LFS and Xet, which tell the cause apart; of names that the hub does not take; of the cache
        if isinstance(error, RuntimeError | ValueError | OSError) and not isinstance(error, MragError):
            raise _refused(place, error.__cause__ or error) from None
        raise


def hub_lacks_model(name: str, file: str, revision: str | None = None) -> tuple[str, str] | None:
    """Return why the hub does not give a model, and the next step; None if it may. The hub is asked for ``file`` once.

    A file that a repository lacks is no fault here: another one may describe its model.
    """
    from huggingface_hub import errors, get_hf_file_metadata, hf_hub_url

    try:
        get_hf_file_metadata(hf_hub_url(name, file, revision=revision))
    except errors.EntryNotFoundError:
        return None
    except errors.GatedRepoError:
        return "it is gated", "ask for access on its page, with the account of your token"
    except errors.RepositoryNotFoundError:
        return f"{_host()} has no such model, or it needs a token", "check the name; for a private model: hf auth login"
    except errors.RevisionNotFoundError:
        return f"it has no revision '{revision}'", "name one of its commits or tags"
    except Exception as error:
        # any other fault is the loader's to tell
        if not _is_of_http(error):
            return None
        return f"{_host()} cannot be reached ({type(error).__name__})", "check the connection, or name a folder"
    return None


def _cached(place: HubPlace, name: str) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(place.repo, name, repo_type="dataset", revision=place.revision or "main")
    return Path(found) if isinstance(found, str) else None


def _is_of_http(error: Exception) -> bool:
    """Return whether the client of HTTP below the hub's raised it, whose name is another from version to version."""
    modules = ("httpx", "httpcore", "requests", "urllib3")
    return isinstance(error, ConnectionError) or type(error).__module__.startswith(modules)


def _host() -> str:
    from huggingface_hub import constants

    return str(constants.ENDPOINT).partition("://")[2]


def _refused(place: HubPlace, error: BaseException) -> ConfigError:
    response: Any = getattr(error, "response", None)
    if response is not None and response.status_code in (401, 403):
        said = "does not accept the token" if response.status_code == 401 else "does not let this token do that"
        return ConfigError(
            f"{place}: {_host()} {said}", "export HF_TOKEN=..., or hf auth login; hf auth whoami shows whose it is"
        )
    line = next(iter(str(error).strip().splitlines()), type(error).__name__)
    return ConfigError(f"{place}: {line:.300}", "try again; what has arrived is not sent twice")


def _no_connection(place: HubPlace, error: Exception, cached: bool) -> DataError:
    from huggingface_hub import constants

    offline = bool(constants.HF_HUB_OFFLINE)
    why = "HF_HUB_OFFLINE is set" if offline else f"{_host()} cannot be reached ({type(error).__name__})"
    return DataError(
        f"{place}: {why}" + (", and it is not in the cache" if cached else ""),
        "unset HF_HUB_OFFLINE" if offline else "check the connection, and HF_ENDPOINT if it is set",
    )
