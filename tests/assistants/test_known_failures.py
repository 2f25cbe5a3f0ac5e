"""Failures that others had with agents on a schedule, each beside the tests that hold it off.

The first column names public reports about other programs, or a number of the list of known
failures of the first program (S-…); the second says what must hold here. A test is named, not its
file: files are split.
"""

from __future__ import annotations

import pytest

from tests.relay.test_design_map import all_tests

CLOCKS = (
    (
        "hermes-agent#66436, hermes-agent#119969: an hour off when the clocks change",
        "a slot is read on the clock of its own zone, and the next five are shown",
        "test_a_set_time_comes_once_on_the_day_the_clock_is_moved",
        "test_what_comes_every_so_many_minutes_follows_the_real_ones",
        "test_next_tells_five_on_its_own_clock",
    ),
    (
        "hermes-agent#60703: a clock that stands still, and nobody sees it",
        "each look leaves a stamp; a cluster that looks at nothing is started again",
        "test_a_cluster_that_looks_at_nothing_is_seen_after_three_minutes",
        "test_an_idle_worker_that_is_killed_jams_the_cluster_only_until_it_is_seen",
    ),
    (
        "hermes-agent PR 62766, hermes-agent PR 7158: one that hangs blocks all, and overlaps",
        "one wakeup of each runs, one may wait, and all others go on",
        "test_a_slot_during_the_wakeup_before_is_skipped_or_waits_as_it_was_set",
        "test_waiting_slots_of_one_assistant_do_not_pile_up",
        "test_one_that_fails_one_that_is_broken_and_a_gate_that_hangs_delay_no_other",
        "test_every_slot_is_on_time_beside_a_receiver_that_hangs",
    ),
    (
        "hermes-agent#52542: all at once after a restart",
        "what is made up for is spread, and only so many run at a time",
        "test_what_is_made_up_for_after_a_restart_does_not_start_all_at_once",
        "test_only_so_many_are_started_at_once_the_others_wait_in_order",
        "test_runs_that_workers_were_asked_for_leave_no_room_for_a_wakeup",
    ),
    (
        "hermes-agent#5518: one without a next time never comes again",
        "a schedule without a next slot gets one, or it is told",
        "test_a_schedule_without_a_next_slot_gets_one",
        "test_an_enabled_one_that_no_slot_will_wake_is_told",
        "test_a_zone_that_is_gone_disables_its_assistant_and_delays_nobody",
    ),
    (
        "hermes-agent#59383: what was missed has vanished",
        "a slot that did not run keeps its row",
        "test_slots_that_were_missed_keep_a_row_with_the_reason",
        "test_history_keeps_the_reason_of_each_slot_that_did_not_run",
    ),
    (
        "hermes-agent#111212: run days late without a word",
        "how late is too late is said for each, and what was too late says so",
        "test_a_slot_the_host_slept_through_is_made_up_for_as_its_policy_says",
        "test_a_slot_that_found_no_room_for_too_long_is_missed",
        "test_a_host_that_is_up_four_hours_a_day_wakes_it_once_each_day",
    ),
    (
        "node-schedule#604, node-schedule#387: twice or never when the clock is set",
        "a planned slot is one row, whatever the clock does",
        "test_a_planned_slot_has_one_row_and_calls_by_hand_any_number",
        "test_after_the_clock_was_set_back_no_schedule_sleeps_until_it_is_there_again",
        "test_a_clock_that_steps_to_and_fro_leaves_a_slot_ahead_that_is_not_far",
        "test_passes_at_any_time_account_for_every_slot_once_with_few_rows",
    ),
)

DELIVERIES = (
    (
        "openclaw#27921, openclaw#27018, openclaw#81087: sent by the agent and by the scheduler",
        "an agent writes one item, and only the host sends",
        "test_a_success_consumes_its_messages_writes_one_item_and_forgets_failures",
        "test_an_approved_item_goes_to_each_destination_once",
    ),
    (
        "openclaw#102367: posted twice, then told as failed",
        "a delivery has a key that its receiver gets, and an end that may be unknown",
        "test_kill_9_in_the_middle_of_sending_is_unknown_and_never_sent_twice",
        "test_a_webhook_gets_json_a_key_and_a_signature_it_can_check",
        "test_ten_deliverers_at_once_send_once",
    ),
    (
        "openclaw#91990: told to deliver nothing, it delivers",
        "what is held or was refused goes nowhere, and holding is what a new one does",
        "test_a_held_item_waits_and_goes_nowhere",
        "test_what_waits_or_was_rejected_or_expired_is_never_sent",
        "test_a_first_assistant_holds_reviews_and_passes_its_own_add",
    ),
    (
        "hermes-agent#58818: a restart drops a result that was there",
        "the item is written in the transaction that ends the wakeup, by whoever ends it",
        "test_a_result_whose_process_died_before_writing_it_down_is_not_lost",
        "test_an_outbox_that_fails_ends_nothing_half",
        "test_the_item_is_undone_with_the_transaction_that_ends_its_wakeup",
    ),
    (
        "sutando#3633: one message became two tasks",
        "a source's own id arrives once",
        "test_the_same_source_id_arrives_once_even_after_it_was_read",
        "test_the_same_source_id_at_the_same_moment_arrives_once",
    ),
    (
        "scale-agentex PR 335: the task was one, the sending two",
        "the key is the delivery's: one for all of its attempts, another when sent on purpose",
        "test_a_failed_delivery_is_tried_again_later_and_later_and_given_up",
        "test_again_leaves_out_who_has_it_unless_all_have",
    ),
)

WORKERS = (
    (
        "django-q#183, django-q#307: started again while it still runs",
        "the queue only says where to look, and settings that would repeat it are errors",
        "test_a_setting_that_is_a_trap_is_an_error",
        "test_a_queued_run_is_claimed_and_executed_once",
    ),
    (
        "django-q2#142, django-q2#173: the worker died, the task hangs",
        "a dead process is found by its lease, and what it did is tried again, not for ever",
        "test_whichever_process_is_killed_the_wakeup_comes_again_by_itself",
        "test_killed_at_any_step_the_next_look_brings_it_to_one_whole_end",
        "test_an_interruption_is_no_failure_and_is_tried_again_at_most_three_times",
        "test_a_run_whose_bell_was_lost_is_rung_for_again_once",
    ),
    (
        "celery#5935, celery#3430, pretix#2058: what takes long is handed out again",
        "a second start finds that the first one has it",
        "test_a_wakeup_is_executed_once_however_many_try",
        "test_ten_looks_at_once_start_one_wakeup",
        "test_a_run_that_is_over_or_somebody_elses_is_left_alone",
    ),
    (
        "django-q#617, opencodelists#2251: the database is locked",
        "six writers at once, and nobody hears of a lock",
        "test_no_statement_was_refused",
        "test_it_survives_a_database_that_is_locked_for_less_than_the_lease",
    ),
    (
        "django_sqlite_benchmark PR 6: refused at once, whatever the time-out",
        "who reads before writing waits",
        "test_who_reads_before_writing_waits_for_the_other_and_loses_nothing",
        "test_in_the_usual_mode_of_sqlite_one_of_them_is_refused_at_once",
    ),
)

OWNERS = (
    (
        "OpenHands#9543, OpenHands#7013, OpenHands#3921, OpenHands#16869: files of root's",
        "the agent is who owns the directory, also where we make it",
        "test_the_agent_is_the_workdirs_owner",
        "test_a_missing_workdir_is_made_for_somebody_who_is_not_root",
        "test_all_that_is_restored_belongs_to_whom_the_workspace_belongs",
    ),
    (
        "openclaw#124179: a private directory that the engine cannot enter",
        "a file is written and read through a mount before anything starts",
        "test_a_daemon_that_does_not_see_our_files_is_refused",
        "test_it_works_sealed_for_a_normal_user_without_root",
    ),
    (
        "claude-code#9184, claude-code#3490, vibe-kanban#1996: refuses to work as root",
        "no agent is root",
        "test_the_agent_is_never_root",
        "test_root_is_refused",
    ),
)

INJECTION = (
    (
        "BojuBot#166: a poisoned memory stays, and nobody sees it",
        "memory waits for a person, and the next wakeup starts without it",
        "test_held_memory_waits_and_the_next_wakeup_starts_without_it",
        "test_a_same_size_edit_with_its_times_put_back_shows",
        "test_an_item_of_unreviewed_memory_says_so",
    ),
    (
        "hermes-agent#98587, fak#5155: what is read asks to be remembered and obeyed",
        "a message cannot leave its frame, and the gate does not depend on wording",
        "test_no_message_can_end_its_frame_or_pretend_to_be_the_brief",
        "test_rejected_memory_is_put_back_at_once_and_kept",
    ),
    (
        "claude-code#24330: the agent made an address up",
        "where items go is said on the host alone",
        "test_an_item_goes_where_the_host_says_whatever_stands_in_it",
        "test_destinations_are_those_of_the_file",
    ),
    (
        "crewAI#5057: memory became a part of the instructions",
        "the task is the brief, which the agent cannot write, and the messages",
        "test_the_task_is_the_brief_and_the_messages_and_nothing_of_its_memory",
        "test_a_gate_that_is_a_link_into_the_workspace_is_refused",
        "test_what_is_broken_ends_as_a_failure_with_its_reason",
    ),
)

OUTSIDE = (
    (
        "sandy#209, pi-sandbox#34: a link in the workspace reads the host",
        "no link is followed, by whatever reads what an agent left",
        "test_a_link_is_not_followed",
        "test_a_link_is_kept_as_a_link_and_what_it_names_is_not_read",
    ),
    (
        "agent-of-empires#3641: swapped between the check and the opening",
        "what was opened is judged, not its name",
        "test_a_name_that_becomes_a_link_between_listing_and_opening_is_not_followed",
        "test_a_directory_that_becomes_a_link_is_not_entered",
    ),
    (
        "sandbox-server PR 16: the host's own reading follows links",
        "reports and memory are read below a root that is no link either",
        "test_a_workspace_replaced_by_a_link_is_not_read",
        "test_the_root_itself_may_not_be_a_link",
    ),
    (
        "tracker#529: records in the agent's reach",
        "our own files are in no mount",
        "test_our_own_state_directory_is_refused",
        "test_a_workspace_and_the_state_directory_may_not_overlap",
        "test_no_body_log_and_no_copy_goes_among_our_own_files",
    ),
    (
        "nomad#28177: bringing a tree back follows links",
        "restoring follows none and makes no device, pipe or set-id file",
        "test_removing_follows_no_link",
        "test_pipes_and_sockets_are_named_and_do_not_block",
        "test_a_set_id_bit_is_not_kept_and_that_is_said",
    ),
)

APPROVALS = (
    (
        "activepieces#14024: who answered, and to what",
        "a decision keeps who, when, why and the digest of what was read",
        "test_every_decision_is_in_the_audit_record",
        "test_a_decision_binds_to_what_was_read",
    ),
    (
        "nanoclaw#2857, hermes-agent#20708, hermes-agent#35479: one person decides everything",
        "as many people as were asked for, and the author may be left out",
        "test_two_people_must_approve_and_one_is_never_two",
        "test_whoever_fed_it_or_asked_for_it_does_not_approve_it",
    ),
    (
        "orloj#135, orloj#159, orloj#160, flue#116, atryum#112: nobody knew that something waits",
        "it is told once, counted where people look, and ends when nobody decides",
        "test_items_that_wait_long_are_one_reminder_and_each_is_told_of_once",
        "test_list_counts_mail_and_items_and_names_the_state",
        "test_what_nobody_decides_in_time_expires_and_stays_so",
    ),
    (
        "community#162826: a click for each harmless thing",
        "an assistant's items may pass by policy, and what is risky in them waits all the same",
        "test_an_item_that_needs_no_approval_is_approved_by_the_policy_in_writing",
        "test_a_found_secret_blocks_approval_by_itself_and_a_person_needs_a_reason",
    ),
    (
        "OneCLI changelog #504: a decided item that still asks",
        "whoever comes second hears who was first, and when",
        "test_a_decision_is_final_whatever_comes_after",
        "test_a_memory_is_decided_on_once_and_the_second_hears_who_was_first",
    ),
)

LIMITS = (
    (
        "claude-code#36320, claude-code#26775, claude-code#92418: stopped by the provider's limit",
        "it waits until the reset and goes on by itself, and is not blamed",
        "test_a_provider_limit_waits_for_its_reset_and_counts_as_no_failure",
        "test_a_made_up_reset_time_cannot_stop_an_assistant_for_ever",
    ),
    (
        "superlog PR 154, codeframe PR 706, tokentimer-core#70: a webhook reads the inside",
        "the address that was checked is the one that is asked, in a test as in earnest",
        "test_the_address_that_was_checked_is_the_one_that_is_asked",
        "test_a_private_address_is_asked_only_when_that_was_allowed",
        "test_a_redirect_is_not_followed",
    ),
    (
        "shepherd#1925, orbi#572: a signal to somebody else's process",
        "a pid that was given away again is not the one that was meant",
        "test_a_recycled_pid_is_gone",
    ),
    (
        "the host's own troubles: no engine, no room, no key",
        "a slot that the host could not run is missed and blames no assistant",
        "test_an_engine_that_is_down_misses_the_slot_and_is_told_once_for_all",
        "test_the_host_is_blamed_for_what_it_lacks",
    ),
)

FIRST_PROGRAM = (
    (
        "S-1",
        "one that is broken, or has nothing to do, holds up nobody",
        "test_one_that_fails_one_that_is_broken_and_a_gate_that_hangs_delay_no_other",
        "test_nothing_to_do_is_said_and_is_no_failure",
        "test_what_is_broken_ends_as_a_failure_with_its_reason",
    ),
    (
        "S-2",
        "args that mean nothing end no process and leave no run open",
        "test_s2_args_that_run_does_not_know_are_refused_and_end_no_process",
        "test_args_that_run_would_not_take_are_refused_when_it_arrives",
    ),
    (
        "S-3",
        "nothing makes the loop look without end",
        "test_one_that_cannot_be_woken_does_not_make_serve_look_without_end",
        "test_with_nothing_to_do_serve_looks_once_per_interval",
        "test_zero_and_more_than_seven_days_are_refused",
        "test_a_nudge_rings_when_something_is_due_and_not_without_end",
    ),
    (
        "S-4",
        "what an agent exits with stops nobody and is no interruption",
        "test_an_agent_that_exits_with_143_stops_nobody",
        "test_no_exit_status_of_the_agents_own_is_taken_for_our_doing",
    ),
    (
        "S-5",
        "a decision is final",
        "test_a_decision_is_final_whatever_comes_after",
    ),
    (
        "S-6",
        "one delivery holds up no other, is sent once, and ends",
        "test_one_failing_destination_and_one_failing_item_hold_nobody_up",
        "test_a_killed_command_leaves_the_delivery_unknown_until_a_person_says",
        "test_ten_deliverers_at_once_send_once",
        "test_a_command_out_of_time_is_killed_with_all_it_started",
        "test_a_failed_delivery_is_tried_again_later_and_later_and_given_up",
    ),
    (
        "S-7",
        "backing off never comes sooner than the interval",
        "test_back_off_doubles_up_to_a_day_and_is_never_shorter_than_the_interval",
    ),
    (
        "S-8",
        "a name is one assistant's, may change, and one can be removed",
        "test_s8_another_directory_with_a_name_that_is_taken_is_refused",
        "test_s8_a_new_name_in_the_same_directory_is_the_same_assistant",
        "test_a_removed_one_is_woken_no_more_and_frees_name_and_directory",
    ),
    (
        "S-9",
        "types are strict, paths start at the directory or home, and all is judged on arrival",
        "test_a_wrong_value_is_refused_with_its_line_and_its_key",
        "test_mounts_and_recipes_are_found_from_the_directory_and_home",
        "test_paths_in_args_start_at_the_directory_wherever_it_is_woken",
        "test_s9_what_could_not_run_is_refused_when_it_arrives",
    ),
    (
        "S-10",
        "failures say nothing unless asked to, skips leave a row, and programs have a time limit",
        "test_without_a_success_messages_stay_and_the_outbox_stays_empty",
        "test_the_gate_says_no_for_no_run_and_no_failure",
        "test_a_gate_that_hangs_is_ended_with_what_it_started",
        "test_a_command_out_of_time_is_killed_with_all_it_started",
    ),
    (
        "S-11",
        "a claim is a lease, and what a killed process left is ended",
        "test_a_recycled_pid_is_gone",
        "test_a_look_ends_what_a_dead_process_left_and_starts_it_again",
        "test_a_run_whose_process_is_gone_is_ended_and_its_things_removed",
    ),
    (
        "S-12",
        "two of one second have two names",
        "test_task_and_report_are_copied_and_two_wakeups_of_one_second_have_two_names",
    ),
)

KNOWN = (
    *CLOCKS, *DELIVERIES, *WORKERS, *OWNERS, *INJECTION, *OUTSIDE, *APPROVALS, *LIMITS,
    *FIRST_PROGRAM,
)  # fmt: skip


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known[0].partition(":")[0])
def test_a_known_failure_has_its_tests(known: tuple[str, ...]):
    failure, _, *tests = known

    assert tests
    assert [test for test in tests if test not in all_tests()] == [], failure


@pytest.mark.parametrize("number", [f"S-{number}" for number in range(1, 13)])
def test_every_failure_of_the_first_programs_assistants_is_in_the_map(number: str):
    assert [known[0] for known in KNOWN].count(number) == 1
