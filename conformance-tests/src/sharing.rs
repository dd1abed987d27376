use advisory_core::{LockBackend, Options, Sessions};
use async_trait::async_trait;

use crate::{Harness, Observer, Space};

/// What only sessions of their own bring: the server sees who waits for whom, and a lock's holder is
/// told from another's by the session. And what needs no second connection then.
const OF_SESSIONS_APART: &[&str] = &[
    "acquire::excludes_other_tasks_of_a_manager",
    "deadlock::of_three_has_one_victim",
    "deadlock::of_two_has_one_victim",
    "deadlock::of_two_sessions_has_one_victim",
    "deadlock::victim_frees_as_it_unwinds",
    "deadlock::victim_keeps_what_it_holds",
    "dropping::a_wait_leaves_no_waiter",
    "keys::similar_names_are_apart",
    "keys::spaces_are_disjoint",
    "leaking::ended_context_is_none",
    "leaking::nested_wait_goes_on",
    "nesting::guard_outlives_its_section",
    "queueing::a_silent_holder_is_not_relied_on",
    "session::is_kept_by_its_guards",
    "session::makes_room_after_the_last",
    "session::respects_what_others_hold",
    "session::survives_a_cancelled_wait",
    "shared::double_upgrade_is_a_deadlock",
    "shared::readers_wait_for_the_writer",
    "shared::writer_does_not_starve",
    "shared::writer_waits_for_readers",
    "timeout::bounds_the_checkout",
    "timeout::in_time_is_a_lock",
    "timeout::longest_duration_waits",
    "timeout::longest_durations_are_no_overflow",
];

/// A harness whose managers keep all their locks on one session.
#[derive(Debug)]
pub struct Sharing<H>(pub H);

#[async_trait]
impl<H: Harness> Harness for Sharing<H> {
    async fn space(&self) -> Box<dyn Space> {
        Box::new(SharingSpace(self.0.space().await))
    }

    fn leaves_out(&self, case: &str) -> bool {
        OF_SESSIONS_APART.contains(&case) || self.0.leaves_out(case)
    }
}

#[derive(Debug)]
struct SharingSpace(Box<dyn Space>);

#[async_trait]
impl Space for SharingSpace {
    async fn backend(&self, connections: usize) -> Box<dyn LockBackend> {
        self.0.backend(connections).await
    }

    fn options(&self) -> Options {
        self.0.options().sessions(Sessions::Shared)
    }

    fn observer(&self) -> &dyn Observer {
        self.0.observer()
    }

    fn expect_vain_unlocks(&self) {
        self.0.expect_vain_unlocks();
    }

    fn audit(&self) {
        self.0.audit();
    }

    async fn remove(&self) {
        self.0.remove().await;
    }
}
