//! Who waits, who holds, and what a room leaves behind.

use std::time::Duration;

use super::super::fixture::{Fixture, WHOLE, fixed, kept};
use super::*;
use crate::store::WRITER;

const SECOND: Duration = Duration::from_secs(1);

/// A room of which the first of two waiters has just got the lock.
async fn held_and_waited_for(fixture: &Fixture) -> (Arc<Room>, Guard, oneshot::Receiver<Outcome>) {
    fixture.desk.settle_in();
    let room = fixture.room("m");
    let (mut first, must_seek) = room.enter(WHOLE, fixed(SECOND), None).unwrap();
    assert!(must_seek);
    let (second, must_seek) = room.enter(WHOLE, fixed(SECOND), None).unwrap();
    assert!(!must_seek, "one search is enough");
    room.begin_tenure(fixture.grant(&room, 3 * SECOND, false).await);
    (room, first.try_recv().unwrap().unwrap(), second)
}

fn tenure_of(room: &Room) -> Arc<Tenure> {
    Arc::clone(&room.inner().stays[0].tenure)
}

#[tokio::test]
async fn the_end_of_one_holder_is_not_taken_for_that_of_the_next() {
    let fixture = Fixture::new();
    let (room, first, mut second) = held_and_waited_for(&fixture).await;
    let tenure = tenure_of(&room);
    // The keeper has decided that the first one's time is over, and is too late: it has given the lock back.
    drop(first);
    let second = second.try_recv().unwrap().unwrap();
    fixture.desk.keeper.forget(&tenure);
    tenure.set_due(Moment::from_nanos(u64::MAX));
    room.take_from_holder(&tenure);
    assert_eq!(second.check(), Ok(()));
    assert_eq!(tenure.due(), fixture.now() + SECOND, "nobody looks when its own time is over");
    assert_eq!(fixture.desk.keeper.count(), 1);
}

#[tokio::test]
async fn a_holder_whose_lease_is_over_loses_the_lock_to_the_next() {
    let fixture = Fixture::new();
    let (room, first, mut second) = held_and_waited_for(&fixture).await;
    fixture.clock.advance(SECOND);
    room.take_from_holder(&tenure_of(&room));
    let second = second.try_recv().unwrap().unwrap();
    assert!(first.check().is_err() && second.check().is_ok());
    assert!(second.hold().fence() > first.hold().fence());
    drop(first);
    assert_eq!(second.check(), Ok(()), "given back by one who had lost it");
}

#[tokio::test]
async fn who_goes_away_with_the_lock_in_its_channel_passes_it_on() {
    let fixture = Fixture::new();
    let (room, first, second) = held_and_waited_for(&fixture).await;
    let (mut third, _) = room.enter(WHOLE, fixed(SECOND), None).unwrap();
    drop(first);
    // The guard is on its way, and nobody has taken it.
    assert!(third.try_recv().is_err());
    drop(second);
    let third = third.try_recv().expect("nobody has passed it on").unwrap();
    assert_eq!(third.check(), Ok(()));
}

#[tokio::test]
async fn nobody_comes_into_a_room_that_the_last_one_has_left() {
    let fixture = Fixture::new();
    let (room, first, second) = held_and_waited_for(&fixture).await;
    drop(second);
    drop(first);
    assert!(room.enter(WHOLE, fixed(SECOND), None).is_none(), "two rooms would have the name");
}

const READING: Share = Share { permits: 1, of: WRITER };
const WRITING: Share = Share { permits: WRITER, of: WRITER };

/// A room that has all of a read-write lock, with a reader in it.
async fn a_reader_under_a_writers_tenure(fixture: &Fixture) -> (Arc<Room>, Guard) {
    fixture.desk.settle_in();
    let room = fixture.rw_room("rw");
    let (mut reader, _) = room.enter(READING, kept(10 * SECOND), None).unwrap();
    room.begin_tenure(fixture.grant_of(&room, WRITING, 10 * SECOND, false).await);
    let reader = reader.try_recv().unwrap().unwrap();
    (room, reader)
}

#[tokio::test]
async fn what_readers_leave_to_a_writer_is_not_made_a_readers_any_more() {
    let fixture = Fixture::new();
    let (room, reader) = a_reader_under_a_writers_tenure(&fixture).await;
    let tenure = tenure_of(&room);
    let since = room.readers_since(&tenure).unwrap();
    let (mut writer, _) = room.enter(WRITING, kept(10 * SECOND), None).unwrap();
    // It was seen that there are only readers; and before anything is done about it, they have gone.
    drop(reader);
    let writer = writer.try_recv().unwrap().unwrap();
    assert!(!room.become_a_readers(&tenure, since), "a writer is in it");
    assert_eq!(room.readers_since(&tenure), None);
    let (mut late, _) = room.enter(READING, kept(SECOND), None).unwrap();
    assert!(late.try_recv().is_err(), "a reader beside a writer");
    writer.check().unwrap();
}

#[tokio::test]
async fn the_end_of_a_reader_that_has_gone_is_not_looked_for_any_more() {
    let fixture = Fixture::new();
    let (room, stays) = a_reader_under_a_writers_tenure(&fixture).await;
    let tenure = tenure_of(&room);
    let (mut short, _) = room.enter(READING, fixed(6 * SECOND), None).unwrap();
    let short = short.try_recv().unwrap().unwrap();
    assert_eq!(tenure.first_end(), fixture.now() + 6 * SECOND);
    drop(short);
    assert_eq!(
        tenure.first_end(),
        Moment::from_nanos(u64::MAX),
        "the keeper would look for it again and again"
    );
    // Nor that of one who went away when it was given it.
    let (gone, _) = room.enter(READING, fixed(6 * SECOND), None).unwrap();
    drop(gone);
    assert_eq!(tenure.first_end(), Moment::from_nanos(u64::MAX));
    // Nor that of the last one.
    drop(stays);
    assert!(tenure.first_end() > fixture.now());
}
