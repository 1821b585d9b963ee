//! What a crowd of buyers notices of a writer on the same machine.

use std::time::Duration;

use lockgate::clock::Clock;
use tokio::sync::Mutex;

use super::CALLERS;
use super::database::Database;
use super::journal::Journal;
use crate::bench::frame::{Case, Contender, Doing, Role, Worker};
use crate::bench::slice::work_in_tasks;
use crate::bench::stock::OurWorker;
use crate::bench::tally::Tallies;

pub(super) fn case<'a>(database: &'a Database, redis: &str) -> Case<'a> {
    let buying = |is_written| {
        let journal = Mutex::default();
        Box::new(Buying { database, redis: redis.to_owned(), is_written, journal }) as Box<dyn Contender + 'a>
    };
    let name = "ledger: what buyers notice of a writer beside them".into();
    Case { name, tasks: CALLERS, contenders: vec![buying(false), buying(true)] }
}

struct Buying<'a> {
    database: &'a Database,
    redis: String,
    is_written: bool,
    journal: Mutex<Option<Journal>>,
}

impl Contender for Buying<'_> {
    fn name(&self) -> &'static str {
        if self.is_written {
            "one coupon each, the ledger written meanwhile"
        } else {
            "one coupon each, no ledger"
        }
    }

    fn role(&self) -> Role {
        if self.is_written { Role::Ours } else { Role::Limit }
    }

    fn client_commands(&self) -> &'static [&'static str] {
        &[]
    }

    fn prepare(&self, _: usize, _: Duration) -> Doing<'_, ()> {
        Box::pin(async {
            *self.journal.lock().await = Some(Journal::fresh(&self.redis).await?);
            Ok(())
        })
    }

    fn turn(&self, tasks: usize, length: Duration) -> Doing<'_, Tallies> {
        Box::pin(async move {
            let journal = self.journal.lock().await.take().ok_or("no coupon was opened")?;
            let writer = match self.is_written {
                true => Some(journal.start_writer(&self.database.empty_ledger().await?)?),
                false => None,
            };
            let coupon = journal.coupon()?;
            let clock = Clock::system();
            let start = clock.monotonic();
            let worker = |_| Box::new(OurWorker(coupon.clone())) as Box<dyn Worker>;
            let mut tallies = work_in_tasks((0..tasks).map(worker), length).await?;
            tallies.seconds = Some(clock.monotonic().since(start).as_secs_f64());
            if let Some(writer) = writer {
                writer.shutdown().await;
            }
            Ok(tallies)
        })
    }
}
