//! Passes that are none, and keys that change.

use jsonwebtoken::jwk::JwkSet;
use proptest::prelude::*;
use ring::hmac;
use serde_json::{Value, json};

use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_750_000_000_250);
const EXP: u64 = 1_750_000_600;

fn name(text: &str) -> Name {
    Name::new("name", text).unwrap()
}

fn claims<'a>(user: &'a Name, line: &'a Name) -> PassClaims<'a> {
    PassClaims {
        user,
        line,
        jti: Token::from_bits(7),
        until: Timestamp::from_millis(EXP * 1_000 + 999),
        now: NOW,
    }
}

/// A good pass of alice for the line `tour`.
fn pass_of(keys: &PassKeys) -> String {
    keys.sign(&claims(&name("alice"), &name("tour"))).unwrap()
}

fn verified(keys: &PassKeys, token: &str) -> Result<Pass, PassError> {
    keys.verifier().verify(token, &name("tour"), NOW)
}

fn is_invalid(keys: &PassKeys, token: &str) -> bool {
    matches!(verified(keys, token), Err(PassError::Invalid(_)))
}

fn b64(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Any header and claims, signed by the key as they are.
fn signed(keys: &PassKeys, header: &str, claims: &str) -> String {
    let message = format!("{}.{}", b64(header), b64(claims));
    format!("{message}.{}", b64(keys.signature_of(&message)))
}

fn good_header(keys: &PassKeys) -> Value {
    json!({"typ": "JWT", "alg": "EdDSA", "kid": keys.kid()})
}

fn good_claims() -> Value {
    json!({"sub": "alice", "line": "tour", "jti": Token::from_bits(7).to_string(), "exp": EXP, "iat": 1_750_000_000})
}

#[test]
fn a_pass_says_who_was_admitted_where_and_until_when() {
    let keys = PassKeys::generate();
    let pass = verified(&keys, &pass_of(&keys)).unwrap();
    assert_eq!((pass.user(), pass.line()), (&name("alice"), &name("tour")));
    assert_eq!((pass.jti(), pass.expires_at()), (Token::from_bits(7), Timestamp::from_millis(EXP * 1_000)));
    let PassUse { line, user, jti, expires_at } = PassUse::from(&pass);
    assert_eq!((&line, &user, jti, expires_at), (pass.line(), pass.user(), pass.jti(), pass.expires_at()));
}

#[test]
fn a_pass_ends_at_a_whole_second_and_never_after_the_admission() {
    let keys = PassKeys::generate();
    let (verifier, token, line) = (keys.verifier(), pass_of(&keys), name("tour"));
    let [last, over] = [EXP * 1_000_000 - 1, EXP * 1_000_000].map(Timestamp::from_micros);
    assert!(verifier.verify(&token, &line, last).is_ok());
    assert_eq!(verifier.verify(&token, &line, over), Err(PassError::Expired));
    let patient = verifier.clone().with_leeway(Duration::from_secs(2)).unwrap();
    assert!(patient.verify(&token, &line, last + Duration::from_secs(2)).is_ok());
    assert_eq!(patient.verify(&token, &line, over + Duration::from_secs(2)), Err(PassError::Expired));
    assert!(verifier.with_leeway(MAX_LEEWAY + Duration::from_nanos(1)).is_err());
}

#[test]
fn what_is_over_within_the_second_is_not_signed() {
    let keys = PassKeys::generate();
    let (user, line) = (name("alice"), name("tour"));
    for (until, is_signed) in [(999, false), (1_000, true), (250, false), (0, false)] {
        let until = Timestamp::from_millis(1_750_000_000_000 + until);
        let token = keys.sign(&PassClaims { until, ..claims(&user, &line) });
        assert_eq!(token.is_ok(), is_signed, "{until:?}: {token:?}");
    }
    let until = Timestamp::from_micros(MAX_QUANTITY + 1_000_000);
    assert!(matches!(keys.sign(&PassClaims { until, ..claims(&user, &line) }), Err(PassError::Invalid(_))));
}

#[test]
fn a_pass_of_another_line_is_none() {
    let keys = PassKeys::generate();
    let elsewhere = keys.verifier().verify(&pass_of(&keys), &name("tour "), NOW);
    assert_eq!(elsewhere, Err(PassError::OtherLine { line: name("tour") }));
}

#[test]
fn no_algorithm_but_the_one_is_accepted() {
    let keys = PassKeys::generate();
    let claims = good_claims().to_string();
    for alg in ["none", "None", "", "HS256", "HS512", "RS256", "PS256", "ES256", "EdDsa", "Ed25519", "ES256K"]
    {
        let header = json!({"typ": "JWT", "alg": alg, "kid": keys.kid()}).to_string();
        let token = signed(&keys, &header, &claims);
        assert!(is_invalid(&keys, &token), "{alg}");
        let (message, _) = token.rsplit_once('.').unwrap();
        assert!(is_invalid(&keys, &format!("{message}.")), "{alg} without a signature");
        for secret in secrets_that_everybody_knows(&keys) {
            let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &secret), message.as_bytes());
            assert!(is_invalid(&keys, &format!("{message}.{}", b64(tag))), "{alg}");
        }
    }
    assert!(verified(&keys, &signed(&keys, &good_header(&keys).to_string(), &claims)).is_ok());
}

/// The public key in the forms in which it could be mistaken for a secret.
fn secrets_that_everybody_knows(keys: &PassKeys) -> Vec<Vec<u8>> {
    let jwks: Value = serde_json::from_str(&keys.jwks()).unwrap();
    let x = jwks["keys"][0]["x"].as_str().unwrap().to_owned();
    vec![URL_SAFE_NO_PAD.decode(&x).unwrap(), x.into_bytes(), keys.jwks().into_bytes(), Vec::new()]
}

#[test]
fn the_header_names_a_known_key_and_says_nothing_else() {
    let (keys, other) = (PassKeys::generate(), PassKeys::generate());
    let with = |key: &str, value: Value| {
        let mut header = good_header(&keys);
        header[key] = value;
        signed(&keys, &header.to_string(), &good_claims().to_string())
    };
    let jwk: Value = serde_json::from_str::<Value>(&other.jwks()).unwrap()["keys"][0].clone();
    let wrong = [
        ("kid", Value::Null),
        ("kid", json!("")),
        ("kid", json!(other.kid())),
        ("kid", json!(7)),
        ("kid", json!("../../dev/null")),
        ("jwk", jwk),
        ("jku", json!("https://example.com/jwks.json")),
        ("x5u", json!("https://example.com/cert.pem")),
        ("x5c", json!(["MAo="])),
        ("x5t", json!("x")),
        ("crit", json!(["exp"])),
        ("cty", json!("JWT")),
        ("zip", json!("DEF")),
        ("typ", json!("at+jwt")),
        ("typ", Value::Null),
        ("b64", json!(false)),
        ("surprise", json!(1)),
    ];
    for (key, value) in wrong {
        assert!(is_invalid(&keys, &with(key, value.clone())), "{key}: {value}");
    }
    let without_kid = signed(&keys, r#"{"typ":"JWT","alg":"EdDSA"}"#, &good_claims().to_string());
    assert!(is_invalid(&keys, &without_kid));
    let twice = format!(r#"{{"typ":"JWT","alg":"none","alg":"EdDSA","kid":"{}"}}"#, keys.kid());
    assert!(is_invalid(&keys, &signed(&keys, &twice, &good_claims().to_string())));
}

#[test]
fn a_key_embedded_in_the_token_is_not_used() {
    let (keys, forger) = (PassKeys::generate(), PassKeys::generate());
    let jwk: Value = serde_json::from_str::<Value>(&forger.jwks()).unwrap()["keys"][0].clone();
    let header = json!({"typ": "JWT", "alg": "EdDSA", "kid": keys.kid(), "jwk": jwk});
    assert!(is_invalid(&keys, &signed(&forger, &header.to_string(), &good_claims().to_string())));
    let named = signed(&forger, &good_header(&keys).to_string(), &good_claims().to_string());
    assert_eq!(verified(&keys, &named), Err(PassError::Invalid("its signature is wrong")));
    assert!(is_invalid(&keys, &pass_of(&forger)));
}

#[test]
fn claims_that_are_not_those_of_a_pass_are_refused() {
    let keys = PassKeys::generate();
    let header = good_header(&keys).to_string();
    let with = |key: &str, value: &Value| {
        let mut claims = good_claims();
        claims[key] = value.clone();
        signed(&keys, &header, &claims.to_string())
    };
    let wrong = [
        ("exp", json!(null)),
        ("exp", json!(-1)),
        ("exp", json!(1_750_000_600.5)),
        ("exp", json!("1750000600")),
        ("exp", json!(u64::MAX)),
        ("exp", json!(MAX_QUANTITY)),
        ("exp", json!(1e300)),
        ("exp", json!(true)),
        ("iat", json!(1.5)),
        ("iat", json!("now")),
        ("sub", json!("")),
        ("sub", json!(7)),
        ("sub", json!(null)),
        ("sub", json!("x".repeat(16 * 1024 + 1))),
        ("line", json!(["tour"])),
        ("line", json!("")),
        ("jti", json!("7")),
        ("jti", json!("")),
        ("jti", json!("0000000000000000000000000000000A")),
        ("jti", json!("+0000000000000000000000000000007")),
        ("jti", json!("x".repeat(32))),
        ("jti", json!(7)),
    ];
    for (key, value) in wrong {
        assert!(is_invalid(&keys, &with(key, &value)), "{key}: {value}");
    }
    for key in ["sub", "line", "jti", "exp", "iat"] {
        let mut claims = good_claims();
        claims.as_object_mut().unwrap().remove(key);
        assert!(is_invalid(&keys, &signed(&keys, &header, &claims.to_string())), "without {key}");
        let twice =
            good_claims().to_string().replacen('{', &format!("{{\"{key}\":{},", good_claims()[key]), 1);
        assert!(is_invalid(&keys, &signed(&keys, &header, &twice)), "{key} twice");
    }
    // What a later version may add is none of our business.
    assert!(verified(&keys, &with("aud", &json!("shop"))).is_ok());
    for text in ["", "null", "[]", "7", "\"alice\""] {
        assert!(is_invalid(&keys, &signed(&keys, &header, text)), "{text}");
    }
}

#[test]
fn no_byte_of_a_pass_can_be_changed() {
    let keys = PassKeys::generate();
    let token = pass_of(&keys);
    for place in 0..token.len() {
        for bit in 0..7 {
            let mut bytes = token.clone().into_bytes();
            bytes[place] ^= 1 << bit;
            let flipped = String::from_utf8(bytes).unwrap();
            assert!(is_invalid(&keys, &flipped), "bit {bit} of byte {place}: {flipped}");
        }
        assert!(is_invalid(&keys, &token[..place]), "cut at {place}");
        let doubled = format!("{}{}", &token[..=place], &token[place..]);
        assert!(is_invalid(&keys, &doubled), "byte {place} twice");
        for inserted in [" ", "\n", "=", "."] {
            let longer = format!("{}{inserted}{}", &token[..place], &token[place..]);
            assert!(is_invalid(&keys, &longer), "{inserted:?} before byte {place}");
        }
    }
    for around in [format!("{token} "), format!("{token}="), format!("{token}."), format!("Bearer {token}")] {
        assert!(is_invalid(&keys, &around), "{around}");
    }
}

#[test]
fn what_is_too_long_is_not_looked_at() {
    let keys = PassKeys::generate();
    let claims_of = |length: usize| {
        let mut claims = good_claims();
        claims["padding"] = json!("x".repeat(length));
        signed(&keys, &good_header(&keys).to_string(), &claims.to_string())
    };
    assert!(verified(&keys, &claims_of(40_000)).is_ok());
    assert_eq!(verified(&keys, &claims_of(60_000)), Err(PassError::Invalid("it is too long")));
    let longest = name(&"x".repeat(16 * 1024));
    assert!(keys.sign(&claims(&longest, &longest)).is_ok());
    let control = name(&"\u{1}".repeat(16 * 1024));
    assert!(matches!(keys.sign(&claims(&control, &control)), Err(PassError::Invalid(_))));
}

#[test]
fn an_old_key_is_accepted_as_long_as_it_is_listed() {
    let old = PassKeys::generate();
    let token = pass_of(&old);
    let next = PassKeys::generate();
    let announced = PassKeys::from_pkcs8_pem(&old.to_pkcs8_pem()).unwrap().and_accept(&next.verifier());
    assert_eq!(announced.kid(), old.kid());
    let elsewhere = PassVerifier::from_jwks(&announced.jwks()).unwrap();
    assert!(elsewhere.verify(&pass_of(&next), &name("tour"), NOW).is_ok(), "known before it signs");

    let rotated = next.and_accept(&old.verifier()).and_accept(&old.verifier());
    assert_ne!(rotated.kid(), old.kid());
    assert_eq!(serde_json::from_str::<JwkSet>(&rotated.jwks()).unwrap().keys.len(), 2);
    assert!(verified(&rotated, &token).is_ok());
    assert!(verified(&rotated, &pass_of(&rotated)).is_ok());
    let dropped = PassKeys::from_pkcs8_pem(&rotated.to_pkcs8_pem()).unwrap();
    assert_eq!(verified(&dropped, &token), Err(PassError::Invalid("no key of that name is known")));
    assert!(verified(&dropped, &pass_of(&rotated)).is_ok());
}

#[test]
fn published_keys_are_as_the_standards_say() {
    // RFC 8037, appendix A: key, thumbprint.
    let pem = pem_of("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A");
    let keys = PassKeys::from_pkcs8_pem(&pem).unwrap();
    assert_eq!(keys.kid(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
    let jwks: Value = serde_json::from_str(&keys.jwks()).unwrap();
    let key = json!({
        "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", "kid": keys.kid(),
        "alg": "EdDSA", "use": "sig",
    });
    assert_eq!(jwks, json!({ "keys": [key] }));
    let set: JwkSet = serde_json::from_str(&keys.jwks()).unwrap();
    assert!(set.find(keys.kid()).is_some_and(jsonwebtoken::jwk::Jwk::is_supported));
    // And A.4: a signature.
    let message = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
    let expected = "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
    assert_eq!(b64(keys.signature_of(message)), expected);
}

/// The file of the key with these secret bytes.
fn pem_of(secret: &str) -> String {
    let secret = URL_SAFE_NO_PAD.decode(secret).unwrap();
    let generated = PassKeys::generate().to_pkcs8_pem();
    let text = generated.lines().filter(|line| !line.starts_with('-')).collect::<String>();
    let mut der = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
    der.splice(16.., secret);
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n")
}

#[test]
fn a_key_set_of_somebody_else_is_read_with_care() {
    let (keys, other) = (PassKeys::generate(), PassKeys::generate());
    let key = |keys: &PassKeys| serde_json::from_str::<Value>(&keys.jwks()).unwrap()["keys"][0].clone();
    let set = |keys: &[Value]| PassVerifier::from_jwks(&json!({ "keys": keys }).to_string());
    let with = |field: &str, value: Value| {
        let mut key = key(&keys);
        key[field] = value;
        key
    };
    for (field, value) in
        [("use", "enc"), ("alg", "ES256"), ("crv", "X25519"), ("kty", "EC"), ("alg", "EdDSA2")]
    {
        assert!(set(&[with(field, json!(value))]).is_err(), "{field} {value}");
        let beside = set(&[with(field, json!(value)), key(&other)]).unwrap();
        assert!(beside.verify(&pass_of(&other), &name("tour"), NOW).is_ok(), "{field} {value}");
    }
    let rsa = json!({"kty": "RSA", "n": "AQAB", "e": "AQAB", "kid": "rsa"});
    assert!(set(&[rsa, key(&keys)]).unwrap().verify(&pass_of(&keys), &name("tour"), NOW).is_ok());
    for wrong in ["", "AAAA", "!!!", "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURoA"] {
        assert!(set(&[with("x", json!(wrong))]).is_err(), "{wrong}");
    }
    assert!(
        set(&[]).is_err() && PassVerifier::from_jwks("").is_err() && PassVerifier::from_jwks("{}").is_err()
    );
    let same_name = with("x", key(&other)["x"].clone());
    assert!(set(&[key(&keys), same_name]).unwrap_err().to_string().contains("a name of its own"));
    assert!(set(&[key(&keys), key(&keys)]).is_ok());
    // Without a name it goes by its thumbprint, and with another name by that.
    let mut nameless = key(&keys);
    nameless.as_object_mut().unwrap().remove("kid");
    assert!(set(&[nameless]).unwrap().verify(&pass_of(&keys), &name("tour"), NOW).is_ok());
    assert!(
        set(&[with("kid", json!("first"))]).unwrap().verify(&pass_of(&keys), &name("tour"), NOW).is_err()
    );
}

#[test]
fn a_file_that_is_no_key_says_what_to_do() {
    let good = PassKeys::generate().to_pkcs8_pem();
    let says = |pem: &str| PassKeys::from_pkcs8_pem(pem).unwrap_err().to_string();
    assert!(PassKeys::from_pkcs8_pem(&good).is_ok());
    assert!(PassKeys::from_pkcs8_pem(&good.replace('\n', "\r\n")).is_ok());
    assert!(PassKeys::from_pkcs8_pem(&format!("Bag Attributes\n{good}")).is_ok());
    assert!(says("").contains("not in a PEM file"));
    assert!(says("c2VjcmV0").contains("openssl genpkey -algorithm ed25519"));
    assert!(says(&good[..good.len() - 30]).contains("cut short"));
    assert!(says(&good.replacen("MC4", "MC", 1)).contains("damaged"));
    let body: String = good.lines().nth(1).unwrap().to_owned();
    let shorter = good.replace(&body, &body[..body.len() - 4]);
    assert!(says(&shorter).contains("cut short"), "{}", says(&shorter));
    for (label, remedy) in [
        ("ENCRYPTED PRIVATE KEY", "decrypt"),
        ("PUBLIC KEY", "private one"),
        ("RSA PRIVATE KEY", "PKCS#8"),
        ("EC PRIVATE KEY", "PKCS#8"),
        ("OPENSSH PRIVATE KEY", "convert"),
        ("CERTIFICATE", "private key"),
    ] {
        assert!(says(&good.replace("PRIVATE KEY", label)).contains(remedy), "{label}");
    }
    // An X25519 key has the same form and another number.
    let x25519 = "MC4CAQAwBQYDK2VuBCIEIKj2dMQJhaJ+uKNx1/Cpz5zbmDiQqYPoCTT4TyJ5WYtT";
    assert!(says(&good.replace(&body, x25519)).contains("not an Ed25519 key"));
}

#[test]
fn nothing_shows_the_secret() {
    let keys = PassKeys::generate();
    let pem = keys.to_pkcs8_pem();
    let secret = pem.lines().nth(1).unwrap();
    for shown in [format!("{keys:?}"), format!("{:?}", keys.verifier()), keys.jwks()] {
        assert!(shown.contains(keys.kid()) && !shown.contains(&secret[22..]), "{shown}");
    }
    let wrong = PassKeys::from_pkcs8_pem(&pem.replace("END", "ND")).unwrap_err();
    assert!(!format!("{wrong:?} {wrong}").contains(&secret[22..]));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_names_survive(user in ".{1,40}|[\\x00-\\x1f\"\\\\🎟]{1,40}", line in "(?s).{1,40}", jti: u128, seconds in 1_u64..9_000_000) {
        let keys = PassKeys::generate();
        let (user, line, jti) = (name(&user), name(&line), Token::from_bits(jti));
        let until = NOW + Duration::from_secs(seconds);
        let token = keys.sign(&PassClaims { user: &user, line: &line, jti, until, now: NOW }).unwrap();
        prop_assert!(token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)));
        let pass = PassVerifier::from_jwks(&keys.jwks()).unwrap().verify(&token, &line, NOW).unwrap();
        prop_assert_eq!((pass.user(), pass.line(), pass.jti()), (&user, &line, jti));
        prop_assert!(pass.expires_at() <= until && until.since(pass.expires_at()) < Duration::from_secs(1));
    }

    #[test]
    fn no_text_is_a_pass(text in "\\PC{0,200}|[A-Za-z0-9_.-]{0,200}") {
        let keys = PassKeys::generate();
        prop_assert!(is_invalid(&keys, &text));
    }
}
