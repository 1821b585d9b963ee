//! Just enough of Redis' protocol (RESP 2) for the harness to ask its own servers.
//!
//! One connection per command and no retries: a test that asks a paused server must learn that it does not answer,
//! and one that asks a restarted server must not meet yesterday's connection.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// Where a Redis listens for the harness.
#[derive(Clone, Debug)]
pub(super) enum Endpoint {
    Port(u16),
    /// For a server whose ports all speak TLS.
    Socket(PathBuf),
}

/// What a Redis answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// `+OK` and the like.
    Status(String),
    /// `-ERR ...`, inside an array; as the whole answer it is [`ServiceError::Refused`](super::ServiceError::Refused).
    Error(String),
    /// A number.
    Int(i64),
    /// A text; bytes that are no UTF-8 are replaced.
    Text(String),
    /// Nothing.
    Nil,
    /// Several of them.
    Array(Vec<Reply>),
}

impl Reply {
    /// The number, also when it came as a text.
    #[must_use]
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Reply::Int(number) => Some(*number),
            Reply::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// The text of a status, an error or a text.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Reply::Status(text) | Reply::Error(text) | Reply::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The parts of an array; none of anything else.
    #[must_use]
    pub fn parts(&self) -> &[Reply] {
        match self {
            Reply::Array(parts) => parts,
            _ => &[],
        }
    }

    /// In an array of names and values, the value behind this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        self.parts().chunks(2).find(|pair| pair[0].as_str() == Some(name))?.get(1)?.as_str()
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reply::Status(text) | Reply::Error(text) | Reply::Text(text) => f.write_str(text),
            Reply::Int(number) => write!(f, "{number}"),
            Reply::Nil => f.write_str("(nil)"),
            Reply::Array(parts) => f.debug_list().entries(parts.iter().map(ToString::to_string)).finish(),
        }
    }
}

/// Sends one command and returns its answer, or an error when no whole answer came while it waited. Each read may
/// take as long as `patience`.
pub(super) fn ask(endpoint: &Endpoint, patience: Duration, command: &[&str]) -> io::Result<Reply> {
    match endpoint {
        Endpoint::Port(port) => {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, *port));
            let stream = TcpStream::connect_timeout(&address, patience)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(patience))?;
            stream.set_write_timeout(Some(patience))?;
            exchange(stream, command)
        }
        Endpoint::Socket(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(patience))?;
            stream.set_write_timeout(Some(patience))?;
            exchange(stream, command)
        }
    }
}

fn exchange(mut stream: impl Read + Write, command: &[&str]) -> io::Result<Reply> {
    stream.write_all(&encode(command))?;
    decode(&mut BufReader::new(stream))
}

fn encode(command: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", command.len()).into_bytes();
    for argument in command {
        bytes.extend_from_slice(format!("${}\r\n{argument}\r\n", argument.len()).as_bytes());
    }
    bytes
}

fn decode(input: &mut impl BufRead) -> io::Result<Reply> {
    let mut line = String::new();
    if input.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let line = line.trim_end();
    let (kind, rest) = line.split_at_checked(1).ok_or_else(|| malformed(line))?;
    match kind {
        "+" => Ok(Reply::Status(rest.to_owned())),
        "-" => Ok(Reply::Error(rest.to_owned())),
        ":" => rest.parse().map(Reply::Int).map_err(|_| malformed(line)),
        "$" => match length(rest, line)? {
            None => Ok(Reply::Nil),
            Some(length) => decode_text(input, length),
        },
        "*" => match length(rest, line)? {
            None => Ok(Reply::Nil),
            Some(length) => (0..length).map(|_| decode(input)).collect::<io::Result<_>>().map(Reply::Array),
        },
        _ => Err(malformed(line)),
    }
}

fn decode_text(input: &mut impl BufRead, length: usize) -> io::Result<Reply> {
    let mut bytes = vec![0; length + 2];
    input.read_exact(&mut bytes)?;
    Ok(Reply::Text(String::from_utf8_lossy(&bytes[..length]).into_owned()))
}

/// `None` for the length -1, which means that there is nothing.
fn length(digits: &str, line: &str) -> io::Result<Option<usize>> {
    match digits {
        "-1" => Ok(None),
        _ => digits.parse().map(Some).map_err(|_| malformed(line)),
    }
}

fn malformed(line: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("this is not RESP: {line:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(mut bytes: &[u8]) -> io::Result<Reply> {
        decode(&mut bytes)
    }

    #[test]
    fn every_kind_of_answer_is_understood() {
        let bytes = b"*6\r\n+OK\r\n-ERR no\r\n:-7\r\n$3\r\na\r\n\r\n$-1\r\n*0\r\n";
        let parts = vec![
            Reply::Status("OK".into()),
            Reply::Error("ERR no".into()),
            Reply::Int(-7),
            Reply::Text("a\r\n".into()),
            Reply::Nil,
            Reply::Array(vec![]),
        ];
        assert_eq!(decoded(bytes).unwrap(), Reply::Array(parts));
    }

    #[test]
    fn half_an_answer_is_an_error_and_so_is_another_protocol() {
        assert_eq!(decoded(b"$5\r\nab").unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(decoded(b"").unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(decoded(b"HTTP/1.1 200 OK\r\n").unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn arguments_are_counted_in_bytes() {
        assert_eq!(encode(&["GET", "ä"]), "*2\r\n$3\r\nGET\r\n$2\r\nä\r\n".as_bytes());
    }
}
