from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from longthread.environment import tool_secrets
from longthread.errors import InvalidInput
from longthread.settings import Settings, variables
from longthread.store.open import open_store


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No variable of the machine that runs the tests, and a folder of our own for `.env`."""
    names = {name for names in variables().values() for name in names}
    for name in list(os.environ):
        if name in names or name.startswith("LONGTHREAD_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_defaults() -> None:
    settings = Settings.load()
    assert settings.user == "default"
    assert settings.model is None
    assert settings.database == str(settings.data_dir / "conversations.db")
    assert settings.data_dir.name == "longthread"
    assert (settings.max_tokens, settings.timeout, settings.max_steps) == (2000, 60.0, 12)
    assert (settings.host, settings.port) == ("127.0.0.1", 8765)
    assert settings.max_question >= 1_048_576


def test_flags_beat_the_environment_beats_dotenv(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (clean / ".env").write_text("LONGTHREAD_PORT=1001\nLONGTHREAD_USER=from-file\nUNRELATED=1\n")
    assert Settings.load().port == 1001
    monkeypatch.setenv("LONGTHREAD_PORT", "1002")
    assert Settings.load().port == 1002
    settings = Settings.load(port=1003)
    assert (settings.port, settings.user) == (1003, "from-file")
    assert Settings.load(env_file=None).user == "default"


def test_prices_are_json_by_the_names_of_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "LONGTHREAD_PRICES", '{"openai:a": {"input": 2, "output": 8, "cached": 0.5}, "b": {"input": 0, "output": 1}}'
    )
    settings = Settings.load()
    price = settings.price_of("openai:a")
    assert price is not None and (price.input, price.output, price.cached) == (2, 8, 0.5)
    assert settings.price_of("c") is None and settings.currency == "USD"
    assert hash(settings) == hash(Settings.load())
    for wrong in (
        "{",
        "5",
        '{"a": 5}',
        '{"a": {"input": 1}}',
        '{"a": {"input": -1, "output": 1}}',
        '{"a": {"input": 1, "output": 1, "x": 1}}',
    ):
        monkeypatch.setenv("LONGTHREAD_PRICES", wrong)
        with pytest.raises(InvalidInput, match="LONGTHREAD_PRICES"):
            Settings.load()


def test_a_flag_that_was_not_given_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGTHREAD_MODEL", "openai:gpt-5")
    assert Settings.load(model=None).model == "openai:gpt-5"


def test_an_unknown_override_is_a_defect() -> None:
    with pytest.raises(TypeError, match="colour"):
        Settings.load(colour="red")


def test_the_environment_is_read_when_asked_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    before = Settings.load()
    monkeypatch.setenv("LLM_MAX_TOKENS", "77")
    assert before.max_tokens == 2000
    assert Settings.load().max_tokens == 77


def test_importing_with_a_broken_environment_works() -> None:
    environment = {**os.environ, "LONGTHREAD_PORT": "nonsense"}
    subprocess.run([sys.executable, "-c", "import longthread.settings"], env=environment, check=True)


def test_the_shell_user_and_other_plain_variables_are_not_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    before = Settings.load()
    for name, own in variables().items():
        if name.upper() not in own:
            monkeypatch.setenv(name.upper(), "65536000")
    assert Settings.load() == before


@pytest.mark.parametrize(
    ("field", "name"), [(field, name) for field, names in variables().items() for name in names], ids=lambda v: str(v)
)
def test_every_variable_sets_its_field(field: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    special = {
        "stream_usage": "False",
        "memory_enable_summary": "False",
        "memory_max_summary_tokens": "200",
        "timezone": "Asia/Shanghai",
        "currency": "EUR",
        "prices": '{"a": {"input": 1, "output": 2}}',
        "remember_approval": "data",
        "log": "json",
        "secret_key": "x" * 32,
    }
    special |= {"sql_isolated": "False", "code_cpython": "True", "read_only": "True"}
    special |= {
        "otel_disabled": "True",
        "otel_contents": "True",
        "otel_headers": "a=b",
        "no_login": "True",
        "metrics_token": "x" * 16,
    }
    special |= {"oidc_signup": "no", "auth_signup": "no", "oidc_link_by_email": "True", "proxy_secret": "x" * 16}
    special |= {"oidc_issuers": "[]", "trusted_proxies": "unix", "oidc_scopes": "openid email"}
    if field == "oidc_client_id":
        monkeypatch.setenv("LONGTHREAD_OIDC_ISSUER", "https://example.test")
    if field == "oidc_issuer":
        monkeypatch.setenv("LONGTHREAD_OIDC_CLIENT_ID", "2")
    is_url = (
        field.endswith("base_url")
        or field == "oidc_issuer"
        or (field.startswith("otel_") and field.endswith("endpoint"))
    )
    text = special.get(field, "https://example.test/v1" if is_url else "2")
    monkeypatch.setenv(name, text)
    value = getattr(Settings.load(), field)
    shown = value.get_secret_value() if hasattr(value, "get_secret_value") else value
    if isinstance(value, tuple) and field != "prices":
        shown = ",".join(value) or "[]"
    if field == "prices":
        shown = json.dumps({each.model: {"input": int(each.input), "output": int(each.output)} for each in value})
    assert str(shown) in {text, f"{text}.0"}


def test_the_first_name_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_BASE_URL", "http://second.test")
    monkeypatch.setenv("LLM_BASE_URL", "http://first.test/")
    assert Settings.load().base_url == "http://first.test"


def test_any_name_in_the_environment_beats_dotenv(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (clean / ".env").write_text("LLM_BASE_URL=http://file.test\nLONGTHREAD_PORT=1001\n")
    for name in ("API_BASE_URL", "longthread_port", "LONGTHREAD_MAX_TOKENS"):
        monkeypatch.setenv(name, "http://environment.test" if name.endswith("URL") else "1002")
    settings = Settings.load()
    assert (settings.base_url, settings.port, settings.max_tokens) == ("http://environment.test", 1002, 1002)


def test_an_empty_variable_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_MAX_TOKENS", "")
    assert Settings.load().max_tokens == 2000


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("LLM_TIMEOUT", "soon", "seconds above 0"),
        ("LLM_TIMEOUT", "nan", "seconds above 0"),
        ("LLM_TIMEOUT", "0", "seconds above 0"),
        ("LONGTHREAD_PORT", "70000", "65535"),
        ("LONGTHREAD_MAX_STEPS", "0", "1 to 1000"),
        ("LLM_RETRY_ATTEMPTS", "-1", "no retry"),
        ("API_BASE_URL", "localhost:11434", "http://"),
        ("LLM_BASE_URL", "http://", "http://"),
        ("LLM_BASE_URL", "http://host:port/v1", "http://"),
        ("LLM_STREAM_USAGE", "perhaps", "true or false"),
        ("LONGTHREAD_DATABASE", "mysql://…", "postgresql:// URL"),
        ("DATABASE_URL", "mysql://…", "LONGTHREAD_DATABASE_URL"),
        ("LONGTHREAD_DATABASE_URL", ":memory:", "SQLite file"),
        ("MEMORY_CONTEXT_WINDOW", "big", "tokens"),
        ("MEMORY_ENABLE_SUMMARY", "sometimes", "true or false"),
        ("MEMORY_SUMMARY_THRESHOLD", "0", "1 to 100000"),
        ("MEMORY_MAX_SUMMARY_TOKENS", "99", "100 to 100000"),
        ("MESSAGE_COMPRESS_RECENT_WINDOW", "0", "1 to 10000"),
        ("MESSAGE_COMPRESS_MAX_LENGTH", "-1", "from 1 on"),
    ],
)
def test_a_wrong_value_names_variable_value_and_what_is_allowed(
    name: str, value: str, allowed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value.replace("…", "user:pass@word@host/x"))
    with pytest.raises(InvalidInput) as caught:
        Settings.load()
    message = str(caught.value)
    assert "word" not in message
    assert name in message
    assert value in message
    assert allowed in message


def test_a_wrong_flag_is_named_as_a_flag() -> None:
    with pytest.raises(InvalidInput, match=r"^--max-steps is 0; allowed is "):
        Settings.load(max_steps=0)


def test_a_wrong_value_in_dotenv_is_named(clean: Path) -> None:
    (clean / ".env").write_text("LONGTHREAD_DATA_DIR=s3://bucket\n")
    with pytest.raises(InvalidInput) as caught:
        Settings.load()
    assert str(caught.value) == "LONGTHREAD_DATA_DIR is 's3://bucket'; allowed is a folder."


def test_an_unreadable_dotenv_is_said(clean: Path) -> None:
    (clean / ".env").write_bytes(b"LONGTHREAD_USER=\xff\xfe\n")
    with pytest.raises(InvalidInput, match=r"\.env cannot be read"):
        Settings.load()


def test_home_is_expanded_and_data_dir_moves_the_database(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = Settings.load(data_dir="~/threads")
    assert settings.data_dir == tmp_path / "threads"
    assert settings.database == str(tmp_path / "threads" / "conversations.db")


@pytest.mark.parametrize(
    ("given", "opened"),
    [
        ("postgresql://u:p@h:5432/d", "postgresql://u:p@h:5432/d"),
        ("postgres://h/d", "postgres://h/d"),
        ("postgresql+psycopg:///d", "postgresql+psycopg:///d"),
        ("sqlite:///here.db", "here.db"),
        ("sqlite:////tmp/there.db", "/tmp/there.db"),
        ("~/c.db", "/home/someone/c.db"),
        ("embedded", "embedded:/data/postgres"),
        ("embedded:/elsewhere", "embedded:/elsewhere"),
    ],
)
def test_a_stores_address_is_a_path_a_url_or_embedded(given: str, opened: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    assert Settings.load(database=given, data_dir="/data").database == opened


@pytest.mark.parametrize(
    "given",
    [
        *("x.db?mode=ro", "sqlite:///x.db?mode=ro&cache=shared", "file:x.db", "postgres//x", "postgresql:/h/d"),
        *("postgresql+psycopg//h/d", "postgres:h", "sqlite:x.db", "mysql://h/d"),
    ],
)
async def test_an_address_that_is_almost_one_is_refused_and_makes_no_file(
    given: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match="the path of a SQLite file"):
        Settings.load(database=given)
    with pytest.raises(InvalidInput, match="the path of a SQLite file"):
        async with open_store(given):
            pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("given", ["what?.db", "postgres/c.db", "a?b=c/x.db", "postgresql.db"])
def test_a_path_that_looks_a_little_like_a_url_is_one(given: str) -> None:
    assert Settings.load(database=given).database == given


@pytest.mark.parametrize("given", ["postgres//ann:secret@h/d", "postgresql:ann:secret@h/d", "mysql://ann:secret@h/d"])
def test_an_address_that_cannot_be_understood_shows_no_password(given: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Settings.load(database=given)
    assert "secret" not in str(refused.value)


def test_longthreads_own_variable_wins_over_the_applications(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://h/application")
    assert Settings.load().database == "postgresql://h/application"
    monkeypatch.setenv("LONGTHREAD_DATABASE", "own.db")
    assert Settings.load().database == "own.db"
    monkeypatch.setenv("LONGTHREAD_DATABASE_URL", "postgresql://h/longthread")
    assert Settings.load().database == "postgresql://h/longthread"


def test_secrets_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_API_KEY", "sk-very-secret")
    monkeypatch.setenv("DATABASE_URL", "postgresql://u:sk-very-secret@h/d")
    settings = Settings.load()
    assert "sk-very-secret" not in repr(settings) + str(settings.model_dump_json())
    assert settings.api_key is not None
    assert settings.api_key.get_secret_value() == "sk-very-secret"


def test_no_tool_gets_the_key_under_which_secrets_are_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGTHREAD_SECRET_KEY", "x" * 32)
    monkeypatch.setenv("LONGTHREAD_SECRET_TOKEN", "mine")
    assert tool_secrets({"KEY", "key", "TOKEN"}, env_file=None).keys() == {"TOKEN"}


def test_a_file_holds_the_value_of_any_setting(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (clean / "key").write_text("  sk-secret\n")
    (clean / "url").write_text("postgresql://ada:pw@db.example/conversations\n")
    (clean / ".env").write_text("LLM_API_KEY=another\nLONGTHREAD_PORT_FILE=port\n")
    (clean / "port").write_text("1004")
    monkeypatch.setenv("LLM_API_KEY_FILE", str(clean / "key"))
    monkeypatch.setenv("LONGTHREAD_DATABASE_URL_FILE", "url")
    monkeypatch.setenv("LONGTHREAD_SECRET_SHOP_FILE", "key")
    settings = Settings.load()
    assert settings.api_key is not None and settings.api_key.get_secret_value() == "sk-secret"
    assert settings.database == "postgresql://ada:pw@db.example/conversations"
    assert settings.port == 1004
    assert tool_secrets(["SHOP"])["SHOP"].get_secret_value() == "sk-secret"
    (clean / "key").write_text("\n")
    empty = Settings.load().api_key
    assert empty is not None and empty.get_secret_value() == "another", "an empty file counts as not set"
    assert tool_secrets(["SHOP"]) == {}


def test_the_key_that_seals_is_no_secret_of_a_tool_in_a_file_either(
    clean: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (clean / "key").write_text("k" * 32)
    monkeypatch.setenv("LONGTHREAD_SECRET_KEY_FILE", "key")
    assert tool_secrets(["KEY", "KEY_FILE"]) == {}
    sealing = Settings.load().secret_key
    assert sealing is not None and sealing.get_secret_value() == "k" * 32


@pytest.mark.parametrize(
    ("content", "told"),
    [(None, "No such file or directory"), (b"\xff", "it is not UTF-8 text"), (b"x" * 65_537, "more than 65,536 bytes")],
)
def test_a_file_that_holds_no_value_is_refused(
    clean: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None, told: str
) -> None:
    if content is not None:
        (clean / "key").write_bytes(content)
    monkeypatch.setenv("LLM_API_KEY_FILE", "key")
    with pytest.raises(InvalidInput, match=f"LLM_API_KEY_FILE is key, which .*{told}"):
        Settings.load()


def test_a_value_and_a_file_of_it_are_too_many(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_API_KEY", "a")
    monkeypatch.setenv("LLM_API_KEY_FILE", "key")
    with pytest.raises(InvalidInput, match="LLM_API_KEY and LLM_API_KEY_FILE are both set"):
        Settings.load()


def test_a_wrong_value_of_a_file_names_the_variable(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (clean / "port").write_text("x")
    monkeypatch.setenv("LONGTHREAD_PORT_FILE", "port")
    with pytest.raises(InvalidInput, match="LONGTHREAD_PORT_FILE is 'x'"):
        Settings.load()


ISSUER = {"issuer": "https://id.example", "client_id": "c"}


def test_one_provider_of_logins_is_set_by_itself_and_several_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings.load().login_issuers == ()
    monkeypatch.setenv("LONGTHREAD_OIDC_ISSUER", "https://id.example/realms/main/")
    monkeypatch.setenv("LONGTHREAD_OIDC_CLIENT_ID", "c")
    monkeypatch.setenv("LONGTHREAD_OIDC_CLIENT_SECRET", "sk-1")
    monkeypatch.setenv("LONGTHREAD_OIDC_ADMIN_GROUPS", "admins, Root ,")
    second = ISSUER | {"id": "guests", "client_secret": "sk-2", "allowed_domains": ["a.example"], "label": "Guests"}
    monkeypatch.setenv("LONGTHREAD_OIDC_ISSUERS", json.dumps([second]))
    settings = Settings.load()
    one, other = settings.login_issuers
    assert (one.id, one.issuer, one.shown) == ("sso", "https://id.example/realms/main/", "id.example")
    assert (one.admin_groups, one.signup) == (("admins", "Root"), "pending")
    assert (other.id, other.shown, other.admin_groups, other.allowed_domains) == (
        "guests",
        "Guests",
        (),
        ("a.example",),
    )
    assert "sk-" not in repr(settings) + settings.model_dump_json() + repr(one)
    assert hash(settings) == hash(Settings.load())


@pytest.mark.parametrize(
    "given",
    [
        {"oidc_issuer": "https://id.example"},
        {"oidc_client_id": "c"},
        {"oidc_issuer": "http://id.example", "oidc_client_id": "c"},
        {"oidc_issuer": "https://ada:pw@id.example", "oidc_client_id": "c"},
        {"oidc_issuer": "https://id.example?x=1", "oidc_client_id": "c"},
        {"oidc_scopes": "profile"},
        {"auth_header": "X User"},
        {"proxy_secret": "short"},
        {"oidc_issuers": "{"},
        {"oidc_issuers": json.dumps([ISSUER])},
        {"oidc_issuers": json.dumps([ISSUER | {"id": "A b"}])},
        {"oidc_issuers": json.dumps([ISSUER | {"id": "a", "client_secret": "sk-1", "colour": "red"}])},
        {"oidc_issuers": json.dumps([ISSUER | {"id": "a"}] * 2)},
        {
            "oidc_issuers": json.dumps([ISSUER | {"id": "sso"}]),
            "oidc_issuer": "https://id.example",
            "oidc_client_id": "c",
        },
    ],
)
def test_a_provider_of_logins_that_cannot_be_one_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(InvalidInput) as error:
        Settings.of(**given)
    assert "sk-1" not in str(error.value) and "pw" not in str(error.value)


def test_an_issuer_of_this_machine_needs_no_tls() -> None:
    for url in ("http://localhost:8080/realms/main", "http://127.0.0.1:9", "http://[::1]:9"):
        assert Settings.of(oidc_issuer=url, oidc_client_id="c").login_issuers[0].issuer == url
