//! What entering a line must do.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "assertions: a store that does not answer fails the suite"
)]

use std::collections::BTreeSet;
use std::time::Duration;

use super::line::{GRACE, Known, LONG, PAST_GRACE, batch_of, entered, over, ticket, waits_at, was_in};
use super::{Home, each_for_itself, fresh, name, nasty_names};
use crate::error::StoreError;
use crate::key::Name;
use crate::store::{Ending, Enter, EnterWish, LineChange, LineState, MAX_LINE_CALL, Standing};

/// [`Store::line_enter`](crate::store::Store::line_enter)
pub async fn line_enter(home: &Home) {
    each_for_itself!(home:
        numbers_are_given_in_the_order_of_arrival,
        whoever_is_in_the_line_keeps_the_number,
        whoever_is_over_gets_a_new_number,
        some_who_are_new_among_some_who_are_not,
        who_enters_again_counts_as_seen,
        who_is_admitted_is_told_so_and_has_not_shown_the_ticket,
        positions_do_not_count_those_who_left,
        nobody_enters_before_the_opening,
        every_user_is_another_one,
        as_many_as_one_call_may_carry_and_no_more,
        of_many_at_once_each_has_a_number,
        a_line_of_another_edition_lets_nobody_in,
    );
}

async fn numbers_are_given_in_the_order_of_arrival(home: &Home) {
    let known = home.line(batch_of(1)).await;
    assert_eq!(home.enters(&known, "alice").await, entered(0, 1));
    let both = home.enter(&known, &["bob", "carol"].map(name)).await;
    assert_eq!(both, [entered(1, 2), entered(2, 3)]);
    let told = home.store.line_enter(&known.line, known.edition, &[]).await.unwrap().unwrap();
    assert_eq!((told.crowd.state, told.crowd.waiting, told.crowd.active), (LineState::Running, 3, 0));
    assert_eq!(told.each, []);
    assert_eq!(home.look_at(&known).await.arrived, 3);
    // Those who were passed are not ahead of anybody.
    home.ticks(&known).await;
    assert_eq!(home.enters(&known, "dave").await, entered(3, 3));
    let wishes = [EnterWish { user: name("erin"), known: None }];
    let told = home.store.line_enter(&known.line, known.edition, &wishes).await.unwrap().unwrap();
    assert_eq!((told.crowd.waiting, told.crowd.active), (4, 1));
}

async fn whoever_is_in_the_line_keeps_the_number(home: &Home) {
    let known = home.line(batch_of(1)).await;
    let twice = home.enter(&known, &["alice", "bob", "alice"].map(name)).await;
    assert_eq!(twice, [entered(0, 1), entered(1, 2), was_in(0, waits_at(1))]);
    for _ in 0..2 {
        assert_eq!(home.enters(&known, "bob").await, was_in(1, waits_at(2)));
        let both = home.enter(&known, &["bob", "alice"].map(name)).await;
        assert_eq!(both, [was_in(1, waits_at(2)), was_in(0, waits_at(1))]);
    }
    let status = home.look_at(&known).await;
    assert_eq!((status.arrived, status.crowd.waiting), (2, 2));
    // What the caller believes to know is of no interest where nothing was drawn.
    let wish = EnterWish { user: name("bob"), known: Some(ticket(0)) };
    let told = home.store.line_enter(&known.line, known.edition, &[wish]).await.unwrap().unwrap();
    assert_eq!(told.each, [was_in(1, waits_at(2))]);
}

async fn whoever_is_over_gets_a_new_number(home: &Home) {
    let known = home.line(batch_of(1)).await;
    home.fill(&known, 3).await;
    home.leaves(&known, 1).await;
    home.ticks(&known).await;
    assert_eq!(home.enters(&known, "p1").await, entered(3, 2));
    assert_eq!(home.enters(&known, "p1").await, was_in(3, waits_at(2)));
    assert_eq!(home.shows(&known, 1).await, over(Ending::Left), "the old ticket lives again");
    home.finishes(&known, 0).await;
    let again = home.enter(&known, &["p0", "p2", "p0"].map(name)).await;
    assert_eq!(again, [entered(4, 3), was_in(2, waits_at(1)), was_in(4, waits_at(3))]);
    assert_eq!(home.shows(&known, 0).await, over(Ending::Finished));
    assert_eq!(home.look_at(&known).await.arrived, 5);
}

async fn some_who_are_new_among_some_who_are_not(home: &Home) {
    let known = home.line(batch_of(1)).await;
    home.fill(&known, 3).await;
    home.leaves(&known, 0).await;
    let users = ["p3", "p1", "p0", "p4", "p3", "p2"].map(name);
    let answers = home.enter(&known, &users).await;
    let expected = [
        entered(3, 3),
        was_in(1, waits_at(1)),
        entered(4, 4),
        entered(5, 5),
        was_in(3, waits_at(3)),
        was_in(2, waits_at(2)),
    ];
    assert_eq!(answers, expected);
    // And all of them are where they were told.
    for (number, position) in [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5)] {
        assert_eq!(home.shows(&known, number).await, waits_at(position), "{number}");
    }
}

async fn who_enters_again_counts_as_seen(home: &Home) {
    let known = home.line(batch_of(3).grace(Some(GRACE)).unwrap()).await;
    home.fill(&known, 3).await;
    home.goes_on(&known, PAST_GRACE).await;
    home.enter(&known, &["p0", "p2"].map(name)).await;
    let tick = home.ticks(&known).await;
    assert_eq!((tick.done.admitted, tick.done.abandoned), (2, 1));
    assert_eq!(home.enters(&known, "p1").await, entered(3, 1), "who was passed over may enter again");
}

async fn who_is_admitted_is_told_so_and_has_not_shown_the_ticket(home: &Home) {
    let known = home.line(batch_of(1)).await;
    let user = &nasty_names(&name("alice\n"))[12];
    home.enter(&known, std::slice::from_ref(user)).await;
    home.ticks(&known).await;
    let is_shown_after_entering = async || match home
        .enter(&known, std::slice::from_ref(user))
        .await
        .remove(0)
    {
        Enter::In { number: 0, is_new: false, standing: Standing::Admitted { user: its, is_shown, .. } } => {
            assert_eq!(&its, user);
            is_shown
        }
        other => panic!("{other:?}"),
    };
    assert!(!is_shown_after_entering().await);
    assert!(!is_shown_after_entering().await);
    home.shows(&known, 0).await;
    assert!(is_shown_after_entering().await);
    // Among others, too.
    let answers = home.enter(&known, &[name("bob"), user.clone(), name("bob")]).await;
    assert_eq!((&answers[0], &answers[2]), (&entered(1, 1), &was_in(1, waits_at(1))));
    let Enter::In { number: 0, standing: Standing::Admitted { user: its, .. }, .. } = &answers[1] else {
        panic!("{answers:?}")
    };
    assert_eq!(its, user);
}

async fn positions_do_not_count_those_who_left(home: &Home) {
    let known = home.line(batch_of(1)).await;
    home.fill(&known, 4).await;
    home.leaves(&known, 1).await;
    home.leaves(&known, 3).await;
    assert_eq!(home.enters(&known, "p4").await, entered(4, 3));
    assert_eq!(home.enter(&known, &["p5", "p6"].map(name)).await, [entered(5, 4), entered(6, 5)]);
    assert_eq!(home.enters(&known, "p2").await, was_in(2, waits_at(2)));
}

async fn nobody_enters_before_the_opening(home: &Home) {
    let opens_at = home.clock.wall() + LONG;
    let known = home.line(batch_of(1).opens_at(opens_at)).await;
    assert_eq!(home.enters(&known, "alice").await, Enter::NotOpen { opens_at });
    let both = home.enter(&known, &["alice", "bob"].map(name)).await;
    assert_eq!(both, [Enter::NotOpen { opens_at }, Enter::NotOpen { opens_at }]);
    let tick = home.ticks(&known).await;
    assert_eq!((tick.crowd.state, tick.next_in, tick.tail), (LineState::Scheduled, None, 0));
    // Whoever is the first to come then opens it.
    let soon = home.clock.wall() + Duration::from_millis(200);
    let known = home.line(batch_of(1).opens_at(soon)).await;
    home.let_pass(Duration::from_millis(201)).await;
    assert_eq!(home.enters(&known, "alice").await, entered(0, 1));
    assert_eq!(home.look_at(&known).await.crowd.state, LineState::Running);
    assert_eq!(home.ticks(&known).await.done.admitted, 1);
    // A pause is no reason to send people away.
    home.changes(&known, LineChange::Pause).await;
    assert_eq!(home.enters(&known, "bob").await, entered(1, 1));
    // Early ones wait for the draw.
    let early = home.line(batch_of(1).prequeue_until(home.clock.wall() + LONG)).await;
    for (number, user) in [(0, "alice"), (1, "bob")] {
        let is_early = Enter::In { number, is_new: true, standing: Standing::Early };
        assert_eq!(home.enters(&early, user).await, is_early);
        assert_eq!(home.enters(&early, user).await, was_in(number, Standing::Early));
    }
    let told = home.store.line_enter(&early.line, early.edition, &[]).await.unwrap().unwrap();
    assert_eq!((told.crowd.state, told.crowd.waiting), (LineState::Early, 2));
}

async fn every_user_is_another_one(home: &Home) {
    let known = home.line(batch_of(100)).await;
    let users = nasty_names(&name("u"));
    let answers = home.enter(&known, &users).await;
    for (number, answer) in (0..).zip(&answers) {
        assert_eq!(answer, &entered(number, number + 1));
    }
    for (number, user) in (0..).zip(&users) {
        let one = home.enter(&known, std::slice::from_ref(user)).await;
        assert_eq!(one, [was_in(number, waits_at(number + 1))], "{user:?}");
    }
    home.ticks(&known).await;
    for (number, user) in (0..).zip(&users) {
        let standing = home.shows(&known, number).await;
        assert!(matches!(&standing, Standing::Admitted { user: its, .. } if its == user), "{standing:?}");
    }
}

async fn as_many_as_one_call_may_carry_and_no_more(home: &Home) {
    let known = home.line(batch_of(1)).await;
    let users: Vec<_> = (0..MAX_LINE_CALL).map(|number| name(&format!("p{number}"))).collect();
    let answers = home.enter(&known, &users).await;
    for (number, answer) in (0..).zip(&answers) {
        assert_eq!(answer, &entered(number, number + 1));
    }
    let again = home.enter(&known, &users).await;
    for (number, answer) in (0..).zip(&again) {
        assert_eq!(answer, &was_in(number, waits_at(number + 1)));
    }
    let wishes = vec![EnterWish { user: name("x"), known: None }; MAX_LINE_CALL + 1];
    let refused = home.store.line_enter(&known.line, known.edition, &wishes).await;
    assert!(matches!(refused, Err(StoreError::InvalidInput(_))), "{refused:?}");
}

async fn of_many_at_once_each_has_a_number(home: &Home) {
    let known = home.line(batch_of(1)).await;
    let mut tries = tokio::task::JoinSet::new();
    for user in 0..60 {
        let (store, Known { line, edition }) = (home.store.clone(), known.clone());
        tries.spawn(async move {
            let wishes =
                [0, 1].map(|other| EnterWish { user: name(&format!("{}", user % 30 + other)), known: None });
            store.line_enter(&line, edition, &wishes).await.unwrap().unwrap().each
        });
    }
    let answers = tries.join_all().await.concat();
    let new: Vec<_> = answers.iter().filter_map(|answer| number_of(answer, true)).collect();
    let different: BTreeSet<_> = new.iter().copied().collect();
    assert_eq!((new.len(), different), (31, (0..31).collect()));
    let all: BTreeSet<_> = answers.iter().filter_map(|answer| number_of(answer, false)).collect();
    assert!(all.iter().all(|number| *number < 31), "{all:?}");
}

fn number_of(answer: &Enter, only_new: bool) -> Option<u64> {
    match answer {
        Enter::In { number, is_new, .. } if *is_new == only_new => Some(*number),
        _ => None,
    }
}

async fn a_line_of_another_edition_lets_nobody_in(home: &Home) {
    let known = home.line(batch_of(1)).await;
    let wishes = [EnterWish { user: name("alice"), known: None }];
    for edition in [0, known.edition - 1, known.edition + 1, u64::MAX] {
        assert_eq!(home.store.line_enter(&known.line, edition, &wishes).await.unwrap(), None);
    }
    assert_eq!(home.look_at(&known).await.arrived, 0);
    let nowhere: Name = fresh("line");
    assert_eq!(home.store.line_enter(&nowhere, known.edition, &wishes).await.unwrap(), None);
    assert_eq!(home.store.line_read(&nowhere).await.unwrap(), None, "entering made a line");
}
