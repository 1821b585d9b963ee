//! Just enough of MariaDB's protocol for the harness: log in without a password, ask, read rows.

use std::io::{self, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// `PROTOCOL_41`, `SECURE_CONNECTION` (the answer to the challenge has a length, here 0), `CONNECT_WITH_DB`,
/// `PLUGIN_AUTH`.
const CAPABILITIES: u32 = 0x0200 | 0x8000 | 0x0008 | 0x0008_0000;
const LARGEST_PACKET: u32 = 1 << 24;
const UTF8MB4: u8 = 45;
const COM_QUERY: u8 = 3;

const OK: u8 = 0x00;
const NULL: u8 = 0xfb;
const END: u8 = 0xfe;
const ERROR: u8 = 0xff;

/// What a query gave: rows of texts, or MariaDB's own message.
type Outcome = Result<Vec<Vec<Option<String>>>, String>;

/// A connection that is logged in and idle.
pub(super) struct Connection {
    stream: BufReader<TcpStream>,
    /// Packets of one exchange are numbered.
    sequence: u8,
}

impl Connection {
    /// Returns when the server has let us in. Each read may take as long as `patience`.
    pub(super) fn open(port: u16, patience: Duration, user: &str, database: &str) -> io::Result<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let stream = TcpStream::connect_timeout(&address, patience)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        let mut connection = Self { stream: BufReader::new(stream), sequence: 0 };
        let greeting = connection.receive()?;
        refusal_in(&greeting).map_or(Ok(()), |message| Err(io::Error::other(message)))?;
        connection.send(&log_in(user, database))?;
        match connection.receive()?.first() {
            Some(&OK) => Ok(connection),
            _ => Err(io::Error::other("it does not let the harness in")),
        }
    }

    /// Runs one statement.
    pub(super) fn query(&mut self, sql: &str) -> io::Result<Outcome> {
        self.sequence = 0;
        self.send(&[&[COM_QUERY], sql.as_bytes()].concat())?;
        let first = self.receive()?;
        if let Some(message) = refusal_in(&first) {
            return Ok(Err(message));
        }
        match first.first() {
            Some(&OK) => Ok(Ok(Vec::new())),
            Some(&columns) => self.rows(usize::from(columns)),
            None => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Descriptions of the columns, an end mark, the rows, an end mark.
    fn rows(&mut self, columns: usize) -> io::Result<Outcome> {
        for _ in 0..=columns {
            self.receive()?;
        }
        let mut rows = Vec::new();
        loop {
            let packet = self.receive()?;
            match packet.first() {
                Some(&END) if packet.len() < 9 => return Ok(Ok(rows)),
                Some(&ERROR) => return Ok(Err(refusal_in(&packet).unwrap_or_default())),
                _ => rows.push(row(&packet, columns)?),
            }
        }
    }

    fn send(&mut self, body: &[u8]) -> io::Result<()> {
        let length = u32::try_from(body.len()).map_err(io::Error::other)?.to_le_bytes();
        let head = [length[0], length[1], length[2], self.sequence];
        self.stream.get_mut().write_all(&[&head, body].concat())
    }

    fn receive(&mut self) -> io::Result<Vec<u8>> {
        let mut head = [0; 4];
        self.stream.read_exact(&mut head)?;
        self.sequence = head[3].wrapping_add(1);
        let length = u32::from_le_bytes([head[0], head[1], head[2], 0]);
        let mut body = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        self.stream.read_exact(&mut body)?;
        Ok(body)
    }
}

fn log_in(user: &str, database: &str) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend_from_slice(&CAPABILITIES.to_le_bytes());
    body.extend_from_slice(&LARGEST_PACKET.to_le_bytes());
    body.push(UTF8MB4);
    body.extend_from_slice(&[0; 23]);
    // The lone zero is the length of the answer to the challenge: there is no password.
    body.extend_from_slice(format!("{user}\0\0{database}\0mysql_native_password\0").as_bytes());
    body
}

/// An error is its mark, a number, `#` and a state of five letters, and a text.
fn refusal_in(packet: &[u8]) -> Option<String> {
    let text = packet.strip_prefix(&[ERROR])?;
    Some(String::from_utf8_lossy(text.get(8..).unwrap_or(text)).into_owned())
}

fn row(mut packet: &[u8], columns: usize) -> io::Result<Vec<Option<String>>> {
    (0..columns).map(|_| value(&mut packet)).collect()
}

/// A length (in one byte, or behind a mark in two or three) and so many bytes.
fn value(packet: &mut &[u8]) -> io::Result<Option<String>> {
    let length = match little_endian(packet, 1)? {
        mark if mark == usize::from(NULL) => return Ok(None),
        0xfc => little_endian(packet, 2)?,
        0xfd => little_endian(packet, 3)?,
        length => length,
    };
    let mut bytes = vec![0; length];
    packet.read_exact(&mut bytes)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

fn little_endian(packet: &mut &[u8], width: usize) -> io::Result<usize> {
    let mut bytes = [0; 4];
    packet.read_exact(&mut bytes[..width])?;
    usize::try_from(u32::from_le_bytes(bytes)).map_err(io::Error::other)
}
