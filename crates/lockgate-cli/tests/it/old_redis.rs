//! A server that says of itself that it is Redis 6.0. It answers `INFO` and nods at everything else.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

/// Starts one; gives its URL. It ends with the test process.
pub(crate) fn start() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            thread::spawn(move || answer_all(connection));
        }
    });
    url
}

fn answer_all(mut connection: TcpStream) {
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    while let Some(command) = read_command(&mut reader) {
        let info = "redis_version:6.0.16\r\nredis_mode:standalone\r\nrole:master\r\nmaxmemory:0\r\n";
        let answer = match command.to_ascii_uppercase().as_str() {
            "INFO" => format!("${}\r\n{info}\r\n", info.len()),
            _ => "+OK\r\n".to_owned(),
        };
        if connection.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// The first word of the next command, as RESP writes it.
fn read_command(reader: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let words: usize = line.trim().strip_prefix('*')?.parse().ok()?;
    let mut command = Vec::new();
    for _ in 0..words {
        let (mut length, mut word) = (String::new(), String::new());
        reader.read_line(&mut length).ok()?;
        reader.read_line(&mut word).ok()?;
        command.push(word.trim().to_owned());
    }
    command.into_iter().next()
}
