"""Failures of others with patches and the secrets in them, each beside the tests that hold it off.

The first column names public reports about other programs; the second says what must hold here.
"""

from __future__ import annotations

import pytest

from tests.relay.test_design_map import all_tests

PATCHES = (
    (
        "stacklok/brood-box PR 129: git's own directory in any spelling",
        "no part of a path is it, in any letter case or alias",
        "test_no_spelling_of_gits_own_directory_lands",
        "test_a_base_that_holds_a_name_of_gits_own_directory_is_refused",
    ),
    (
        "navikt/cplt PR 211, QwenLM/qwen-code PR 11669: git runs what a configuration names",
        "one place starts git, and it reads no configuration of the clone",
        "test_no_configuration_of_the_account_is_read",
        "test_a_monitor_of_the_repository_is_not_started",
        "test_the_clones_own_git_directory_is_not_looked_at",
    ),
    (
        "mensfeld/code-on-incus PR 474, mistralai/mistral-vibe#996: hooks run on the host",
        "no hook in any call",
        "test_no_hook_of_the_repository_is_started",
        "test_no_hook_and_no_filter_runs",
    ),
    (
        "files that agents, editors and builds obey pass unflagged",
        "each has a category",
        "test_a_path_of_weight_is_flagged",
        "test_a_mode_only_change_is_flagged",
        "test_a_submodule_is_flagged_and_what_it_holds_could_not_be_checked",
    ),
    (
        "libgit2/libgit2#6294, sergeyt/parse-diff#23: paths are read wrongly",
        "they are read between zero bytes",
        "test_any_name_a_file_may_have_lands_exactly",
        "test_every_path_is_named_whatever_it_is_called",
    ),
    (
        "microsoft/vcpkg#442, openclaw/openclaw PR 115943: line ends spoil a patch",
        "nothing converts them, and turned ones are flagged",
        "test_line_ends_land_as_they_are",
        "test_turned_line_ends_are_flagged_and_hide_no_line",
    ),
    (
        "BloopAI/vibe-kanban#1141: the base moved, and others' changes show",
        "the difference is to the base commit that was kept",
        "test_the_base_may_have_been_left_behind_by_its_branch",
        "test_the_branch_holds_exactly_the_tree_on_exactly_the_base",
    ),
    (
        "BloopAI/vibe-kanban#279, #543: what a person had not committed is lost",
        "the work tree is never touched",
        "test_work_tree_index_and_head_are_not_touched",
    ),
    (
        "BloopAI/vibe-kanban#1897: accepting does nothing, and says nothing",
        "a fresh branch, and success only after it was read back",
        "test_a_branch_with_something_else_on_it_is_never_moved",
        "test_a_branch_somebody_stands_on_unborn_is_refused",
        "test_a_crash_at_any_step_is_made_good_by_landing_again",
    ),
)

SECRETS = (
    (
        "mfittko/dev-loops#1858, JSONbored/loopover#3041: alarms that do not say where",
        "a flag shows file and line without the value, and passing it needs a reason",
        "test_the_shape_of_a_token_is_flagged_at_its_line_without_its_value",
        "test_what_only_stands_for_a_secret_is_not_flagged",
        "test_only_what_may_be_a_secret_asks_for_a_reason",
    ),
    (
        "databrickslabs/ontos PR 793: a real secret passes",
        "added lines, new files, renamed ones, names and the strings of binaries are read",
        "test_a_secret_in_the_strings_of_a_binary_is_found_in_both_widths",
        "test_a_renamed_file_is_read_whole",
        "test_a_secret_in_a_name_is_found",
        "test_a_plain_edit_is_clear_and_says_how_much_was_looked_at",
    ),
    (
        "jjanczur/tyran PR 5: what comes with a change hides a key in it",
        "the exact bytes are read, and nothing in them switches that off",
        "test_a_suppression_that_comes_with_the_change_suppresses_nothing",
        "test_an_attribute_that_comes_with_the_change_hides_nothing",
    ),
    (
        "Yelp/detect-secrets#986: nothing was scanned, and that is called clean",
        "what was not looked at is no all clear",
        "test_what_is_not_scanned_for_its_amount_is_no_all_clear",
        "test_a_missing_object_is_no_all_clear",
    ),
    (
        "github/gh-aw#31708, github/gh-aw-firewall#1911: a hard gate that was advisory",
        "clear, flagged or could not check; the last one needs a person",
        "test_what_could_not_be_checked_needs_a_reason",
        "test_what_could_not_be_checked_is_not_clear",
        "test_rules_that_cannot_be_read_let_nothing_land",
    ),
)

KNOWN = (*PATCHES, *SECRETS)


@pytest.mark.parametrize("known", KNOWN, ids=[known[0].partition(":")[0] for known in KNOWN])
def test_a_reported_failure_has_its_tests(known: tuple[str, ...]):
    failure, _, *tests = known

    assert tests
    assert [test for test in tests if test not in all_tests()] == [], failure
