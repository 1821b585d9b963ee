//! What a strategy can ask of the database, one method per statement.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sqlx::pool::PoolConnection;
use sqlx::{AssertSqlSafe, Database, MySql, Postgres, Row as _, Sqlite, Transaction};

use super::Failure;

/// A statement, as PostgreSQL numbers its arguments and as the others do.
#[derive(Clone, Copy)]
pub(super) struct Sql {
    pub(super) postgres: &'static str,
    pub(super) others: &'static str,
}

/// A connection, in a transaction or not.
pub(super) enum Hand<D: Database> {
    Plain(PoolConnection<D>),
    Transaction(Transaction<'static, D>),
}

impl<D: Database> Hand<D> {
    pub(super) fn connection(&mut self) -> &mut D::Connection {
        match self {
            Hand::Plain(connection) => connection,
            Hand::Transaction(transaction) => transaction,
        }
    }

    async fn commit(self) -> Result<u64, sqlx::Error> {
        match self {
            Hand::Plain(_) => Ok(0),
            Hand::Transaction(transaction) => transaction.commit().await.map(|()| 1),
        }
    }
}

impl<D: Database> From<PoolConnection<D>> for Hand<D> {
    fn from(connection: PoolConnection<D>) -> Self {
        Hand::Plain(connection)
    }
}

impl<D: Database> From<Transaction<'static, D>> for Hand<D> {
    fn from(transaction: Transaction<'static, D>) -> Self {
        Hand::Transaction(transaction)
    }
}

/// A connection to one of the three.
pub(super) enum Held {
    Postgres(Hand<Postgres>),
    MySql(Hand<MySql>),
    Sqlite(Hand<Sqlite>),
}

/// A connection, and the coupon that it is about.
pub(super) struct Session {
    held: Held,
    coupon: i64,
    statements: Arc<AtomicU64>,
}

const STOCK: Sql = Sql {
    postgres: "SELECT stock FROM coupon WHERE id = $1",
    others: "SELECT stock FROM coupon WHERE id = ?",
};
const STOCK_FOR_UPDATE: Sql = Sql {
    postgres: "SELECT stock FROM coupon WHERE id = $1 FOR UPDATE",
    others: "SELECT stock FROM coupon WHERE id = ? FOR UPDATE",
};
const STOCK_AND_VERSION: Sql = Sql {
    postgres: "SELECT stock, version FROM coupon WHERE id = $1",
    others: "SELECT stock, version FROM coupon WHERE id = ?",
};
const SET_STOCK: Sql = Sql {
    postgres: "UPDATE coupon SET stock = $1 WHERE id = $2",
    others: "UPDATE coupon SET stock = ? WHERE id = ?",
};
const SET_STOCK_OF_VERSION: Sql = Sql {
    postgres: "UPDATE coupon SET stock = $1, version = version + 1 WHERE id = $2 AND version = $3",
    others: "UPDATE coupon SET stock = ?, version = version + 1 WHERE id = ? AND version = ?",
};
const TAKE_ONE_IF_LEFT: Sql = Sql {
    postgres: "UPDATE coupon SET stock = stock - 1 WHERE id = $1 AND stock > 0",
    others: "UPDATE coupon SET stock = stock - 1 WHERE id = ? AND stock > 0",
};
const TAKE: Sql = Sql {
    postgres: "UPDATE coupon SET stock = stock - $1 WHERE id = $2",
    others: "UPDATE coupon SET stock = stock - ? WHERE id = ?",
};
const ADD_ISSUE: Sql = Sql {
    postgres: "INSERT INTO issue (coupon, account) VALUES ($1, $2)",
    others: "INSERT INTO issue (coupon, account) VALUES (?, ?)",
};
const COUNT_ISSUES: Sql = Sql {
    postgres: "SELECT COUNT(*) FROM issue WHERE coupon = $1 AND account = $2",
    others: "SELECT COUNT(*) FROM issue WHERE coupon = ? AND account = ?",
};

/// How many rows one statement inserts.
const ROWS_OF_A_BATCH: usize = 500;

/// Runs the same lines on whichever database it is.
macro_rules! on_each {
    ($held:expr, $sql:expr, |$text:ident, $connection:ident| $run:expr) => {
        match $held {
            Held::Postgres(hand) => {
                let ($text, $connection) = ($sql.postgres, hand.connection());
                $run
            }
            Held::MySql(hand) => {
                let ($text, $connection) = ($sql.others, hand.connection());
                $run
            }
            Held::Sqlite(hand) => {
                let ($text, $connection) = ($sql.others, hand.connection());
                $run
            }
        }
    };
}

impl Session {
    pub(super) fn new(held: Held, coupon: i64, statements: Arc<AtomicU64>) -> Self {
        Self { held, coupon, statements }
    }

    pub(super) fn held_mut(&mut self) -> &mut Held {
        &mut self.held
    }

    pub(super) fn count_statement(&self) {
        self.statements.fetch_add(1, Ordering::Relaxed);
    }

    /// The number in the stock column.
    pub(super) async fn stock(&mut self) -> Result<i64, Failure> {
        let [stock] = self.read(STOCK, &[self.coupon]).await?;
        Ok(stock)
    }

    /// The same, and nobody else may until this transaction ends.
    pub(super) async fn stock_for_update(&mut self) -> Result<i64, Failure> {
        let [stock] = self.read(STOCK_FOR_UPDATE, &[self.coupon]).await?;
        Ok(stock)
    }

    /// The stock, and the version of the row that it was read from.
    pub(super) async fn stock_and_version(&mut self) -> Result<(i64, i64), Failure> {
        let [stock, version] = self.read(STOCK_AND_VERSION, &[self.coupon]).await?;
        Ok((stock, version))
    }

    /// Writes this number, whatever is there.
    pub(super) async fn set_stock(&mut self, stock: i64) -> Result<(), Failure> {
        self.write(SET_STOCK, &[stock, self.coupon]).await?;
        Ok(())
    }

    /// Writes this number if the row still has this version; says whether it had.
    pub(super) async fn set_stock_of_version(&mut self, stock: i64, version: i64) -> Result<bool, Failure> {
        Ok(self.write(SET_STOCK_OF_VERSION, &[stock, self.coupon, version]).await? == 1)
    }

    /// One less, if there is one; says whether there was.
    pub(super) async fn take_one_if_left(&mut self) -> Result<bool, Failure> {
        Ok(self.write(TAKE_ONE_IF_LEFT, &[self.coupon]).await? == 1)
    }

    /// So many less than whatever is there.
    pub(super) async fn take(&mut self, count: usize) -> Result<(), Failure> {
        self.write(TAKE, &[i64::try_from(count)?, self.coupon]).await?;
        Ok(())
    }

    /// Writes that a user has one.
    pub(super) async fn add_issue(&mut self, user: u64) -> Result<(), Failure> {
        self.write(ADD_ISSUE, &[self.coupon, i64::try_from(user)?]).await?;
        Ok(())
    }

    /// Whether it is written that a user has one.
    pub(super) async fn has_issue(&mut self, user: u64) -> Result<bool, Failure> {
        let [count] = self.read(COUNT_ISSUES, &[self.coupon, i64::try_from(user)?]).await?;
        Ok(count > 0)
    }

    /// Writes that these users have one, many to a statement.
    pub(super) async fn add_issues(&mut self, users: &[u64]) -> Result<(), Failure> {
        for batch in users.chunks(ROWS_OF_A_BATCH) {
            let rows: Vec<_> = batch.iter().map(|user| format!("({}, {user})", self.coupon)).collect();
            // Numbers only.
            let sql =
                AssertSqlSafe(format!("INSERT INTO issue (coupon, account) VALUES {}", rows.join(", ")));
            let _affected = match &mut self.held {
                Held::Postgres(hand) => sqlx::raw_sql(sql).execute(hand.connection()).await?.rows_affected(),
                Held::MySql(hand) => sqlx::raw_sql(sql).execute(hand.connection()).await?.rows_affected(),
                Held::Sqlite(hand) => sqlx::raw_sql(sql).execute(hand.connection()).await?.rows_affected(),
            };
            self.count_statement();
        }
        Ok(())
    }

    /// Makes it last.
    pub(super) async fn commit(self) -> Result<(), Failure> {
        let sent = match self.held {
            Held::Postgres(hand) => hand.commit().await?,
            Held::MySql(hand) => hand.commit().await?,
            Held::Sqlite(hand) => hand.commit().await?,
        };
        self.statements.fetch_add(sent, Ordering::Relaxed);
        Ok(())
    }

    /// The first row of the answer.
    async fn read<const N: usize>(&mut self, sql: Sql, values: &[i64]) -> Result<[i64; N], Failure> {
        self.count_statement();
        on_each!(&mut self.held, sql, |text, connection| {
            let query = values.iter().fold(sqlx::query(text), |query, value| query.bind(*value));
            let row = query.fetch_one(connection).await?;
            let mut found = [0; N];
            for (place, value) in found.iter_mut().enumerate() {
                *value = row.try_get(place)?;
            }
            Ok(found)
        })
    }

    /// How many rows it changed.
    pub(super) async fn write(&mut self, sql: Sql, values: &[i64]) -> Result<u64, Failure> {
        self.count_statement();
        on_each!(&mut self.held, sql, |text, connection| {
            let query = values.iter().fold(sqlx::query(text), |query, value| query.bind(*value));
            Ok(query.execute(connection).await?.rows_affected())
        })
    }
}
