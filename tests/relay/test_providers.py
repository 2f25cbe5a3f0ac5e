from __future__ import annotations

from typing import get_args

import pytest

from relay import InvalidUpstream, get_provider, provider_names, with_upstream
from relay.endpoints import Endpoint, is_loopback, parse_endpoint
from relay.providers import InvalidProvider, UnknownProvider, load_providers
from relay.records import Protocol


def routes(name):
    return {
        (method, route.path): route.protocol
        for route in get_provider(name).routes
        for method in route.methods
    }


def test_each_provider_has_exactly_its_routes():
    assert routes("anthropic") == {
        ("POST", "/v1/messages"): "anthropic-messages",
        ("POST", "/v1/messages/count_tokens"): None,
        ("GET", "/v1/models"): None,
    }
    assert routes("openai") == {
        ("POST", "/v1/responses"): "openai-responses",
        ("POST", "/v1/chat/completions"): "openai-chat",
        ("GET", "/v1/models"): None,
    }
    assert routes("openrouter") == {
        ("POST", "/api/v1/chat/completions"): "openai-chat",
        ("POST", "/api/v1/responses"): "openai-responses",
        ("POST", "/api/v1/messages"): "anthropic-messages",
        ("GET", "/api/v1/models"): None,
    }
    assert routes("openai-compat") == {
        ("POST", "/v1/chat/completions"): "openai-chat",
        ("POST", "/v1/responses"): "openai-responses",
        ("POST", "/v1/messages"): "anthropic-messages",
        ("POST", "/v1/messages/count_tokens"): None,
        ("GET", "/v1/models"): None,
    }


def test_rehearsal_serves_every_protocol_and_needs_no_key():
    rehearsal = get_provider("rehearsal")
    assert set(rehearsal.protocols) == set(get_args(Protocol))
    assert not rehearsal.needs_key
    assert rehearsal.default_model == "rehearsal"


def test_only_messages_calls_and_googles_streams_may_carry_a_query():
    for name in provider_names():
        for route in get_provider(name).routes:
            expected = {"beta"} if "/messages" in route.path else set()
            expected |= {"alt"} if ":streamGenerateContent" in route.path else set()
            assert route.query == expected


def test_an_unknown_provider_is_refused_naming_the_known_ones():
    with pytest.raises(UnknownProvider, match="anthropic, openai, openrouter"):
        get_provider("antropic")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://models.example", Endpoint("https", "models.example", 443)),
        ("models.example:8443", Endpoint("https", "models.example", 8443)),
        ("HTTPS://Models.Example/", Endpoint("https", "models.example", 443)),
        ("http://127.0.0.1:8080", Endpoint("http", "127.0.0.1", 8080)),
        ("http://[::1]:9", Endpoint("http", "::1", 9)),
    ],
)
def test_an_upstream_is_read(text, expected):
    assert parse_endpoint(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "https://",
        "ftp://a",
        "https://a/v1",
        "https://a//",
        "https://a?x=1",
        "https://a/?x",
        "https://a#f",
        "https://user:hunter2@a",
        "https://a:0",
        "https://a:65536",
        "https://a:",
        "https://a:8o",
        "https://a b",
        "https://a\r\nhost: b",
        "https://[::1",
        "https://::1",
        "https://[fe80::1%eth0]",
        "https://-a",
        "https://a..b",
        "https://ünicode.example",
        "https://a:80:80",
        "https:///a",
    ],
)
def test_what_is_no_upstream_is_refused_without_repeating_it(text):
    with pytest.raises(InvalidUpstream) as caught:
        parse_endpoint(text)
    assert "hunter2" not in str(caught.value)


def test_plaintext_goes_to_this_machine_or_nowhere_unless_told_otherwise():
    compat = get_provider("openai-compat")
    assert with_upstream(compat, "http://localhost:1").host == "localhost"
    assert with_upstream(compat, "http://127.9.9.9:1").port == 1
    with pytest.raises(InvalidUpstream, match="insecure"):
        with_upstream(compat, "http://10.0.0.8:8080")
    assert with_upstream(compat, "http://10.0.0.8:8080", insecure=True).host == "10.0.0.8"
    assert with_upstream(compat, "10.0.0.8:8443").scheme == "https"


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("localhost.example", False),
        ("127.0.0.1.example", False),
        ("0.0.0.0", False),  # noqa: S104
        ("2130706433", False),
    ],
)
def test_loopback_is_a_literal_address_or_localhost(host, expected):
    assert is_loopback(host) is expected


def test_the_host_header_has_the_port_only_where_it_matters():
    assert Endpoint("https", "a.example", 443).authority == "a.example"
    assert Endpoint("http", "a.example", 443).authority == "a.example:443"
    assert Endpoint("http", "::1", 80).authority == "[::1]"


RECORD = """
[mine]
scheme = "https"
host = "models.example"
routes = [{ path = "/v1/chat/completions", protocol = "openai-chat" }]
"""


def test_a_provider_can_be_written_by_hand():
    mine = load_providers(RECORD)["mine"]
    assert (mine.host, mine.port, mine.auth_header) == ("models.example", None, "authorization")
    assert mine.routes[0].methods == {"POST"}
    assert mine.accepts == {"bearer"}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("scheme", "schema", "unknown key 'schema'"),
        ('scheme = "https"', "", "scheme is missing"),
        ('"models.example"', "7", "host must be a str"),
        ('"models.example"', '"models.example/v1"', "no path"),
        ('"models.example"', '"models.example"\nport = 70000', "between 1 and 65535"),
        ('"models.example"', '"models.example"\nneeds_key = "no"', "needs_key must be a bool"),
        ("openai-chat", "openai-talk", "no protocol 'openai-talk'"),
        ("/v1/chat/completions", "/v1//chat", "no canonical path"),
        ("/v1/chat/completions", "/v1/../chat", "no canonical path"),
        ("/v1/chat/completions", "v1/chat", "no canonical path"),
        ("path =", 'methods = ["DELETE"], path =', "methods are some of GET, POST"),
        ("path =", "methods = [], path =", "methods are some of"),
        ("path =", 'accepts = ["cookie"], path =', "accepts are some of"),
        ("path =", 'query = ["a b"], path =', "query is a list"),
        ("[mine]", "[Mine]", "lower-case"),
        ("[mine]", "[mine", "no TOML"),
        ('routes = [{ path = "/v1/chat/completions", protocol = "openai-chat" }]', "routes = []",
         "needs routes"),
    ],
)  # fmt: skip
def test_a_record_with_a_mistake_is_refused_naming_it(old, new, words):
    with pytest.raises(InvalidProvider, match=words):
        load_providers(RECORD.replace(old, new))


def test_an_exported_key_goes_to_no_address_it_was_not_named_for():
    """C-4: a real OPENAI_API_KEY in the environment is not for whatever --upstream says."""
    compat = get_provider("openai-compat")
    assert compat.key_env == ""
    assert with_upstream(compat, "https://models.example").key_env == ""
    named = with_upstream(compat, "https://models.example", key_env="MINE_API_KEY")
    assert named.key_env == "MINE_API_KEY"
    assert with_upstream(get_provider("openai"), "https://a.example").key_env == "OPENAI_API_KEY"
    with pytest.raises(InvalidUpstream, match="name of an environment variable"):
        with_upstream(compat, "https://models.example", key_env="sk-the key itself")


@pytest.mark.parametrize("path", ["/v1/{model}", "/v1/{model}:go", "/v1/{model}/talk"])
def test_a_route_may_have_one_segment_for_a_model(path):
    text = RECORD.replace("/v1/chat/completions", path)
    assert load_providers(text)["mine"].routes[0].path == path


@pytest.mark.parametrize(
    "path",
    ["/v1/{name}", "/{model}/{model}", "/v1/a{model}", "/v1/{model}a", "/v1/{model}:", "/a:b"],
)
def test_a_path_that_stands_for_more_than_a_model_is_refused(path):
    with pytest.raises(InvalidProvider, match="no canonical path"):
        load_providers(RECORD.replace("/v1/chat/completions", path))


def test_each_provider_that_needs_a_key_says_where_it_can_be_tried():
    asked = {name: get_provider(name).preflight for name in provider_names()}
    assert asked == {
        "anthropic": "/v1/models",
        "openai": "/v1/models",
        "openrouter": "/api/v1/key",
        "gemini": "/v1beta/models",
        "openai-compat": "",
        "rehearsal": "",
    }
    assert get_provider("anthropic").preflight_headers == (("anthropic-version", "2023-06-01"),)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('preflight = "https://evil.example/"', "canonical path"),
        ('preflight = "/v1/../x"', "canonical path"),
        ('preflight = "/v1/{model}"', "canonical path"),
        ('preflight_headers = { "X-A" = "b" }', "lower case"),
        ('preflight_headers = { x-a = "b\\r\\nhost: evil" }', "plain texts"),
        ("preflight_headers = { x-a = 5 }", "plain texts"),
        ('preflight_headers = "x"', "must be a dict"),
    ],
)
def test_a_preflight_that_asks_elsewhere_or_more_is_refused(line, words):
    with pytest.raises(InvalidProvider, match=words):
        load_providers(RECORD.replace("host =", f"{line}\nhost ="))


def test_a_variable_name_in_a_record_is_one():
    text = RECORD.replace("host =", 'key_env = "$(id)"\nhost =')
    with pytest.raises(InvalidProvider, match="environment variable"):
        load_providers(text)
