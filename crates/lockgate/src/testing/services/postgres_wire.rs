//! Just enough of PostgreSQL's protocol (version 3) for the harness: log in without a password, ask, read rows.

use std::io::{self, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// 3.0, as the protocol writes it.
const VERSION: u32 = 3 << 16;

/// What a query gave: rows of texts, or PostgreSQL's own message.
type Outcome = Result<Vec<Vec<Option<String>>>, String>;

/// A connection that is logged in and idle.
pub(super) struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    /// Returns when the server says that it is ready for a query. Each read may take as long as `patience`.
    pub(super) fn open(port: u16, patience: Duration, user: &str, database: &str) -> io::Result<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let stream = TcpStream::connect_timeout(&address, patience)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        let mut connection = Self { stream: BufReader::new(stream) };
        let parameters = format!("user\0{user}\0database\0{database}\0\0");
        connection.send(None, &[&VERSION.to_be_bytes(), parameters.as_bytes()].concat())?;
        connection.read_until_ready()?.map_err(io::Error::other)?;
        Ok(connection)
    }

    /// Runs SQL; several statements are one transaction.
    pub(super) fn query(&mut self, sql: &str) -> io::Result<Outcome> {
        self.send(Some(b'Q'), format!("{sql}\0").as_bytes())?;
        self.read_until_ready()
    }

    fn send(&mut self, kind: Option<u8>, body: &[u8]) -> io::Result<()> {
        let length = u32::try_from(body.len() + 4).map_err(io::Error::other)?;
        let mut message: Vec<u8> = kind.into_iter().collect();
        message.extend_from_slice(&length.to_be_bytes());
        message.extend_from_slice(body);
        self.stream.get_mut().write_all(&message)
    }

    fn read_until_ready(&mut self) -> io::Result<Outcome> {
        let (mut rows, mut error) = (Vec::new(), None);
        loop {
            let (kind, body) = self.receive()?;
            match kind {
                b'Z' => return Ok(error.map_or(Ok(rows), Err)),
                b'D' => rows.push(row(&body)?),
                // A refused log-in is followed by the end of the connection, not by `Z`.
                b'E' => error = Some(message_in(&body)),
                b'R' if body != [0; 4] => return Err(io::Error::other("it wants a password")),
                _ => {}
            }
        }
    }

    fn receive(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        self.stream.read_exact(&mut head)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let mut body = vec![0; usize::try_from(length).unwrap_or(0).saturating_sub(4)];
        self.stream.read_exact(&mut body)?;
        Ok((head[0], body))
    }
}

/// A count of values, then for each its length (-1 for `NULL`) and its bytes.
fn row(mut body: &[u8]) -> io::Result<Vec<Option<String>>> {
    let mut count = [0; 2];
    body.read_exact(&mut count)?;
    (0..u16::from_be_bytes(count)).map(|_| value(&mut body)).collect()
}

fn value(body: &mut &[u8]) -> io::Result<Option<String>> {
    let mut length = [0; 4];
    body.read_exact(&mut length)?;
    let Ok(length) = usize::try_from(i32::from_be_bytes(length)) else { return Ok(None) };
    let mut bytes = vec![0; length];
    body.read_exact(&mut bytes)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// An error is a list of fields, each a letter and a text; `M` is the one for people.
fn message_in(body: &[u8]) -> String {
    let text = body.split(|byte| *byte == 0).find_map(|field| field.strip_prefix(b"M"));
    String::from_utf8_lossy(text.unwrap_or(body)).into_owned()
}
