"""Each rule of the relay's design, and each failure of others, beside the test that holds it.

The test fails without the rule. `test_known_failures` has the first program's R-… and what public
reports say of budgets; here is the rest. A test is named, not its file: files are split.
"""

from __future__ import annotations

import ast
import functools
import importlib
from pathlib import Path

import pytest

from tests.relay.test_known_failures import KNOWN

TESTS = Path(__file__).parents[1]

RULES = {
    "in: the token before anything else": "test_the_token_comes_before_every_other_rule",
    "in: the token in constant time": "test_a_token_is_compared_whole_and_in_constant_time",
    "in: method and raw path equal a route": "test_what_is_not_exactly_a_route_is_refused_by_name",
    "in: a route goes on byte for byte": "test_what_is_a_route_is_sent_on_byte_for_byte",
    "in: only the query keys of a route": "test_only_messages_calls_and_googles_streams_may_carry_"
    "a_query",
    "in: one {model} segment, judged": "test_a_model_in_the_path_is_judged_like_one_in_the_body",
    "in: nothing but a segment in it": "test_what_could_be_more_than_a_models_name_does_not_pass",
    "in: no CONNECT": "test_a_connect_request_opens_no_tunnel",
    "in: exactly one Host": "test_a_request_has_exactly_one_host",
    "in: 426 at once": "test_a_websocket_upgrade_is_answered_426_at_once_and_closed",
    "in: the body has a cap": "test_a_body_over_the_limit_is_refused_and_reaches_nobody",
    "in: JSON is strict": "test_what_two_readers_may_read_differently_is_refused",
    "in: re-serialised": "test_what_goes_out_is_encoded_from_what_was_judged",
    "in: the caller's error shape": "test_a_policys_refusal_has_the_callers_error_shape",
    "in: the smallest change": "test_a_refusal_names_the_flag_that_would_allow_it_and_what_is_"
    "allowed",
    "policy: models": "test_only_an_allowed_model_passes_on_every_route",
    "policy: every field that names one": "test_no_other_field_lets_another_model_in",
    "policy: presets": "test_a_preset_can_be_allowed_by_name",
    "policy: the output cap": "test_a_limit_is_lowered_added_or_left_alone",
    "policy: every field that bounds output": "test_no_other_spelling_gets_round_the_cap",
    "policy: n": "test_several_answers_are_one",
    "policy: hosts of the egress door": "test_name_and_port_are_exact",
    "policy: never the provider's host": "test_the_model_provider_is_never_reached_by_name",
    "out: the upstream is fixed": "test_the_host_is_the_providers_whatever_the_client_says",
    "out: credentials are dropped": "test_the_key_takes_the_place_of_every_credential",
    "out: hop headers are dropped": "test_headers_of_one_hop_and_those_connection_names_stay_"
    "behind",
    "out: no redirect with a key": "test_a_redirect_is_handed_back_and_never_followed",
    "out: connections are reused": "test_one_connection_to_the_provider_serves_many_calls",
    "out: TLS is kept open": "test_tls_is_verified_against_the_usual_ca_file_and_kept_open",
    "back: as they arrive": "test_each_event_arrives_when_it_is_sent_not_when_the_answer_ends",
    "back: identical bytes": "test_the_bytes_are_identical_and_the_call_is_metered",
    "back: a cut is a cut": "test_an_answer_that_is_cut_never_ends_cleanly",
    "back: idle, not total": "test_silence_in_the_answer_cuts_it_but_a_slow_answer_does_not",
    "back: the client left, it is charged": "test_an_answer_its_client_left_is_read_to_its_end_and_"
    "charged",
    "back: the client left, it is closed": "test_without_a_budget_an_answer_its_client_left_is_"
    "closed_at_once",
    "meter: any encoding and framing": "test_a_stream_tells_its_usage_in_any_encoding_and_framing",
    "meter: totals are not summed": "test_running_totals_are_not_summed",
    "meter: the raw object": "test_the_raw_object_is_kept_as_the_provider_wrote_it",
    "meter: the provider's cost first": "test_a_cost_the_provider_reports_outranks_the_table",
    "meter: unknown is not 0": "test_the_total_says_how_well_it_is_known",
    "budget: reserved before, settled after": "test_calls_stay_parallel_while_they_fit_and_the_"
    "next_waits",
    "budget: what does not fit goes alone": "test_a_call_that_does_not_fit_goes_alone_and_crosses_"
    "by_itself_only",
    "budget: the first call runs": "test_the_first_call_of_a_small_budget_goes",
    "budget: strict": "test_a_strict_budget_lowers_the_output_to_what_is_left",
    "budget: 402 when nothing is left": "test_when_nothing_is_left_a_call_is_refused_with_what_was_"
    "spent",
    "bodies: outside of every mount": "test_a_log_the_agent_could_reach_is_refused",
    "bodies: a file and its outcome": "test_a_call_is_its_body_its_outcome_and_a_line",
    "bodies: age and size": "test_the_oldest_of_all_runs_make_room",
    "a provider is a record": "test_a_provider_can_be_written_by_hand",
    "a route names methods, protocol, headers": "test_each_provider_has_exactly_its_routes",
    "rehearsal speaks every protocol": "test_the_relay_reads_its_usage_in_every_protocol",
    "the door: real clients": "test_pip_downloads_through_the_door_of_a_sealed_container",
    "the door: and nothing else": "test_whatever_is_not_listed_is_refused_to_the_container_that_"
    "pip_works_in",
}

REPORTED = {
    # the first program's command line (C-…)
    "C-4 base-url without a check": "test_an_address_that_would_leak_the_key_or_is_none_is_refused",
    "C-4 a preflight that follows redirects": "test_a_redirect_is_not_followed",
    "C-4 an exported key for any upstream": "test_an_exported_key_goes_to_no_upstream_by_itself",
    "C-4 -e OPENAI_API_KEY": "test_a_key_cannot_be_lent_to_a_sealed_container",
    "C-5 a key with a line break": "test_a_key_with_a_line_break_is_never_printed",
    "C-5 in the relay": "test_a_key_that_is_no_header_value_is_refused_without_printing_it",
    "C-6 402, 429 and 5xx": "test_a_status_is_told_apart_by_what_to_do_about_it",
    "C-6 an answer that is no HTTP": "test_an_answer_that_is_no_http_is_told_in_words",
    "C-6 addresses that are none": "test_what_is_no_upstream_is_refused_without_repeating_it",
    "C-6 a user name in the address": "test_a_password_in_a_url_is_refused_and_not_repeated",
    # keys and tokens
    "deer-flow#2534": "test_the_container_holds_none_of_the_keys",
    "NemoClaw#429": "test_no_key_is_in_a_builds_words_or_files",
    "NemoClaw#1741": "test_no_key_is_in_a_builds_words_or_files",
    "jailoc#64": "test_hidden_files_are_empty_and_stay_as_they_were",
    "codex#85": "test_a_setting_hides_in_every_run_and_no_flag_takes_it_back",
    "scion PR 1364": "test_nothing_secret_shows_when_a_call_fails",
    "gh-aw-firewall#3022": "test_only_the_runs_token_opens_the_relay",
    "gh-aw-firewall#3022 dead at the end": "test_the_run_token_is_in_no_argument_and_dies_with_the_"
    "run",
    "vm0#9560": "test_what_is_not_exactly_a_route_is_refused_by_name",
    "vm0#14412": "test_the_host_is_the_providers_whatever_the_client_says",
    "opensandbox PR 1193": "test_a_request_has_exactly_one_host",
    "httpjail#57": "test_an_absolute_target_that_contradicts_its_host_reaches_nobody",
    "OpenShell PR 878": "test_no_target_but_a_route_passes_the_gate",
    "opensandbox PR 1192": "test_what_is_a_route_is_sent_on_byte_for_byte",
    "proving-ground#28": "test_a_key_that_an_agent_printed_is_kept_nowhere",
    # budgets and meters
    "openclaw#121729": "test_a_lost_run_keeps_what_its_calls_cost_as_a_lower_bound",
    "vm0#8752": "test_the_gap_to_the_providers_figure_is_shown",
    "OpenLore PR 364": "test_without_a_budget_an_answer_its_client_left_is_closed_at_once",
    "archestra PR 6963": "test_no_more_calls_go_out_than_allowed_and_refused_ones_do_not_count",
    # streams
    "litellm#28384": "test_each_event_arrives_when_it_is_sent_not_when_the_answer_ends",
    "litellm PR 29557": "test_each_event_arrives_when_it_is_sent_not_when_the_answer_ends",
    "OpenShell#641": "test_silence_in_the_answer_cuts_it_but_a_slow_answer_does_not",
    "OpenShell#866": "test_silence_before_the_answer_is_a_504_in_the_callers_protocol",
    "OpenShell#829": "test_an_answer_that_is_cut_never_ends_cleanly",
    "SillyTavern PR 6007": "test_no_encoding_is_asked_for_that_cannot_be_read",
    "litellm PR 35601": "test_the_encodings_offered_are_narrowed_on_the_way",
    "cc-switch PR 3901": "test_a_compressed_answer_passes_as_it_is_and_is_metered",
    "codex#19821": "test_a_websocket_upgrade_is_answered_426_at_once_and_closed",
    "billion-context PR 169": "test_a_websocket_upgrade_is_answered_426_at_once_and_closed",
    "codex#43353": "test_what_an_agent_writes_to_standard_error_fails_no_run",
    "claude-code-cache-fix PR 371": "test_a_connection_the_provider_closed_meanwhile_costs_no_call",
    "node#47130": "test_a_request_is_never_sent_twice",
    "ai-gateway#1360": "test_count_tokens_takes_the_same_query",
    "claude-code#808": "test_an_agent_looks_for_no_updates_and_reports_to_nobody",
    "claude-code#11220": "test_an_agent_looks_for_no_updates_and_reports_to_nobody",
    "claude-code#45067": "test_what_an_image_installs_has_one_version",
}


@functools.cache
def all_tests() -> frozenset[str]:
    """The names of all tests there are, read without importing any."""
    found = set()
    for file in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.add(node.name)
    return frozenset(found)


@pytest.mark.parametrize(("what", "test"), [*RULES.items(), *REPORTED.items()])
def test_a_rule_has_its_test(what: str, test: str):
    assert test in all_tests(), f"{what} has lost its test"


@pytest.mark.parametrize("number", [f"R-{number}" for number in range(1, 19)])
def test_every_failure_of_the_first_program_is_in_the_map(number: str):
    assert number in {failure for failure, _, _ in KNOWN}


def test_the_map_of_known_failures_names_modules_that_are_there():
    for _, module, _ in KNOWN:
        assert importlib.util.find_spec(f"tests.relay.test_{module}"), module
