//! The cases that hold on every backend.

#![allow(
    clippy::async_yields_async,
    reason = "some cases hand a task or a future out of a section on purpose"
)]

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
        longest_durations_are_no_overflow
        bounds_the_checkout
        names_this_process
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
        see_their_guard
    }
    dropping {
        a_guard_lets_a_rival_in
        a_guard_outside_any_runtime
        one_guard_of_three
        one_guard_of_three_by_hand
        a_section_of_a_session_in_use
        a_wait_leaves_no_waiter
        a_wait_passes_its_turn_on
        a_release_harms_nobody_else
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
        pool_of_one_is_enough
        same_key_of_another_handle_is_reentered
    }
    leaking {
        nested_wait_goes_on
        unpolled_future_is_a_stranger
        ended_context_is_none
        ended_context_falls_back_to_its_parent
        nested_section_goes_on
    }
    session {
        holds_many_locks
        guards_are_independent
        same_key_is_reentered
        respects_what_others_hold
        is_kept_by_its_guards
        makes_room_after_the_last
        refuses_locks_of_other_managers
        tells_its_loss
        survives_a_cancelled_wait
        survives_a_dropped_scope
    }
    scope {
        reenters_what_the_session_holds
        takes_other_keys_on_the_session
        current_is_the_session_of_the_section
        current_follows_the_innermost_manager
        makes_a_spawned_task_part_of_the_section
        outlives_the_section_it_came_from
    }
    wrap {
        returns_what_the_function_does
        holds_the_lock_in_each_call
        calls_of_clones_exclude_each_other
        frees_the_lock_on_a_panic
        is_refused_after_close
        works_in_a_namespace
        joins_the_section_around_it
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
        exclusive_holder_may_read
        exclusive_holder_may_read_before_a_queued_writer
        queued_writer_holds_new_readers_off
        writer_does_not_starve
        double_upgrade_is_a_deadlock
    }
    deadlock {
        of_two_has_one_victim
        victim_keeps_what_it_holds
        of_three_has_one_victim
        of_two_sessions_has_one_victim
        of_guards_ends_by_timeout
        victim_frees_as_it_unwinds
    }
    loss {
        is_told_by_release
        is_told_after_the_section
        is_told_for_every_lock_of_the_session
        lets_a_rival_in
        leaves_the_manager_usable
        is_told_to_nested_work
        is_told_to_those_who_reenter
        ends_a_nested_wait
        is_seen_by_the_section
    }
    leftovers {
        a_dropped_guard_is_unlocked
        several_dropped_guards_are_unlocked
        a_cancelled_wait_keeps_nothing
        a_cancelled_wait_leaves_the_queue
    }
    watching {
        stops_a_section
        stops_what_is_nested
        stops_a_scope
        lets_a_section_go_on_that_wants_to
        tells_whoever_has_a_guard
        is_silent_after_a_release
        does_not_disturb_a_long_section
    }
    fencing {
        tokens_grow_from_holder_to_holder
        tokens_grow_when_a_holder_is_lost
        one_hold_has_one_token
    }
    close {
        refuses_new_work
        refuses_through_derived_handles
        waits_for_a_guard
        waits_for_a_section_and_what_it_nests
        inside_a_section_is_refused
        twice_is_fine
        of_one_manager_leaves_others_open
        waits_for_a_waiter
        waits_for_a_session
        waits_for_what_was_cancelled
        of_one_that_was_never_used
        at_the_same_time_is_fine
        dropped_half_way_can_be_called_again
        late_names_what_is_held
        is_not_needed_for_guards_to_work
    }
    queueing {
        one_of_many_waits_on_the_server
        a_crowd_gets_by_with_one_connection
        first_come_is_first_served
        a_cancelled_waiter_leaves_the_queue
        one_who_goes_with_the_lock_passes_it_on
        who_comes_during_a_release_gets_the_session
        one_who_does_not_poll_holds_up_nobody_for_long
        a_silent_holder_is_not_relied_on
        a_lost_lock_is_not_handed_over
        a_later_loss_is_not_told_to_earlier_holders
        each_holder_has_a_token_of_its_own
        others_get_their_turn
        can_be_kept_from_handing_over
        a_timeout_in_the_queue_names_the_holder
        a_drop_hands_over
        close_waits_for_the_queue
    }
    batches {
        hold_what_they_say
        may_be_mixed
        guards_are_independent
        of_many_thousands
        all_means_all
        of_all_in_any_order_are_no_deadlock
        join_the_section_around_them
        tell_a_loss
        of_many_tasks_keep_apart
    }
    spi_backends {
        open_nothing_once_closed
        may_be_closed_twice
        leave_no_session_behind
        lend_as_many_sessions_as_they_have
        lose_no_session_to_who_stops_waiting
    }
    spi_sessions {
        are_known_by_one_id
        have_ids_of_their_own
        see_everybody_who_holds_the_key
        do_not_take_a_waiter_for_a_holder
        begin_with_nothing
        free_all_they_hold_when_dropped
    }
    spi_batches {
        are_answered_in_their_order
        have_an_answer_for_each_request
        may_be_empty
        take_what_they_say
        unlock_only_what_is_held
        unlock_in_the_mode_that_is_held
    }
    spi_waits {
        end_with_their_patience
        end_even_if_patience_does_not
        end_with_a_lock_that_is_held
        end_at_once_if_the_lock_is_free
        in_vain_leave_nothing
        tell_whether_readers_are_in_the_way
        go_with_their_session
        in_a_cycle_of_three_have_one_victim
    }
    spi_losses {
        are_for_good
        are_noticed_as_promised
        end_a_wait
        are_not_lent_again
    }
    spi_tokens {
        grow_on_a_session
        grow_from_session_to_session
    }
}
