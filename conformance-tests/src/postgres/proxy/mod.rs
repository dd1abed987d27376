//! A proxy between a client and the server, which can do to a connection what a network can.

mod connection;
mod stop;
mod wire;

use std::{
    str::FromStr,
    sync::{Arc, atomic::Ordering::SeqCst},
};

use tokio::{net::TcpListener, task::AbortHandle};
use tokio_postgres::{Config, config::Host};

use self::connection::{Connection, Shared, lock};
pub use self::stop::{Point, Stop};
use super::background;

/// Stands between clients and a server, and understands what they say: it can stop a connection at
/// a chosen message, cut it, or lose what is said on it.
///
/// It runs beside the runtime of the test, so that it can be used on any.
#[derive(Debug)]
pub struct Proxy {
    shared: Arc<Shared>,
    url: String,
    listener: AbortHandle,
}

impl Proxy {
    /// A proxy to the server and database of this URL, which has to name a host.
    ///
    /// # Panics
    ///
    /// If it does not, or there is no port to listen on.
    pub async fn to(url: &str) -> Self {
        let server = address(url);
        let shared = Arc::new(Shared::default());
        let accepting = Arc::clone(&shared);
        // Bound inside the runtime that is to drive it.
        let bound = background().spawn(TcpListener::bind(("127.0.0.1", 0)));
        let listener = bound.await.expect("binding does not panic");
        let listener = listener.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let accept = async move {
            while let Ok((client, _)) = listener.accept().await {
                let opening = Connection::open(client, server.clone(), Arc::clone(&accepting));
                // A client whose server cannot be reached sees its connection closed.
                background().spawn(opening);
            }
        };
        Self {
            shared,
            url: with_address(url, port),
            listener: background().spawn(accept).abort_handle(),
        }
    }

    /// The way through the proxy.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Stops the first connection that comes to this point.
    pub fn stop(&self, point: Point) -> Stop {
        self.shared.stops.add(point)
    }

    /// From now on everything is lost that is said on any connection, old or new, as if the
    /// server had stopped answering. If the server closes a connection its client is not told.
    pub fn silence(&self) {
        self.shared.silent.store(true, SeqCst);
    }

    /// Answers new connections again. Those that were silenced stay useless.
    pub fn speak(&self) {
        for connection in &*lock(&self.shared.connections) {
            connection.swallow();
        }
        self.shared.silent.store(false, SeqCst);
    }

    /// Cuts all connections.
    pub fn cut(&self) {
        for connection in &*lock(&self.shared.connections) {
            connection.cut();
        }
    }

    /// Cuts one of the connections, whichever `choice` falls on.
    pub fn cut_one(&self, choice: u64) {
        let mut connections = lock(&self.shared.connections);
        connections.retain(|connection| !connection.is_closed());
        if !connections.is_empty() {
            let choice = usize::try_from(choice).unwrap_or(usize::MAX);
            connections[choice % connections.len()].cut();
        }
    }

    /// How many connections clients have open.
    #[must_use]
    pub fn clients(&self) -> usize {
        let connections = lock(&self.shared.connections);
        let open = connections
            .iter()
            .filter(|connection| !connection.is_closed());
        open.count()
    }

    /// How many times a client has asked the server to cancel something.
    #[must_use]
    pub fn cancel_requests(&self) -> usize {
        self.shared.cancel_requests.load(SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listener.abort();
        self.cut();
    }
}

/// Where the server of a URL is.
fn address(url: &str) -> (String, u16) {
    let config = Config::from_str(url).expect("a URL of a database");
    let port = config.get_ports().first().copied().unwrap_or(5432);
    match config.get_hosts() {
        [Host::Tcp(host), ..] => (host.clone(), port),
        other => panic!("a proxy needs a server with a network address, not {other:?}"),
    }
}

/// Puts the proxy's own address into a URL.
fn with_address(url: &str, port: u16) -> String {
    let (scheme, rest) = url.split_once("://").expect("a URL has a scheme");
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let user = authority.rfind('@').map_or("", |at| &authority[..=at]);
    format!("{scheme}://{user}127.0.0.1:{port}{path}")
}

#[test]
fn the_address_of_a_url_is_replaced() {
    for (url, expected) in [
        ("postgres://host", "postgres://127.0.0.1:7"),
        ("postgres://me@host:1/x", "postgres://me@127.0.0.1:7/x"),
        (
            "postgres://me:p@host/x?a=@",
            "postgres://me:p@127.0.0.1:7/x?a=@",
        ),
    ] {
        assert_eq!(with_address(url, 7), expected);
    }
}
