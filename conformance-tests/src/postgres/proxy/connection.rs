use std::{
    future::pending,
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    task::AbortHandle,
};

use super::{
    stop::{Side, Stopped, Stops},
    wire::{Decoder, Message},
};
use crate::postgres::background;

/// What all connections of a proxy share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) stops: Stops,
    pub(super) connections: Mutex<Vec<Arc<Connection>>>,
    /// Whether everything is lost that anybody says.
    pub(super) silent: AtomicBool,
    pub(super) cancel_requests: AtomicUsize,
}

/// A client's connection to the proxy, and the proxy's to the server in its stead.
#[derive(Debug, Default)]
pub(super) struct Connection {
    /// What carries the two directions; without them both sockets are closed.
    carriers: Mutex<Vec<AbortHandle>>,
    swallowed: AtomicBool,
    /// Whether the client has closed its end, or has seen it closed.
    closed: AtomicBool,
    /// Where the server's answers are held back.
    held_back: Mutex<Option<Arc<Stopped>>>,
}

impl Connection {
    /// Connects the client to the server.
    pub(super) async fn open(
        client: TcpStream,
        server: (String, u16),
        shared: Arc<Shared>,
    ) -> io::Result<()> {
        let server = TcpStream::connect(server).await?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        let connection = Arc::new(Self::default());
        let requests = Carrier {
            connection: Arc::clone(&connection),
            shared: Arc::clone(&shared),
            from: from_client,
            to: to_server,
            decoder: Decoder::of_client(),
            of_client: true,
        };
        let answers = Carrier {
            connection: Arc::clone(&connection),
            shared: Arc::clone(&shared),
            from: from_server,
            to: to_client,
            decoder: Decoder::of_server(),
            of_client: false,
        };
        // Known before anything is carried, so that nobody overlooks it.
        lock(&shared.connections).push(Arc::clone(&connection));
        let mut carriers = lock(&connection.carriers);
        for carrier in [requests, answers] {
            carriers.push(background().spawn(carrier.run()).abort_handle());
        }
        Ok(())
    }

    pub(super) fn cut(&self) {
        self.closed.store(true, SeqCst);
        for carrier in &*lock(&self.carriers) {
            carrier.abort();
        }
    }

    pub(super) fn swallow(&self) {
        self.swallowed.store(true, SeqCst);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(SeqCst)
    }
}

/// Carries the messages of one direction.
#[derive(Debug)]
struct Carrier {
    connection: Arc<Connection>,
    shared: Arc<Shared>,
    from: OwnedReadHalf,
    to: OwnedWriteHalf,
    decoder: Decoder,
    of_client: bool,
}

impl Carrier {
    async fn run(mut self) {
        let carried = self.carry().await;
        if self.of_client {
            self.connection.closed.store(true, SeqCst);
        } else if self.is_silent() {
            // Of the server's end, too, the client does not hear before the connection is cut.
            return pending().await;
        }
        // After a clean end the other direction may have more to say.
        if carried.is_err() || self.is_silent() || self.to.shutdown().await.is_err() {
            self.connection.cut();
        }
    }

    /// Carries on to the end of the stream.
    async fn carry(&mut self) -> io::Result<()> {
        let mut bytes = vec![0; 16 * 1024];
        loop {
            let count = self.from.read(&mut bytes).await?;
            if count == 0 {
                return Ok(());
            }
            self.decoder.push(&bytes[..count]);
            while let Some((message, bytes)) = self.decoder.next() {
                self.forward(&message, &bytes).await?;
            }
        }
    }

    async fn forward(&mut self, message: &Message, bytes: &[u8]) -> io::Result<()> {
        match message {
            // An answer would be a byte that is no message.
            Message::Encryption => return Err(io::Error::other("the proxy speaks no TLS")),
            Message::Cancel => _ = self.shared.cancel_requests.fetch_add(1, SeqCst),
            Message::Answer(_) => self.wait_until_answers_may_pass().await,
            _ => {}
        }
        let stop = self.shared.stops.at(message);
        if let Some((Side::Before, stopped)) = &stop {
            stopped.reach(&self.connection);
            stopped.passed().await;
        }
        if let Some((Side::Behind, stopped)) = &stop {
            *lock(&self.connection.held_back) = Some(Arc::clone(stopped));
        }
        if !self.is_silent() {
            self.to.write_all(bytes).await?;
        }
        if let Some((Side::Behind, stopped)) = &stop {
            stopped.reach(&self.connection);
        }
        Ok(())
    }

    async fn wait_until_answers_may_pass(&self) {
        loop {
            let Some(stopped) = lock(&self.connection.held_back).take() else {
                return;
            };
            stopped.passed().await;
        }
    }

    fn is_silent(&self) -> bool {
        self.connection.swallowed.load(SeqCst) || self.shared.silent.load(SeqCst)
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
