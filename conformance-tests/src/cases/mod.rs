//! The cases that hold on every backend.

use crate::{Env, list::list};

list! {
    ($)
    /// Generates a test for each case of the suite: `suite!(harness, runtime)`.
    ///
    /// The two expressions are evaluated once per case. The tests come in one module per topic, so
    /// call it in a module of its own; what that module sees, the expressions see.
    suite calls run_case with Env;

    acquire {
        is_seen_from_outside
        can_be_repeated
        excludes_other_managers
        excludes_other_tasks_of_a_manager
        serialises_a_racy_counter
        belongs_to_the_guard_not_the_task
        leaves_nothing_behind
    }
    try_lock {
        takes_a_free_lock
        misses_a_held_lock
        misses_without_queueing
        misses_with_a_pool_of_one
        with_runs_the_section_on_a_hit
        with_skips_the_section_on_a_miss
        hits_again_after_the_release
    }
    timeout {
        in_time_is_a_lock
        late_is_an_error
        late_skips_the_section
        late_keeps_outer_locks
        late_names_the_holder
        zero_takes_a_free_lock
        zero_gives_up_at_once
        longest_duration_waits
        is_no_obstacle_to_the_next_try
    }
    keys {
        at_the_extremes
        pairs_at_the_extremes
        golden_names
        spaces_are_disjoint
        similar_names_are_apart
        namespaces_are_apart
        order_of_namespaces_matters
        one_name_is_one_lock
    }
    sections {
        return_their_value
        hold_the_lock_while_they_run
        free_it_on_an_error
        free_it_on_a_panic
        free_it_when_dropped
        borrow_from_their_caller
        are_send_with_a_plain_closure
        are_send_with_an_async_closure
    }
    dropping {
        a_guard_lets_a_rival_in
        a_guard_outside_any_runtime
        one_guard_of_three
        a_section_of_a_session_in_use
        a_wait_leaves_no_waiter
        a_wait_passes_its_turn_on
        short_waits_many_times
    }
    nesting {
        same_key_is_reentered
        same_key_is_free_after_the_last
        try_reenters
        other_key_is_on_the_same_session
        spawned_task_is_a_stranger
        managers_do_not_share
        guard_outlives_its_section
        cancelled_wait_keeps_the_outer_lock
    }
    siblings {
        exclude_each_other
        overlap_under_their_own_lock
        in_a_cycle_are_told
    }
    shared {
        readers_overlap
        writer_waits_for_readers
        readers_wait_for_the_writer
        try_misses_across_modes
        is_released_in_its_mode
        both_modes_of_one_owner
    }
    deadlock {
        of_two_has_one_victim
        victim_keeps_what_it_holds
    }
    loss {
        is_told_by_release
        is_told_after_the_section
        is_told_for_every_lock_of_the_session
        lets_a_rival_in
        leaves_the_manager_usable
    }
    close {
        refuses_new_work
        refuses_through_derived_handles
        waits_for_a_guard
        waits_for_a_section_and_what_it_nests
        inside_a_section_is_refused
        twice_is_fine
        of_one_manager_leaves_others_open
    }
}
