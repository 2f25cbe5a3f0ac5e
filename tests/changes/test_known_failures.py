"""The known holes (S-1 to S-18) and bugs (S-19 to S-40) of the second program, and their tests.

The second column says what must hold here. A test is named, not its file: files are split.
`test_reported_failures` has what public reports say of other programs.
"""

from __future__ import annotations

import pytest

from tests.relay.test_design_map import all_tests

HOLES = (
    (
        "S-1: the box writes host files before any review, through its own listing tools",
        "the host reads by itself, no-follow, and keeps contents under ids of its own",
        "test_a_name_names_no_path_of_this_host",
        "test_everything_else_is_refused_by_name",
        "test_nothing_is_read_through_a_link_or_from_a_pipe",
        "test_a_link_is_taken_as_a_link_and_never_followed",
    ),
    (
        "S-2: accepting runs the agent's code on the host",
        "no checkout, no index of the person's, no hook and no filter",
        "test_no_hook_and_no_filter_runs",
        "test_work_tree_index_and_head_are_not_touched",
        "test_no_hook_of_the_repository_is_started",
    ),
    (
        "S-3: another path lands than the one that was read",
        "paths come from our own trees, and no setting shapes them",
        "test_no_setting_of_the_account_shapes_the_patch",
        "test_nothing_in_the_clones_configuration_is_run_or_believed",
        "test_base_and_patch_make_exactly_the_tree",
    ),
    (
        "S-4: attributes hide every change from the flags",
        "attributes of the agent, or of the change itself, hide nothing",
        "test_attributes_of_either_tree_hide_no_line",
        "test_attributes_the_agent_writes_hide_nothing",
        "test_an_attribute_that_comes_with_the_change_hides_nothing",
    ),
    (
        "S-5: the tests are forged in the agent's own tree",
        "base and stored patch, in a fresh box without a network",
        "test_they_see_the_base_with_the_patch_and_nothing_else",
        "test_a_record_that_a_test_prints_makes_it_no_greener",
        "test_the_directory_holds_exactly_the_tree_and_is_gone_after_it",
        "test_only_a_status_of_zero_of_a_run_that_ended_well_is_green",
        "test_the_command_is_the_persons_then_the_operators_then_the_installations",
    ),
    (
        "S-6: the whole work tree, its configuration and its history can be read",
        "one bundle of the base commit goes in",
        "test_no_configuration_remote_or_untracked_file_goes_in",
        "test_no_other_branch_goes_in",
        "test_history_stays_behind_unless_it_is_asked_for",
    ),
    (
        "S-7: an open network and the key in the environment are the default",
        "sealed is the default, and the container holds no key",
        "test_the_default_mode_can_be_changed_and_proxy_means_sealed",
        "test_the_container_holds_none_of_the_keys",
        "test_the_box_has_no_network_no_model_and_no_key",
    ),
    (
        "S-8: the list of allowed hosts lets data out",
        "names and ports are exact, and the provider is never reached around the relay",
        "test_name_and_port_are_exact",
        "test_the_model_provider_is_never_reached_by_name",
        "test_the_model_provider_is_never_reached_through_a_shared_edge",
    ),
    (
        "S-9: the broker is an open relay for keys",
        "a run's own token, worth nothing elsewhere, and nothing that listens on a bridge",
        "test_only_the_runs_token_opens_the_relay",
        "test_one_runs_token_is_worth_nothing_in_another",
        "test_a_token_is_compared_whole_and_in_constant_time",
    ),
    (
        "S-10: a negative or chunked length gets around the cap of a body",
        "lengths are read strictly, and the cap holds while it is read",
        "test_ambiguous_framing_and_malformed_headers_reach_nobody",
        "test_a_body_over_the_limit_is_refused_and_reaches_nobody",
        "test_a_chunked_request_arrives_with_its_length",
    ),
    (
        "S-11: a network without a way out still reaches the host",
        "no network at all but the link's loopback, and it is probed before the agent starts",
        "test_the_same_probe_finds_the_holes_of_an_internal_bridge",
        "test_from_a_sealed_container_nothing_answers_but_the_relay",
    ),
    (
        "S-12: links, modes and repositories in a patch pass unseen",
        "the list of changes is typed, and what cannot land exactly is refused by name",
        "test_a_link_is_flagged_by_where_it_leads",
        "test_no_spelling_of_gits_own_directory_lands",
        "test_a_mode_only_change_is_flagged",
        "test_a_nested_repository_is_refused_by_name_and_can_be_asked_for",
        "test_a_new_name_that_another_system_takes_for_one_there_is_refused",
        "test_a_hostile_gitmodules_is_refused_and_the_rest_lands",
    ),
    (
        "S-13: what an agent wrote moves the terminal",
        "nothing of an agent is printed as it is",
        "test_nothing_an_agent_wrote_reaches_the_terminal_as_it_is",
        "test_hostile_names_and_lines_are_text_and_what_hides_is_marked",
        "test_a_hostile_name_is_told_printably",
        "test_whatever_it_is_given_it_is_safe_to_print",
    ),
    (
        "S-14: the bridge to a browser outside of the box does not work",
        "there is no bridge: a browser is in the image, and held as the box is",
        "test_a_browser_in_the_image_answers_and_is_held_as_the_box_is",
        "test_a_browser_that_is_not_held_is_found",
    ),
    (
        "S-15: what was reviewed is not bound to what is applied",
        "a decision names a digest, and the store must still hold exactly that",
        "test_another_digest_than_the_one_that_was_read_is_refused",
        "test_what_the_store_holds_must_be_what_was_reviewed",
        "test_a_row_that_was_altered_between_decision_and_landing_lands_nothing",
        "test_what_the_store_holds_must_be_what_was_read",
        "test_a_green_of_the_attempt_before_is_not_this_ones",
        "test_a_change_that_was_revised_while_its_tests_ran_is_not_accepted_on_them",
    ),
    (
        "S-16: the host's memory is filled by what a box prints or leaves",
        "everything is capped where it comes in",
        "test_a_gigabyte_of_output_leaves_its_end_and_how_much_it_was",
        "test_an_endless_line_is_cut_and_memory_stays_small",
        "test_no_more_is_read_than_there_is_room_for",
        "test_more_output_than_the_limit_stops_it",
    ),
    (
        "S-17: words for the engine get past a list of bad ones; no quota; root",
        "words are made from a typed order, and nobody is root",
        "test_every_container_is_hardened",
        "test_only_a_numeric_user_that_is_not_root_is_taken",
        "test_the_pids_limit_holds",
        "test_a_disk_that_fills_ends_it_without_an_answer",
        "test_processes_without_end_are_its_own_trouble",
    ),
    (
        "S-18: a stored skill is an injection that lasts, approved unread",
        "its text is read, scanned, approved by its digest, versioned and revoked",
        "test_a_proposal_is_given_to_nobody_until_it_is_approved",
        "test_a_decision_is_on_the_text_that_was_read_and_final",
        "test_what_stands_out_in_a_text_needs_a_reason",
        "test_a_revoked_skill_is_given_to_nobody_and_brings_no_older_one_back",
    ),
)

WRONG = (
    (
        "S-19: the proxy does not work with the real clients",
        "each is pointed at the relay in its own way, answers stream, slow ones hold back",
        "test_it_works_sealed_and_its_work_is_real",
        "test_each_event_arrives_when_it_is_sent_not_when_the_answer_ends",
        "test_a_slow_client_holds_the_provider_back",
        "test_a_slow_reader_holds_the_sender_back",
    ),
    (
        "S-20: drivers of two agents are broken as they were shipped",
        "each is run for real, and its default model is its own",
        "test_it_works_sealed_with_every_protocol_it_speaks",
        "test_codex_is_told_the_relay_by_flags",
        "test_an_unknown_agent_makes_no_row_and_no_container",
    ),
    (
        "S-21: what is missing for accepting is found after the branch was made",
        "it is found first, and accepting again goes on where it stopped",
        "test_without_a_name_to_commit_with_nothing_is_decided",
        "test_accepting_again_what_is_to_land_goes_on_with_it",
        "test_landing_again_finds_what_was_landed",
    ),
    (
        "S-22: accepting is neither safe from a crash nor alone",
        "one conditional UPDATE decides, and landing again finds what it made",
        "test_of_a_yes_and_a_no_at_the_same_moment_one_is_heard",
        "test_a_crash_at_any_step_is_made_good_by_landing_again",
        "test_a_crash_after_the_branch_was_made_ends_in_the_same_commit",
        "test_of_eight_that_land_at_once_on_one_branch_all_agree",
        "test_a_change_that_was_revised_while_its_tests_ran_is_not_accepted_on_them",
    ),
    (
        "S-23: text that is no UTF-8 is spoilt without a word",
        "bytes from end to end",
        "test_bytes_that_are_no_text_land_as_they_are",
        "test_any_name_a_file_may_have_lands_exactly",
    ),
    (
        "S-24: there are two ways to land, with different limits",
        "one way, with one limit",
        "test_a_patch_over_the_limit_is_an_error_and_not_a_shorter_patch",
        "test_an_attempt_that_changes_nothing_is_none",
    ),
    (
        "S-25: lines of a file are taken for headers of the patch",
        "paths are listed by git's plumbing, and lines are counted",
        "test_lines_that_look_like_headers_are_content",
        "test_lines_that_look_like_a_patchs_own_are_lines",
        "test_a_line_separator_of_another_kind_hides_no_line",
    ),
    (
        "S-26: changes of mode, binary and empty files are not seen",
        "each kind of change is named",
        "test_each_kind_of_change_is_named",
        "test_a_mode_only_change_is_flagged",
        "test_empty_files_are_not_taken_for_renamed_ones",
        "test_each_binary_is_named",
    ),
    (
        "S-27: files that are ignored but were added vanish when it is accepted",
        "what the base's rules leave out is counted, and can be asked for",
        "test_force_added_files_count_as_ignored_since_the_agents_index_is_not_read",
        "test_ignored_files_are_taken_when_they_are_asked_for",
        "test_rules_of_the_account_leave_nothing_out",
    ),
    (
        "S-28: a repository in the repository becomes a link to nothing",
        "it is refused by name, and its files can be asked for",
        "test_a_nested_repository_is_refused_by_name_and_can_be_asked_for",
        "test_a_repository_made_of_a_tracked_directory_hides_none_of_its_files",
    ),
    (
        "S-29: a revision that fails destroys the work that was reviewed",
        "an attempt is never altered, and the one before is reviewed again",
        "test_a_failed_revision_leaves_the_reviewed_work_to_be_accepted",
        "test_every_attempt_is_kept_with_what_it_was_asked_for",
        "test_an_attempt_and_its_flags_are_never_changed_or_deleted",
        "test_a_revision_starts_from_the_work_before_and_a_failed_one_takes_nothing_away",
        "test_a_killed_revision_leaves_the_attempt_before_it",
    ),
    (
        "S-30: a clean run that mentions an engine's socket is destroyed",
        "what is written about is text",
        "test_a_text_about_sockets_and_privileges_is_a_text",
    ),
    (
        "S-31: what collects leftovers takes what others need",
        "only what carries our own label and whose process is provably gone",
        "test_when_the_engine_cannot_be_asked_nothing_is_concluded",
        "test_sweeping_removes_only_what_is_ours_and_belongs_to_no_live_run",
        "test_only_what_nobody_needs_is_collected",
        "test_nothing_goes_where_nothing_could_be_listed",
        "test_one_whose_process_lives_is_left_alone",
        "test_a_directory_whose_process_is_gone_is_removed_and_others_stay",
        "test_tests_whose_process_is_gone_are_no_answer",
    ),
    (
        "S-32: a skill that cannot be given leaves its task stuck",
        "a damaged one is not given, and spoils no other",
        "test_a_row_that_was_altered_is_neither_approved_nor_given",
        "test_one_that_is_none_is_refused_and_spoils_no_other",
        "test_killed_before_any_step_it_is_ended_by_the_next_look",
    ),
    (
        "S-33: conflicts are those of another repository, and the branch is not asked",
        "trees are merged, of one repository, with each that waits and with the branch",
        "test_one_that_is_decided_or_of_another_repository_is_in_nobodys_way",
        "test_two_that_write_the_same_line_are_named_to_each_other_with_the_path",
        "test_where_the_branch_moved_on_is_seen_only_where_both_changed",
    ),
    (
        "S-34: the agent's account of its work breaks the host",
        "it is commentary, read strictly or left aside",
        "test_an_account_that_is_none_is_left_aside_and_harms_nothing",
        "test_a_claim_that_differs_from_what_changed_is_flagged",
        "test_an_account_is_optional",
    ),
    (
        "S-35: a budget that is no number is none",
        "it is a finite amount, metered by the relay and reserved before it is spent",
        "test_a_budget_that_would_never_trigger_is_refused",
        "test_whatever_happens_in_whatever_order_one_call_at_most_crosses_the_ceiling",
        "test_a_strict_budget_is_never_crossed",
        "test_what_is_left_is_shared_among_those_that_wait_and_comes_back_when_not_spent",
    ),
    (
        "S-36: what is stopped goes on in its container",
        "the container goes with all that was started in it",
        "test_one_that_never_ends_is_timed_out_with_all_it_started",
        "test_a_signal_during_the_run_ends_it_promptly",
        "test_it_can_be_cancelled_from_elsewhere",
        "test_a_killed_process_is_followed_by_its_containers_within_two_seconds",
    ),
    (
        "S-37: a shell ignores its flags, and a task with a dash is one",
        "the box is the agent's, and a task is a task",
        "test_the_box_is_the_one_an_agent_gets",
        "test_a_task_that_begins_with_a_dash_is_no_flag",
    ),
    (
        "S-38: there are repositories it cannot take",
        "they are handled, or refused with what to do, and what was left out is said",
        "test_a_linked_work_tree_has_its_own_head",
        "test_a_subdirectory_stands_for_its_repository",
        "test_a_repository_that_borrows_its_objects_is_provided_whole",
        "test_a_partial_clone_is_refused_without_fetching",
        "test_the_repository_may_stand_anywhere",
        "test_what_is_not_committed_is_said",
    ),
    (
        "S-39: a commit does not say who wrote and who accepted it",
        "the agent is the author, the person the committer, and trailers nobody can add to",
        "test_the_agent_is_the_author_and_the_person_the_committer",
        "test_a_message_has_one_subject_and_only_our_trailers",
        "test_git_sees_only_our_trailers",
        "test_an_account_without_a_name_has_no_identity",
        "test_the_commits_of_an_agent_land_one_by_one",
        "test_an_agent_cannot_write_a_trailer_of_ours",
    ),
    (
        "S-40: there is no list, no patch to see, and no reason for a no",
        "all of it is kept, listed and shown",
        "test_the_list_is_narrowed_by_repository_state_batch_and_age",
        "test_the_patch_in_a_pipe_is_taken_by_git_as_it_is",
        "test_a_rejection_needs_a_reason_and_ends_it",
        "test_who_decided_and_on_what_is_kept",
    ),
)

KNOWN = (*HOLES, *WRONG)


@pytest.mark.parametrize("known", KNOWN, ids=[known[0].partition(":")[0] for known in KNOWN])
def test_a_known_failure_has_its_tests(known: tuple[str, ...]):
    failure, _, *tests = known

    assert tests
    assert [test for test in tests if test not in all_tests()] == [], failure


@pytest.mark.parametrize("number", [f"S-{number}" for number in range(1, 41)])
def test_every_failure_of_the_second_program_is_in_the_map(number: str):
    assert [each[0].partition(":")[0] for each in KNOWN].count(number) == 1
