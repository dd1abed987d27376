//! The local queue under a model checker, which tries every order in which its steps can happen.

// What the library uses of the queue and these models do not.
#[allow(dead_code)]
#[path = "../src/queue/mod.rs"]
mod queue;

/// The queue finds these types here instead of those of the standard library.
mod sync {
    pub(crate) use std::sync::PoisonError;

    pub(crate) use loom::sync::{Arc, Mutex, MutexGuard};
}

use std::{
    future::Future,
    pin::pin,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    task::{Context, Poll},
};

use futures::task::noop_waker;
use loom::{future::block_on, model::Builder, sync::Arc, thread};

type Queues = queue::Queues<u8, Arc<Session>, ()>;
type Place = queue::Place<u8, Arc<Session>, ()>;

const KEY: u8 = 1;

/// How often a thread is interrupted where it need not be. All that is known to go wrong in such
/// code does with two; each more takes many times as long.
const PREEMPTIONS: usize = 3;

/// What is passed on. There must not be two users of one at a time.
#[derive(Default)]
struct Session {
    users: AtomicUsize,
}

/// How many have a turn at the moment, and how many have had one; how many sessions are on their
/// way to the next.
#[derive(Default)]
struct Turns {
    now: AtomicUsize,
    ever: AtomicUsize,
    passed: AtomicUsize,
}

/// Comes for the turn, and waits for it if that is too early. Opens a session unless one was passed
/// on.
fn come(place: &Place, turns: &Turns) -> Arc<Session> {
    let baton = match place.come() {
        Poll::Ready(baton) => baton,
        Poll::Pending => block_on(place.turn()),
    };
    match baton {
        Some(session) => {
            turns.passed.fetch_sub(1, SeqCst);
            session
        }
        None => Arc::default(),
    }
}

fn pass(place: Place, session: Arc<Session>, turns: &Turns) {
    turns.passed.fetch_add(1, SeqCst);
    if place.pass(session).is_some() {
        turns.passed.fetch_sub(1, SeqCst);
    }
}

/// Has a turn, uses the session, and passes it on.
fn take_turn(place: Place, turns: &Turns) {
    let session = come(&place, turns);
    assert_eq!(session.users.fetch_add(1, SeqCst), 0, "two use one session");
    // Others may run here.
    place.holds();
    turns.ever.fetch_add(1, SeqCst);
    session.users.fetch_sub(1, SeqCst);
    pass(place, session, turns);
}

/// The same, with an eye on others who have a turn.
fn take_turn_alone(place: Place, turns: &Turns) {
    let session = come(&place, turns);
    assert_eq!(turns.now.fetch_add(1, SeqCst), 0, "two have a turn");
    place.holds();
    turns.ever.fetch_add(1, SeqCst);
    turns.now.fetch_sub(1, SeqCst);
    pass(place, session, turns);
}

fn is_ready(place: &Place) -> bool {
    let waker = noop_waker();
    let turn = pin!(place.turn());
    turn.poll(&mut Context::from_waker(&waker)).is_ready()
}

/// Has somebody join and take his turn in a thread of his own.
fn spawn(
    queues: &Arc<Queues>,
    turns: &Arc<Turns>,
    turn: fn(Place, &Turns),
) -> thread::JoinHandle<()> {
    let (queues, turns) = (Arc::clone(queues), Arc::clone(turns));
    thread::spawn(move || turn(Queues::join(&queues, KEY), &turns))
}

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.check(model);
}

#[test]
fn one_at_a_time_has_a_turn_and_everybody_has_one() {
    check(|| {
        let (queues, turns) = (Arc::<Queues>::default(), Arc::<Turns>::default());
        let others = [(); 2].map(|()| spawn(&queues, &turns, take_turn_alone));
        take_turn_alone(Queues::join(&queues, KEY), &turns);
        for other in others {
            other.join().unwrap();
        }
        assert_eq!(turns.ever.load(SeqCst), 3);
        assert_eq!(turns.passed.load(SeqCst), 0, "a session got lost");
    });
}

#[test]
fn one_who_goes_away_holds_up_nobody() {
    check(|| {
        let (queues, turns) = (Arc::<Queues>::default(), Arc::<Turns>::default());
        let leader = Queues::join(&queues, KEY);
        let goes_away = Queues::join(&queues, KEY);
        let stays = spawn(&queues, &turns, take_turn);
        let cancelled = thread::spawn(move || {
            // He may have got the lead, or even come for it.
            is_ready(&goes_away);
            drop(goes_away);
        });
        take_turn(leader, &turns);
        cancelled.join().unwrap();
        stays.join().unwrap();
        assert_eq!(turns.ever.load(SeqCst), 2);
    });
}

#[test]
fn one_who_is_never_polled_is_passed_over() {
    check(|| {
        let (queues, turns) = (Arc::<Queues>::default(), Arc::<Turns>::default());
        let leader = Queues::join(&queues, KEY);
        let sleeper = Queues::join(&queues, KEY);
        assert!(!is_ready(&sleeper));
        let stays = spawn(&queues, &turns, take_turn);
        take_turn(leader, &turns);
        // Now the sleeper leads, and may have the session. Two looks take both from him.
        queues.look(|_| true);
        queues.look(|_| true);
        stays.join().unwrap();
        assert_eq!(turns.ever.load(SeqCst), 2);
        assert!(is_ready(&sleeper), "he waits for nobody");
    });
}

#[test]
fn looks_never_double_a_session() {
    check(|| {
        let (queues, turns) = (Arc::<Queues>::default(), Arc::<Turns>::default());
        let looks = {
            let queues = Arc::clone(&queues);
            thread::spawn(move || {
                queues.look(|_| false);
                queues.look(|_| false);
            })
        };
        let other = spawn(&queues, &turns, take_turn);
        take_turn(Queues::join(&queues, KEY), &turns);
        looks.join().unwrap();
        other.join().unwrap();
        assert_eq!(turns.ever.load(SeqCst), 2);
    });
}
