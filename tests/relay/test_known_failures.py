"""Failures that other relays had: each has a test here that fails when it comes back.

The first column is a number of the project's list of known failures of the first program (R-…),
or a public report about another one.
"""

from __future__ import annotations

import importlib

import pytest

KNOWN = [
    ("R-1", "policy_models", "test_no_other_field_lets_another_model_in"),
    ("R-2", "policy_models", "test_a_body_that_can_be_read_in_two_ways_is_refused"),
    ("R-2", "policy_models", "test_what_goes_out_is_encoded_from_what_was_judged"),
    ("R-3", "policy_output", "test_a_value_that_is_no_limit_becomes_the_cap"),
    ("R-3", "policy_output", "test_no_other_spelling_gets_round_the_cap"),
    ("R-3", "policy_output", "test_several_answers_are_one"),
    ("R-3", "policy_output", "test_a_thinking_budget_stays_where_anthropic_takes_it"),
    ("R-4", "strict_json", "test_arbitrary_bytes_are_refused_in_words_or_read"),
    ("R-4", "gate", "test_a_token_that_is_not_the_token_is_refused"),
    ("R-5", "gate_bodies", "test_large_bodies_together_cannot_fill_the_memory"),
    ("R-5", "server", "test_a_head_that_trickles_in_is_not_waited_for"),
    ("R-6", "spending_reservations", "test_a_client_that_owes_its_body_holds_up_nobody"),
    ("R-6", "spending_left_answers", "test_an_answer_that_is_still_read_holds_up_nobody_who_fits"),
    ("R-7", "streaming", "test_an_answer_that_is_cut_never_ends_cleanly"),
    ("R-8", "streaming", "test_silence_in_the_answer_cuts_it_but_a_slow_answer_does_not"),
    ("R-9", "usage", "test_a_document_of_a_megabyte_is_read_whole"),
    ("R-9", "usage", "test_a_stream_tells_its_usage_in_any_encoding_and_framing"),
    ("R-9", "spending_costs", "test_a_cost_the_provider_reports_outranks_the_table"),
    ("R-9", "spending_costs", "test_a_cost_that_is_no_sum_of_money_never_lets_a_run_go_on"),
    ("R-9", "budget", "test_a_budget_that_would_never_trigger_is_refused"),
    ("R-10", "gate", "test_what_is_not_exactly_a_route_is_refused_by_name"),
    ("R-11", "streaming", "test_answers_without_a_body_have_none"),
    ("R-11", "server", "test_http_1_0_is_refused"),
    ("R-12", "headers", "test_duplicate_headers_are_kept_in_their_order"),
    ("R-12", "headers", "test_headers_of_one_hop_and_those_connection_names_stay_behind"),
    ("R-13", "proxies", "test_an_https_upstream_is_reached_in_a_tunnel_that_is_kept_open"),
    ("R-14", "streaming", "test_one_connection_to_the_provider_serves_many_calls"),
    ("R-15", "bodies", "test_a_call_is_its_body_its_outcome_and_a_line"),
    ("R-15", "policy_models", "test_only_an_allowed_model_passes_on_every_route"),
    ("R-16", "policy_routes", "test_an_added_path_passes_beside_the_routes_that_were_there"),
    ("R-16", "policy_routes", "test_a_route_cannot_be_replaced"),
    ("R-17", "providers", "test_each_provider_has_exactly_its_routes"),
    ("R-18", "policy_models", "test_a_policys_refusal_has_the_callers_error_shape"),
    ("C-4", "providers", "test_an_exported_key_goes_to_no_address_it_was_not_named_for"),
    ("litellm#34732", "budget", "test_whatever_happens_in_whatever_order_one_call_at_most_crosses"),
    ("litellm#27381", "selftest", "test_a_relay_whose_cap_is_not_consulted_does_not_start"),
    ("litellm#38176", "spending_ceiling", "test_no_route_is_left_out_of_the_count"),
    ("litellm#40020", "spending_costs", "test_each_call_of_a_run_is_added_up"),
    (
        "litellm#14457",
        "spending_left_answers",
        "test_an_answer_its_client_left_is_read_to_its_end_and_charged",
    ),
    (
        "litellm#35958",
        "spending_left_answers",
        "test_an_answer_that_does_not_end_in_time_is_closed_and_its",
    ),
    ("litellm#20615", "prices", "test_a_table_of_ones_own_is_laid_over_the_shipped_one"),
    ("gh-aw-firewall#4310", "usage", "test_the_raw_object_is_kept_as_the_provider_wrote_it"),
    ("gh-aw-firewall#5203", "prices", "test_a_call_costs_what_its_tokens_cost"),
    ("multica#4076", "spending_costs", "test_an_answer_that_is_cut_is_charged_as_far_as_it_came"),
    ("openclaw/lobster#131", "spending_left_answers", "test_a_call_its_client_left_counts_as_one"),
]


@pytest.mark.parametrize(("failure", "module", "test"), KNOWN)
def test_a_known_failure_has_its_test(failure, module, test):
    names = vars(importlib.import_module(f"tests.relay.test_{module}"))
    assert any(name.startswith(test) for name in names), f"{failure} has lost its test"
