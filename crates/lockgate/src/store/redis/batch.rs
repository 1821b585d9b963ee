//! What every call on the stock has in common: its keys, its first arguments, and answers that are lines of text.

use super::RedisStore;
use super::guardian::Standing;
use super::script::{Script, ScriptCall, not_understood};
use crate::clock::Timestamp;
use crate::error::{InvalidInput, StoreError};
use crate::key::{Kind, Name};
use crate::store::{Campaign, CampaignKind, MAX_QUANTITY, PassUse, Sending, Token, UsedPass, late_copy};

/// The campaigns of a batch, each once.
pub(super) struct Campaigns<'a> {
    all: Vec<&'a Campaign>,
    partition: u16,
}

impl<'a> Campaigns<'a> {
    /// None so far; all that are added must belong to the partition of this one.
    pub(super) fn with(store: &RedisStore, first: &'a Campaign) -> Self {
        Self { all: vec![first], partition: store.keys.partition_of(first.home()) }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn partition(&self) -> u16 {
        self.partition
    }

    /// The place of `campaign` among the others, from 0; it is added when it is new.
    pub(super) fn place_of(
        &mut self,
        store: &RedisStore,
        campaign: &'a Campaign,
    ) -> Result<usize, InvalidInput> {
        if let Some(place) = self.all.iter().rposition(|known| *known == campaign) {
            return Ok(place);
        }
        if store.keys.partition_of(campaign.home()) != self.partition {
            let problem = "do not all live in one partition; give them one group".to_owned();
            return Err(InvalidInput::new("campaigns", problem));
        }
        self.all.push(campaign);
        Ok(self.all.len() - 1)
    }
}

impl RedisStore {
    /// A script that changes campaigns, with its first keys and arguments.
    pub(super) fn batch(
        &self,
        script: Script,
        sending: &Sending,
        campaigns: &Campaigns<'_>,
        more_keys: impl IntoIterator<Item = String>,
    ) -> ScriptCall<'_> {
        self.batch_with_passes(script, sending, "", campaigns, more_keys)
    }

    /// The same for wishes with which passes may be shown: see [`pack_passes`].
    pub(super) fn batch_with_passes(
        &self,
        script: Script,
        sending: &Sending,
        passes: &str,
        campaigns: &Campaigns<'_>,
        more_keys: impl IntoIterator<Item = String>,
    ) -> ScriptCall<'_> {
        let mut keys =
            vec![self.keys.journal(campaigns.partition), self.sending_key(campaigns.partition, sending)];
        for part in 0..3 {
            keys.extend(campaigns.all.iter().map(|campaign| self.key_of(campaign, part)));
        }
        keys.extend(more_keys);
        keys.extend(self.epoch_keys(campaigns.partition));
        let call = self.scripts.call(script, &keys).arg(sending.number).arg(passes).arg(campaigns.len());
        let call = campaigns.all.iter().fold(call, |call, campaign| call.arg(campaign.called()));
        call.telling_the_run()
    }

    /// Whether a partition's campaigns can be trusted, and which of them miss something.
    pub(super) fn epoch_keys(&self, partition: u16) -> [String; 2] {
        [self.keys.epoch(partition), self.keys.marks(partition)]
    }

    /// Sends a script that changes campaigns; its answers, without the last line, which says how far the campaigns are.
    pub(super) async fn send_batch(
        &self,
        call: ScriptCall<'_>,
        campaigns: &Campaigns<'_>,
    ) -> Result<String, StoreError> {
        let mut text = call.send_for_text(&self.link).await?;
        if let Some(at) = text.rfind("\n=") {
            let revs = text[at + 2..].split(' ').map(Standing::read);
            let is_recovering = self.guardian.note(campaigns.all.iter().copied().zip(revs));
            text.truncate(at);
            if is_recovering {
                self.look_after(campaigns.partition);
            }
        }
        Ok(text)
    }

    /// A script that reads one campaign, with its first keys and arguments.
    pub(super) fn reading(&self, script: Script, campaign: &Campaign) -> ScriptCall<'_> {
        self.reading_with(script, campaign, [])
    }

    /// The same with more keys.
    pub(super) fn reading_with(
        &self,
        script: Script,
        campaign: &Campaign,
        more_keys: impl IntoIterator<Item = String>,
    ) -> ScriptCall<'_> {
        let mut keys = vec![self.keys.journal(self.keys.partition_of(campaign.home()))];
        keys.extend((0..3).map(|part| self.key_of(campaign, part)));
        keys.extend(self.epoch_keys(self.keys.partition_of(campaign.home())));
        keys.extend(more_keys);
        self.scripts.call(script, &keys).arg(campaign.called()).telling_the_run()
    }

    /// The key of what the sender's slot was answered last.
    pub(super) fn sending_key(&self, partition: u16, sending: &Sending) -> String {
        self.keys.sending(partition, &format!("{}.{}", sending.process, sending.slot))
    }

    /// One of a campaign's three keys: itself, its members, what is due.
    pub(super) fn key_of(&self, campaign: &Campaign, part: usize) -> String {
        let kind = match campaign.kind {
            CampaignKind::Coupon => [Kind::Coupon, Kind::CouponMembers, Kind::CouponDue],
            CampaignKind::Deal => [Kind::Deal, Kind::DealMembers, Kind::DealDue],
            CampaignKind::Sku => [Kind::Sku, Kind::SkuMembers, Kind::SkuDue],
        }[part];
        match &campaign.group {
            None => self.keys.key(kind, &campaign.name),
            Some(group) => self.keys.key_in_group(kind, group, &campaign.name),
        }
    }
}

/// Packs texts of any content into one: `5:alice3:bob`.
pub(super) fn pack(packed: &mut String, text: &str) {
    use std::fmt::Write as _;
    // Writing into a String cannot fail.
    let _ = write!(packed, "{}:", text.len());
    packed.push_str(text);
}

/// The passes that are shown with wishes, each with its wish's user, as `shared/passes.lua` reads them; nothing when there is
/// none.
pub(super) fn pack_passes<'a>(
    wishes: impl Iterator<Item = (&'a Name, Option<&'a PassUse>)> + Clone,
) -> String {
    let mut packed = String::new();
    if wishes.clone().all(|(_, pass)| pass.is_none()) {
        return packed;
    }
    for (user, pass) in wishes {
        let pass = pass.map_or_else(String::new, |pass| {
            let is_own = if pass.user == *user { 'y' } else { 'n' };
            format!("{is_own}{}{}", written_pass(&pass.used()), pass.line)
        });
        pack(&mut packed, &pass);
    }
    packed
}

/// How many digits the end of a pass has in the journal and in the members.
const PASS_END_DIGITS: usize = 16;

/// A used pass as the journal has it: the admission, and when it ends.
pub(super) fn written_pass(pass: &UsedPass) -> String {
    // Beyond the year 2255 nobody counts; and nobody verifies such a pass.
    let expires_at = pass.expires_at.as_micros().min(MAX_QUANTITY);
    format!("{}{expires_at:0PASS_END_DIGITS$}", pass.jti)
}

/// Undoes [`written_pass`], of any number of them one after the other.
pub(super) fn read_passes(mut written: &str) -> Option<Vec<UsedPass>> {
    let mut passes = Vec::new();
    while !written.is_empty() {
        let (pass, rest) = written.split_at_checked(32 + PASS_END_DIGITS)?;
        let (jti, expires_at) = pass.split_at_checked(32)?;
        let expires_at = Timestamp::from_micros(expires_at.parse().ok()?);
        passes.push(UsedPass { jti: Token::parse(jti)?, expires_at });
        written = rest;
    }
    Some(passes)
}

/// Undoes [`pack`].
pub(super) fn unpack(mut packed: &str) -> Option<Vec<&str>> {
    let mut texts = Vec::new();
    while !packed.is_empty() {
        let (length, rest) = packed.split_once(':')?;
        let (text, rest) = rest.split_at_checked(length.parse().ok()?)?;
        texts.push(text);
        packed = rest;
    }
    Some(texts)
}

/// One answer: a word and its numbers.
#[derive(Debug)]
pub(super) struct Line<'a>(&'a str);

impl<'a> Line<'a> {
    pub(super) fn new(line: &'a str) -> Self {
        Self(line)
    }

    /// The word, and what follows.
    pub(super) fn parts(&self) -> (&'a str, &'a str) {
        self.0.split_once(' ').unwrap_or((self.0, ""))
    }

    /// The numbers after the word; the answer is not understood unless there are exactly so many.
    pub(super) fn numbers<const N: usize>(&self) -> Result<[u64; N], StoreError> {
        let mut numbers = [0; N];
        let mut words = self.parts().1.split(' ');
        for number in &mut numbers {
            *number = words.next().and_then(|word| word.parse().ok()).ok_or_else(|| self.not_understood())?;
        }
        if words.next().is_some() { Err(self.not_understood()) } else { Ok(numbers) }
    }

    /// So many numbers after the word, and the text after them, if there is one.
    pub(super) fn numbers_and_text<const N: usize>(&self) -> Result<([u64; N], Option<&'a str>), StoreError> {
        let mut numbers = [0; N];
        let mut words = self.parts().1.splitn(N + 1, ' ');
        for number in &mut numbers {
            *number = words.next().and_then(|word| word.parse().ok()).ok_or_else(|| self.not_understood())?;
        }
        Ok((numbers, words.next()))
    }

    /// All numbers after the word.
    pub(super) fn all_numbers(&self) -> Result<Vec<u64>, StoreError> {
        let words = self.parts().1.split(' ').filter(|word| !word.is_empty());
        words.map(|word| word.parse().map_err(|_| self.not_understood())).collect()
    }

    pub(super) fn not_understood(&self) -> StoreError {
        match self.0 {
            "late" => late_copy(),
            "recovering" => StoreError::Recovering,
            text => not_understood(&text),
        }
    }
}

/// Reads one line per wish.
pub(super) fn read_lines<T>(
    text: &str,
    wishes: usize,
    read: impl Fn(&Line<'_>) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let answers = text.split('\n').map(|line| read(&Line::new(line))).collect::<Result<Vec<_>, _>>()?;
    if answers.len() == wishes { Ok(answers) } else { Err(not_understood(&text)) }
}

pub(super) fn micros_or_zero(time: Option<Timestamp>) -> u64 {
    time.map_or(0, Timestamp::as_micros)
}

pub(super) fn timestamp_unless_zero(micros: u64) -> Option<Timestamp> {
    (micros != 0).then(|| Timestamp::from_micros(micros))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_packed_comes_out_again(texts in prop::collection::vec(any::<String>(), 0..5)) {
            let mut packed = String::new();
            texts.iter().for_each(|text| pack(&mut packed, text));
            prop_assert_eq!(unpack(&packed).unwrap(), texts);
        }
    }

    #[test]
    fn answers_of_another_length_are_not_understood() {
        assert!(Line::new("issued 1 2").numbers::<2>().is_ok());
        for wrong in ["issued 1", "issued 1 2 3", "issued 1 x", "issued"] {
            assert!(matches!(Line::new(wrong).numbers::<2>(), Err(StoreError::UnknownOutcome(_))), "{wrong}");
        }
        assert!(matches!(Line::new("late").not_understood(), StoreError::Refused(_)));
    }
}
