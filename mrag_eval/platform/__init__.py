"""Errors, files, JSON, YAML, stores, locks, HTTP, secrets and signals: nothing here knows of questions and answers."""

from typing import TYPE_CHECKING

from mrag_eval.platform._doors import lazy_door

if TYPE_CHECKING:
    from mrag_eval.platform._address import (
        address_fault,
        bare_address,
        check_address,
        keep_address,
        machines_of,
        marked,
    )
    from mrag_eval.platform._attempts import Attempts, Response
    from mrag_eval.platform._calls import Calls
    from mrag_eval.platform._claims import Claims
    from mrag_eval.platform._collection import uncollected
    from mrag_eval.platform._devices import DEVICES, known_device, loading_device, placed, present_device
    from mrag_eval.platform._disk import (
        is_full,
        is_out_of_memory,
        mapped_array,
        read_array,
        room_on_disk,
        save_array,
        save_faiss,
    )
    from mrag_eval.platform._ended_runs import keep_for_repetition, remove_ended, repeated_later, run_ended
    from mrag_eval.platform._errors import (
        ConfigError,
        CorpusError,
        DataError,
        MetricError,
        MissingExtraError,
        MragError,
        UnwrittenError,
        beside,
        close_match,
        did_you_mean,
        fault_in,
        missing_extra,
        naming,
        no_file,
        one_of,
        suggesting,
    )
    from mrag_eval.platform._event_loop import at_once, run_in_thread, run_on_loop
    from mrag_eval.platform._files import (
        CUT_OFF,
        LONGEST_FILE,
        LONGEST_LINE,
        filled_lines,
        lines_of,
        part_files,
        readable,
        regular,
        replaced,
        whole,
        write_whole,
    )
    from mrag_eval.platform._functions import (
        FunctionName,
        OwnFunction,
        code_beside,
        entry_point,
        own_function,
        own_object,
        reading_back,
        said_by,
    )
    from mrag_eval.platform._http import HEADER, Endpoint, Transport, bearer
    from mrag_eval.platform._http_body import LONGEST_ANSWER
    from mrag_eval.platform._http_faults import (
        BROKEN_AGAIN,
        HttpFault,
        error_fault,
        json_answer,
        json_body,
        refuse_error,
    )
    from mrag_eval.platform._hub import HubPlace, hub_faults, hub_file, hub_token
    from mrag_eval.platform._interrupts import ending_within
    from mrag_eval.platform._json_records import (
        OPTIONAL,
        check_version,
        from_json,
        optional_beside,
        to_json,
        with_version,
    )
    from mrag_eval.platform._json_text import (
        AS_JSON,
        DEEPEST,
        JsonFault,
        Twice,
        check_keys,
        decode,
        finite,
        finite_number,
        is_finite,
        json_from,
        json_line,
        json_value,
        nested_too_deeply,
        no_number,
        plain,
        text_at,
        without_conflict,
    )
    from mrag_eval.platform._keys import (
        header_has_key,
        headers_in,
        keep_header,
        keep_key,
        keep_pair,
        keep_secrets_of,
        key_in,
        key_of,
        key_variable_of,
        names_secret,
    )
    from mrag_eval.platform._limited import limited
    from mrag_eval.platform._locking import build_lock
    from mrag_eval.platform._paths import (
        Places,
        cache_dir,
        config_path,
        name_of_model,
        names_of_models,
        paths_of,
        staying_here,
        task_and_date,
        tasks_folder,
        user_path,
        visible_to_harness,
    )
    from mrag_eval.platform._places import content_of_folder, place_by_content
    from mrag_eval.platform._redaction import guarded_screen, install_redaction, redact
    from mrag_eval.platform._run_files import RunFiles, check_file_name, check_output, check_output_file
    from mrag_eval.platform._secrets import HIDDEN, hidden, hide, is_plain
    from mrag_eval.platform._setting import Allowed, Count, Natural, Setting, listed, settings_of, takes_settings
    from mrag_eval.platform._sharing import Shares, made_once
    from mrag_eval.platform._sheets import (
        SheetRow,
        check_unique,
        csv_cell,
        escaped,
        read_sheet,
        told_apart,
        unescaped,
        write_sheet,
    )
    from mrag_eval.platform._short_texts import kept_for_short_texts
    from mrag_eval.platform._store import Store, close_stores, content_key, shared_store
    from mrag_eval.platform._template import VARIABLE, Template, check_text, keep_named_variables, with_variables
    from mrag_eval.platform._trust import (
        NAMED,
        REPEATED_DECODING,
        REPEATED_MODEL,
        is_local,
        is_plain_language,
        is_plain_name,
        links_out,
        name_fault,
        path_fault,
        repeatable,
    )
    from mrag_eval.platform._visible import UNSHOWN, one_line, visible, with_names_of_one_line
    from mrag_eval.platform._waits import Wait, quiet_notebook, waits_are_shown
    from mrag_eval.platform._weights import OTHER_FILES, check_weights
    from mrag_eval.platform._wording import number_of
    from mrag_eval.platform._yaml import read_yaml
else:
    __getattr__, __dir__ = lazy_door(__name__)
