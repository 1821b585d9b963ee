//! What people write in SQL: one transaction per request, over a pool of connections.

use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

use super::new_user;
use crate::bench::Failure;
use crate::bench::frame::{Contender, Doing, Role, Worker};
use crate::bench::slice::work_in_tasks;
use crate::bench::tally::Tallies;

/// The usual size of a pool; more connections make a contended row slower.
const CONNECTIONS: u32 = 20;

#[derive(Clone, Copy)]
pub(super) enum Way {
    ConditionalUpdate,
    SelectForUpdate,
}

pub(super) struct Sql {
    pool: PgPool,
    way: Way,
}

const RESET: &str = "
DROP TABLE IF EXISTS user_coupon; DROP TABLE IF EXISTS coupon;
CREATE TABLE coupon (id INT PRIMARY KEY, stock BIGINT NOT NULL);
CREATE TABLE user_coupon (coupon INT NOT NULL, account TEXT NOT NULL, PRIMARY KEY (coupon, account));
INSERT INTO coupon VALUES (1, 1000000000);";

impl Sql {
    pub(super) async fn connect(url: &str, way: Way) -> Result<Self, Failure> {
        let options =
            PgPoolOptions::new().max_connections(CONNECTIONS).acquire_timeout(Duration::from_secs(60));
        Ok(Self { pool: options.connect(url).await?, way })
    }
}

impl Contender for Sql {
    fn name(&self) -> &'static str {
        match self.way {
            Way::ConditionalUpdate => "PostgreSQL: UPDATE … WHERE stock > 0",
            Way::SelectForUpdate => "PostgreSQL: SELECT … FOR UPDATE",
        }
    }

    fn role(&self) -> Role {
        Role::Peer
    }

    fn client_commands(&self) -> &'static [&'static str] {
        &[]
    }

    fn prepare(&self, _: usize, _: Duration) -> Doing<'_, ()> {
        Box::pin(async {
            sqlx::raw_sql(RESET).execute(&self.pool).await?;
            Ok(())
        })
    }

    fn turn(&self, tasks: usize, length: Duration) -> Doing<'_, Tallies> {
        let worker = |_| Box::new(SqlWorker { pool: self.pool.clone(), way: self.way }) as Box<dyn Worker>;
        Box::pin(work_in_tasks((0..tasks).map(worker), length))
    }
}

struct SqlWorker {
    pool: PgPool,
    way: Way,
}

impl Worker for SqlWorker {
    fn work(&mut self) -> Doing<'_, u64> {
        Box::pin(async {
            let mut transaction = self.pool.begin().await?;
            let taken = match self.way {
                Way::ConditionalUpdate => {
                    let update = "UPDATE coupon SET stock = stock - 1 WHERE id = 1 AND stock > 0";
                    sqlx::query(update).execute(&mut *transaction).await?.rows_affected()
                }
                Way::SelectForUpdate => {
                    let select = "SELECT stock FROM coupon WHERE id = 1 FOR UPDATE";
                    let stock: i64 = sqlx::query_scalar(select).fetch_one(&mut *transaction).await?;
                    let update = "UPDATE coupon SET stock = $1 WHERE id = 1";
                    sqlx::query(update).bind(stock - 1).execute(&mut *transaction).await?.rows_affected()
                }
            };
            let insert = "INSERT INTO user_coupon VALUES (1, $1)";
            sqlx::query(insert).bind(new_user()).execute(&mut *transaction).await?;
            transaction.commit().await?;
            Ok(taken)
        })
    }
}
