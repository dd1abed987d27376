use std::collections::HashMap;

/// The codes of the messages that may come instead of a startup message.
const CANCEL: i32 = 80_877_102;
const TLS: i32 = 80_877_103;
const GSS: i32 = 80_877_104;

/// What a message is, as far as a test may want to stop it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// Asks for encryption, which has to be answered with one byte that is no message.
    Encryption,
    /// Asks the server to cancel what another connection is doing.
    Cancel,
    Startup,
    /// Has a statement parsed.
    Prepare(String),
    /// Has a statement run, be it prepared or not.
    Execute(String),
    /// Another message of a client.
    Other,
    /// Any message of a server, by its type.
    Answer(u8),
}

/// Takes a stream of bytes apart into messages, of one direction of one connection.
#[derive(Debug)]
pub(super) struct Decoder {
    bytes: Vec<u8>,
    side: Side,
}

#[derive(Debug)]
enum Side {
    Server,
    Client(Client),
}

/// What the texts of a client's later messages are known by.
#[derive(Debug, Default)]
struct Client {
    started: bool,
    statements: HashMap<Vec<u8>, String>,
    portals: HashMap<Vec<u8>, String>,
}

impl Decoder {
    pub(super) fn of_server() -> Self {
        Self::new(Side::Server)
    }

    pub(super) fn of_client() -> Self {
        Self::new(Side::Client(Client::default()))
    }

    fn new(side: Side) -> Self {
        let bytes = Vec::new();
        Self { bytes, side }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole message, and its bytes.
    pub(super) fn next(&mut self) -> Option<(Message, Vec<u8>)> {
        // Only a client's first message has no type in front of its length.
        let head = match &self.side {
            Side::Client(client) if !client.started => 0,
            _ => 1,
        };
        let length = usize::try_from(number(self.bytes.get(head..)?)?).expect("a length");
        if self.bytes.len() < head + length {
            return None;
        }
        let bytes: Vec<_> = self.bytes.drain(..head + length).collect();
        let body = &bytes[head + 4..];
        let message = match &mut self.side {
            Side::Server => Message::Answer(bytes[0]),
            Side::Client(client) if !client.started => client.first(body),
            Side::Client(client) => client.read(bytes[0], body),
        };
        Some((message, bytes))
    }
}

impl Client {
    fn first(&mut self, body: &[u8]) -> Message {
        match number(body) {
            Some(CANCEL) => Message::Cancel,
            Some(TLS | GSS) => Message::Encryption,
            _ => {
                self.started = true;
                Message::Startup
            }
        }
    }

    fn read(&mut self, kind: u8, body: &[u8]) -> Message {
        let mut words = body.split(|byte| *byte == 0);
        let mut word = || words.next().unwrap_or_default();
        match kind {
            b'Q' => Message::Execute(text(word())),
            b'P' => {
                let (name, sql) = (word(), text(word()));
                self.statements.insert(name.to_vec(), sql.clone());
                Message::Prepare(sql)
            }
            b'B' => {
                let (portal, name) = (word(), word());
                let sql = self.statements.get(name).cloned().unwrap_or_default();
                self.portals.insert(portal.to_vec(), sql);
                Message::Other
            }
            b'E' => Message::Execute(self.portals.get(word()).cloned().unwrap_or_default()),
            _ => Message::Other,
        }
    }
}

fn number(bytes: &[u8]) -> Option<i32> {
    bytes.first_chunk().copied().map(i32::from_be_bytes)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: &str, body: &[u8]) -> Vec<u8> {
        let length = i32::try_from(body.len() + 4).unwrap().to_be_bytes();
        [kind.as_bytes(), &length, body].concat()
    }

    #[test]
    fn a_prepared_statement_is_known_by_its_text() {
        let mut decoder = Decoder::of_client();
        decoder.push(&message("", &TLS.to_be_bytes()));
        decoder.push(&message("", b"\0\x03\0\0user\0me\0\0"));
        decoder.push(&message("P", b"s1\0SELECT 1\0\0\0"));
        decoder.push(&message("B", b"\0s1\0\0\0"));
        decoder.push(&message("E", b"\0\0\0\0\0"));
        decoder.push(&message("S", b""));
        decoder.push(&message("Q", b"SELECT 2\0"));
        let messages: Vec<_> = std::iter::from_fn(|| decoder.next())
            .map(|(message, _)| message)
            .collect();
        let expected = [
            Message::Encryption,
            Message::Startup,
            Message::Prepare("SELECT 1".into()),
            Message::Other,
            Message::Execute("SELECT 1".into()),
            Message::Other,
            Message::Execute("SELECT 2".into()),
        ];
        assert_eq!(messages, expected);
    }

    #[test]
    fn a_message_may_come_in_pieces() {
        let mut decoder = Decoder::of_server();
        let bytes = message("Z", b"I");
        for byte in &bytes {
            assert_eq!(decoder.next(), None);
            decoder.push(&[*byte]);
        }
        assert_eq!(decoder.next(), Some((Message::Answer(b'Z'), bytes)));
    }
}
