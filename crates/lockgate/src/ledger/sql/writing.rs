//! How records get into the tables: see the picture in [`sql`](super).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::RangeInclusive;
use std::sync::PoisonError;

use sqlx::{Connection as _, Transaction};

use super::{
    Arrival, Book as _, Dialect, REMOVE_LETTER, SqlBook, Value, Written, bury_statement, number, read_record,
    text,
};
use crate::ledger::dead_letter::DeadLetter;
use crate::ledger::error::LedgerError;
use crate::ledger::record::Record;
use crate::store::Campaign;

/// How often a write is repeated that another writer got in the way of.
const TRIES: usize = 5;

const SELECT_RUN: &str = "SELECT rev, at_us, what, seq, user_id, quantity, detail FROM lockgate_ledger \
     WHERE campaign = ? AND rev BETWEEN ? AND ? ORDER BY rev";

/// Why a transaction did not happen.
enum Trouble {
    /// A row was there before.
    Duplicate,
    Other(LedgerError),
}

impl<E: Into<LedgerError>> From<E> for Trouble {
    fn from(why: E) -> Self {
        Trouble::Other(why.into())
    }
}

impl<D: Dialect> SqlBook<D> {
    /// The id of a campaign; it is entered when it is new.
    async fn id_of(&self, campaign: &Campaign) -> Result<i64, LedgerError> {
        let known = self.ids.lock().unwrap_or_else(PoisonError::into_inner).get(campaign).copied();
        if let Some(id) = known {
            return Ok(id);
        }
        let mut lent = self.lend().await?;
        let id = Self::find_or_enter(&mut lent.connection, campaign).await;
        lent.finish();
        let id = id?.ok_or_else(|| LedgerError::Unfit(format!("the ledger did not keep {campaign:?}")))?;
        self.ids.lock().unwrap_or_else(PoisonError::into_inner).insert(campaign.clone(), id);
        Ok(id)
    }

    async fn find_or_enter(
        connection: &mut D::Connection,
        campaign: &Campaign,
    ) -> Result<Option<i64>, sqlx::Error> {
        let called = text(&campaign.called());
        let find = async |connection: &mut D::Connection| {
            let rows = D::fetch(connection, D::FIND_CAMPAIGN, &[Value::Text(called.clone())]).await?;
            Ok::<_, sqlx::Error>(rows.first().and_then(|row| row.first().and_then(Value::integer)))
        };
        if let Some(id) = find(connection).await? {
            return Ok(Some(id));
        }
        let values = [
            Value::Text(campaign.kind.as_str().to_owned()),
            Value::text_or_null(campaign.group.as_ref().map(|group| text(group.as_str()))),
            Value::Text(text(campaign.name.as_str())),
            Value::Text(called.clone()),
        ];
        let add = D::insert_unless_there("lockgate_campaigns (kind, grouped, name, called)", 4);
        D::execute(connection, &add, &values).await?;
        find(connection).await
    }

    /// The ids of all campaigns of a batch, before its transaction: a campaign that is new to several writers at once must not
    /// make them wait for each other.
    async fn ids_of(&self, arrivals: &[Arrival]) -> Result<HashMap<Campaign, i64>, LedgerError> {
        let mut ids: HashMap<Campaign, i64> = HashMap::new();
        for Arrival { record, .. } in arrivals {
            if !ids.contains_key(&record.campaign) {
                ids.insert(record.campaign.clone(), self.id_of(&record.campaign).await?);
            }
        }
        Ok(ids)
    }

    pub(super) async fn write_all(&self, arrivals: &[Arrival]) -> Result<Written, LedgerError> {
        let ids = self.ids_of(arrivals).await?;
        let outcome = match self.write_plainly(&ids, arrivals).await {
            Err(Trouble::Duplicate) => self.write_the_rest(&ids, arrivals).await,
            Ok(()) => return Ok(Written { new: arrivals.len() as u64, ..Written::default() }),
            Err(Trouble::Other(why)) => Err(why),
        };
        match outcome {
            Err(why) if why.is_fault_of_the_records() => self.write_in_halves(arrivals, &why).await,
            outcome => outcome,
        }
    }

    /// Finds those that are at fault, and buries them.
    async fn write_in_halves(&self, arrivals: &[Arrival], why: &LedgerError) -> Result<Written, LedgerError> {
        if let [alone] = arrivals {
            let Record { campaign, rev, .. } = &alone.record;
            tracing::error!(%why, ?campaign, rev, "a record cannot be written and becomes a dead letter");
            let letter = DeadLetter::refused(alone, why.to_string(), self.clock.wall());
            self.bury(std::slice::from_ref(&letter)).await?;
            return Ok(Written { refused: 1, ..Written::default() });
        }
        let (first, second) = arrivals.split_at(arrivals.len() / 2);
        let first = Box::pin(self.write_all(first)).await?;
        Ok(first + Box::pin(self.write_all(second)).await?)
    }

    async fn write_plainly(&self, ids: &HashMap<Campaign, i64>, arrivals: &[Arrival]) -> Result<(), Trouble> {
        let mut lent = self.lend().await?;
        let outcome = async {
            let mut transaction = lent.connection.begin().await?;
            self.insert(&mut transaction, ids, arrivals).await?;
            Ok(transaction.commit().await?)
        };
        let outcome = outcome.await;
        lent.finish();
        outcome
    }

    async fn insert(
        &self,
        transaction: &mut Transaction<'_, D>,
        ids: &HashMap<Campaign, i64>,
        arrivals: &[Arrival],
    ) -> Result<(), Trouble> {
        if arrivals.is_empty() {
            return Ok(());
        }
        D::insert_records(transaction, ids, arrivals).await.map_err(|why| {
            let why = LedgerError::from(why);
            if why.is_duplicate() { Trouble::Duplicate } else { Trouble::Other(why) }
        })?;
        if let Some(sink) = &self.sink {
            let records: Vec<_> = arrivals.iter().map(|arrival| arrival.record.clone()).collect();
            sink.write(transaction, &records).await?;
        }
        Ok(())
    }

    /// Some of them were there before; or some of them come twice.
    async fn write_the_rest(
        &self,
        ids: &HashMap<Campaign, i64>,
        arrivals: &[Arrival],
    ) -> Result<Written, LedgerError> {
        for _ in 0..TRIES {
            match self.try_to_write_the_rest(ids, arrivals).await {
                Err(Trouble::Duplicate) => {}
                Err(Trouble::Other(why)) => return Err(why),
                Ok(written) => return Ok(written),
            }
        }
        Err(LedgerError::Database(sqlx::Error::Protocol(
            "other writers were faster several times in a row".into(),
        )))
    }

    async fn try_to_write_the_rest(
        &self,
        ids: &HashMap<Campaign, i64>,
        arrivals: &[Arrival],
    ) -> Result<Written, Trouble> {
        let mut lent = self.lend().await?;
        let outcome = self.write_the_rest_over(&mut lent.connection, ids, arrivals).await;
        lent.finish();
        outcome
    }

    async fn write_the_rest_over(
        &self,
        connection: &mut D::Connection,
        ids: &HashMap<Campaign, i64>,
        arrivals: &[Arrival],
    ) -> Result<Written, Trouble> {
        let mut transaction = connection.begin_with(D::BEGIN_TO_WRITE).await?;
        let mut there = self.read_those_that_are_there(&mut transaction, ids, arrivals).await?;
        let (mut fresh, mut letters, mut written) = (Vec::new(), Vec::new(), Written::default());
        for arrival in arrivals {
            let key = (ids[&arrival.record.campaign], arrival.record.rev);
            match there.get(&key) {
                None => {
                    there.insert(key, arrival.record.clone());
                    fresh.push(arrival.clone());
                    written.new += 1;
                }
                Some(known) if known.says_the_same_as(&arrival.record) => written.known += 1,
                Some(known) => {
                    let Record { campaign, rev, .. } = known;
                    tracing::error!(?campaign, rev, "the ledger has the same change with other content");
                    letters.push(DeadLetter::conflict(arrival, known, self.clock.wall()));
                    written.conflicts += 1;
                }
            }
        }
        self.insert(&mut transaction, ids, &fresh).await?;
        for letter in &letters {
            D::execute(&mut transaction, &bury_statement::<D>(), &letter.values()).await?;
        }
        transaction.commit().await?;
        Ok(written)
    }

    async fn read_those_that_are_there(
        &self,
        transaction: &mut Transaction<'_, D>,
        ids: &HashMap<Campaign, i64>,
        arrivals: &[Arrival],
    ) -> Result<BTreeMap<(i64, u64), Record>, LedgerError> {
        let mut revs: HashMap<&Campaign, BTreeSet<u64>> = HashMap::new();
        for Arrival { record, .. } in arrivals {
            revs.entry(&record.campaign).or_default().insert(record.rev);
        }
        let mut there = BTreeMap::new();
        for (campaign, revs) in revs {
            let id = ids[campaign];
            for run in runs(&revs) {
                let values = [Value::Integer(id), number(*run.start()), number(*run.end())];
                let rows = D::fetch(transaction, SELECT_RUN, &values).await?;
                for row in rows {
                    let record = read_record(campaign, row)?;
                    there.insert((id, record.rev), record);
                }
            }
        }
        Ok(there)
    }

    /// Writes what a dead letter holds, and removes the letter, in one transaction.
    pub(super) async fn try_again(&self, letter: &DeadLetter) -> Result<bool, LedgerError> {
        let Some(arrival) = letter.arrival() else {
            return Err(LedgerError::Refused(format!(
                "the entry at {} could not be read and still cannot; use the version of Lockgate that wrote it, or discard it",
                letter.position
            )));
        };
        let ids = self.ids_of(std::slice::from_ref(&arrival)).await?;
        let mut transaction = self.pool.begin_with(D::BEGIN_TO_WRITE).await?;
        let there =
            self.read_those_that_are_there(&mut transaction, &ids, std::slice::from_ref(&arrival)).await?;
        match there.into_values().next() {
            Some(known) if !known.says_the_same_as(&arrival.record) => {
                return Err(LedgerError::Refused(format!(
                    "the ledger has change {} of {:?} with other content; find out which is true, then discard the letter \
                     or correct the row",
                    arrival.record.rev, arrival.record.campaign
                )));
            }
            Some(_) => {}
            None => match self.insert(&mut transaction, &ids, std::slice::from_ref(&arrival)).await {
                Ok(()) => {}
                Err(Trouble::Other(why)) => return Err(why),
                Err(Trouble::Duplicate) => {
                    return Err(LedgerError::Refused("another writer has just written it; try again".into()));
                }
            },
        }
        let removed = D::execute(&mut transaction, REMOVE_LETTER, &letter.id().values()).await?;
        transaction.commit().await?;
        Ok(removed > 0)
    }
}

/// The consecutive numbers among these.
fn runs(revs: &BTreeSet<u64>) -> Vec<RangeInclusive<u64>> {
    let mut runs: Vec<RangeInclusive<u64>> = Vec::new();
    for rev in revs {
        match runs.last_mut().filter(|run| run.end() + 1 == *rev) {
            Some(run) => *run = *run.start()..=*rev,
            None => runs.push(*rev..=*rev),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_as_long_as_they_can_be() {
        let of = |revs: &[u64]| runs(&revs.iter().copied().collect());
        assert_eq!(of(&[]), []);
        assert_eq!(of(&[3, 1, 2, 5, 7, 8]), [1..=3, 5..=5, 7..=8]);
    }
}
