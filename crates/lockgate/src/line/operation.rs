//! The operations on lines whose callers share calls.

use crate::coalesce::Operation;
use crate::key::Name;
use crate::store::{
    Answer, Crowd, Enter, EnterWish, MAX_LINE_CALL, Sending, Standing, Store, TicketAt, Told,
};

/// A line as somebody knows it. Those who know it differently are not served by the same call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct KnownLine {
    pub(super) line: Name,
    pub(super) edition: u64,
}

/// Somebody's wish.
pub(super) struct LineWish<W> {
    pub(super) known: KnownLine,
    pub(super) wish: W,
}

/// The answer to one wish; `None`: the line is not as it was known.
pub(super) type Said<T> = Option<(Crowd, T)>;

fn each_said<T>(wishes: usize, told: Option<Told<T>>) -> Vec<Said<T>> {
    match told {
        Some(Told { crowd, each }) => each.into_iter().map(|said| Some((crowd, said))).collect(),
        None => (0..wishes).map(|_| None).collect(),
    }
}

macro_rules! operations {
    ($($operation:ident = $number:literal: $wish:ty => $said:ty, $method:ident;)+) => {
        $(
            pub(super) struct $operation;

            impl Operation for $operation {
                type Wish = LineWish<$wish>;
                type Said = Said<$said>;
                type Wanted = KnownLine;
                type Meter = ();
                const NUMBER: u16 = $number;
                const MIXES: bool = false;
                const MOST: usize = MAX_LINE_CALL;

                fn wanted(wish: &Self::Wish) -> &KnownLine {
                    &wish.known
                }

                fn home(wanted: &KnownLine) -> &Name {
                    &wanted.line
                }

                fn call<'a>(
                    store: &'a dyn Store,
                    _: &'a Sending,
                    wishes: &'a [Self::Wish],
                ) -> Answer<'a, Vec<Self::Said>> {
                    Box::pin(async move {
                        let Some(KnownLine { line, edition }) = wishes.first().map(Self::wanted) else {
                            return Ok(Vec::new());
                        };
                        let all: Vec<_> = wishes.iter().map(|wish| wish.wish.clone()).collect();
                        Ok(each_said(all.len(), store.$method(line, *edition, &all).await?))
                    })
                }
            }
        )+
    };
}

operations! {
    Entering = 6: EnterWish => Enter, line_enter;
    Showing = 7: TicketAt => Standing, ticket_show;
}
