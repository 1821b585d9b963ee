//! Passes as other programs make and check them, where such a program is installed.

use std::fs;
use std::process::{Command, Output};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use lockgate::clock::Timestamp;
use lockgate::line::pass::{PassClaims, PassKeys};
use lockgate::store::Token;
use tempfile::TempDir;

use super::{TEN_MINUTES, name};

const NOW: Timestamp = Timestamp::from_millis(1_750_000_000_000);

/// What the program says; `None` when there is no such program here.
fn run(program: &str, arguments: &[&str]) -> Option<Output> {
    Command::new(program).args(arguments).output().ok()
}

fn succeeds(program: &str, arguments: &[&str]) -> Option<bool> {
    run(program, arguments).map(|output| output.status.success())
}

fn token(keys: &PassKeys) -> String {
    let (user, line) = (name("al\"ice \u{1f39f} \u{0}"), name("tour"));
    let (until, jti) = (NOW + TEN_MINUTES, Token::from_bits(7));
    keys.sign(&PassClaims { user: &user, line: &line, jti, until, now: NOW }).unwrap()
}

#[test]
fn openssl_reads_our_key_and_finds_our_signature_right() {
    if succeeds("openssl", &["version"]) != Some(true) {
        return;
    }
    let (folder, keys) = (TempDir::new().unwrap(), PassKeys::generate());
    let path = |file: &str| folder.path().join(file).to_str().unwrap().to_owned();
    let token = token(&keys);
    let (message, signature) = token.rsplit_once('.').unwrap();
    fs::write(path("key.pem"), keys.to_pkcs8_pem()).unwrap();
    fs::write(path("message"), message).unwrap();
    fs::write(path("signature"), URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
    let made =
        succeeds("openssl", &["pkey", "-in", &path("key.pem"), "-pubout", "-out", &path("public.pem")]);
    assert_eq!(made, Some(true), "openssl does not read the key");
    let (public, given, signed) = (path("public.pem"), path("message"), path("signature"));
    let verify =
        ["pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", &public, "-in", &given, "-sigfile", &signed];
    assert_eq!(succeeds("openssl", &verify), Some(true), "openssl finds the signature wrong");
    fs::write(path("message"), format!("{message}x")).unwrap();
    assert_eq!(succeeds("openssl", &verify), Some(false), "openssl finds everything right");
}

#[test]
fn we_read_the_key_of_openssl() {
    if succeeds("openssl", &["version"]) != Some(true) {
        return;
    }
    let made = run("openssl", &["genpkey", "-algorithm", "ed25519"]).unwrap();
    let pem = String::from_utf8(made.stdout).unwrap();
    let keys = PassKeys::from_pkcs8_pem(&pem).unwrap();
    assert!(keys.verifier().verify(&token(&keys), &name("tour"), NOW).is_ok());
    assert_eq!(keys.to_pkcs8_pem(), pem);
    for other in [&["-algorithm", "x25519"][..], &["-algorithm", "ed448"], &["-algorithm", "rsa"]] {
        let arguments: Vec<_> = ["genpkey"].iter().chain(other).copied().collect();
        let pem = String::from_utf8(run("openssl", &arguments).unwrap().stdout).unwrap();
        let refused = PassKeys::from_pkcs8_pem(&pem).unwrap_err().to_string();
        assert!(refused.contains("not an Ed25519 key"), "{other:?}: {refused}");
    }
}

/// Checks a pass by the published keys, and signs one of its own: with nothing of ours but the standards.
const PYTHON: &str = r#"
import base64, hashlib, json, sys
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
token, jwks, pem = sys.argv[1:4]
decode = lambda text: base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
encode = lambda data: base64.urlsafe_b64encode(data).rstrip(b"=").decode()
head, body, signature = token.split(".")
header = json.loads(decode(head))
key = next(key for key in json.loads(jwks)["keys"] if key["kid"] == header["kid"])
members = json.dumps({"crv": key["crv"], "kty": key["kty"], "x": key["x"]}, separators=(",", ":"), sort_keys=True)
assert encode(hashlib.sha256(members.encode()).digest()) == key["kid"], "the thumbprint"
Ed25519PublicKey.from_public_bytes(decode(key["x"])).verify(decode(signature), (head + "." + body).encode())
claims = json.loads(decode(body))
assert header == {"typ": "JWT", "alg": "EdDSA", "kid": key["kid"]}, header
assert claims["sub"] == "al\"ice \U0001f39f \0" and claims["line"] == "tour", claims
claims["sub"] = "python"
message = encode(json.dumps(header, indent=1).encode()) + "." + encode(json.dumps(claims).encode())
print(message + "." + encode(load_pem_private_key(pem.encode(), None).sign(message.encode())))
"#;

#[test]
fn python_checks_our_pass_and_we_check_its() {
    if succeeds("python3", &["-c", "import cryptography"]) != Some(true) {
        return;
    }
    let keys = PassKeys::generate();
    let said = run("python3", &["-c", PYTHON, &token(&keys), &keys.jwks(), &keys.to_pkcs8_pem()]).unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let theirs = String::from_utf8(said.stdout).unwrap();
    let pass = keys.verifier().verify(theirs.trim(), &name("tour"), NOW).unwrap();
    assert_eq!(pass.user(), &name("python"));
}
