use tokio_postgres::{
    Socket,
    tls::{MakeTlsConnect, TlsConnect},
};

/// What a pool asks of a TLS connector: [`MakeTlsConnect`], and that it can be used in any task.
///
/// Implemented for all that fit; [`NoTls`](tokio_postgres::NoTls) does, and so do the connectors
/// of `postgres-native-tls`, `postgres-openssl` and `tokio-postgres-rustls`.
pub trait TlsConnector:
    MakeTlsConnect<
        Socket,
        Stream: Send + Sync,
        TlsConnect: TlsConnect<Socket, Future: Send> + Send + Sync,
    > + Clone
    + Send
    + Sync
    + 'static
{
}

impl<T> TlsConnector for T where
    T: MakeTlsConnect<
            Socket,
            Stream: Send + Sync,
            TlsConnect: TlsConnect<Socket, Future: Send> + Send + Sync,
        > + Clone
        + Send
        + Sync
        + 'static
{
}
