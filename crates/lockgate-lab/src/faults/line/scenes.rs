//! What is done to a line.

use std::time::Duration;

use lockgate::testing::proxy::Direction;
use tokio::time::sleep;

use super::super::stop::Stop;
use super::LineScenario;
use super::hall::{Company, Hall};

pub(super) async fn play(scenario: LineScenario, hall: &mut Hall) -> Result<(), Stop> {
    match scenario {
        LineScenario::ManyTick => many_tick(hall).await,
        LineScenario::TickerKilled => ticker_killed(hall).await,
        LineScenario::ServerRestarted => server_restarted(hall).await,
        LineScenario::RepliesLost => replies_lost(hall).await,
        LineScenario::ProcessPaused => process_paused(hall).await,
        LineScenario::EverybodyPaused => everybody_paused(hall).await,
        LineScenario::ClockSet => clock_set(hall).await,
        LineScenario::Storm => storm(hall).await,
        // It has no processes, and therefore no hall.
        LineScenario::EmbeddedClockSet => Ok(()),
    }
}

/// Nothing is done to them: nobody vanishes, so nobody may be passed over, neither by two nor by five who let the line go on.
async fn many_tick(hall: &mut Hall) -> Result<(), Stop> {
    (hall.some_vanish, hall.nobody_is_absent, hall.undisturbed) = (false, true, true);
    let mut companies = hall.companies(2).await?;
    sleep(hall.dice.millis(800, 1_200)).await;
    for more in 2..5 {
        companies.push(hall.company(&format!("company-{more}")).await?);
        hall.count_fault();
    }
    sleep(hall.dice.millis(800, 1_200)).await;
    hall.all_get_through(&mut companies).await
}

async fn ticker_killed(hall: &mut Hall) -> Result<(), Stop> {
    let mut companies = hall.companies(3).await?;
    for fault in 0..6 {
        sleep(hall.dice.millis(20, 300)).await;
        replace(hall, &mut companies, fault).await?;
    }
    hall.goes_on("the last kill").await?;
    hall.all_get_through(&mut companies).await
}

/// Kills a process, and starts another one in its place.
async fn replace(hall: &mut Hall, companies: &mut [Company], fault: u64) -> Result<(), Stop> {
    let victim = any_of(hall, companies);
    companies[victim].hand.kill()?;
    hall.count_fault();
    companies[victim] = hall.company(&format!("company-{victim}-after-{fault}")).await?;
    Ok(())
}

fn any_of(hall: &mut Hall, companies: &[Company]) -> usize {
    usize::try_from(hall.dice.below(companies.len() as u64)).unwrap_or(0)
}

async fn server_restarted(hall: &mut Hall) -> Result<(), Stop> {
    let mut companies = hall.companies(3).await?;
    for _ in 0..2 {
        sleep(hall.dice.millis(100, 400)).await;
        restart(hall).await?;
        hall.goes_on("a restart").await?;
    }
    hall.all_get_through(&mut companies).await
}

async fn restart(hall: &mut Hall) -> Result<(), Stop> {
    hall.redis.kill();
    hall.count_fault();
    sleep(hall.dice.millis(0, 300)).await;
    hall.redis.restart()?;
    Ok(())
}

async fn replies_lost(hall: &mut Hall) -> Result<(), Stop> {
    let mut companies = hall.companies(3).await?;
    for _ in 0..25 {
        sleep(hall.dice.millis(10, 100)).await;
        disturb(hall, &companies).await;
    }
    hall.goes_on("the last lost reply").await?;
    hall.all_get_through(&mut companies).await
}

async fn disturb(hall: &mut Hall, companies: &[Company]) {
    let victim = any_of(hall, companies);
    let network = &companies[victim].network;
    match hall.dice.below(4) {
        0 => network.reset(),
        1 => {
            network.black_hole(hall.dice.one_of(&[Direction::ToClient, Direction::ToServer]));
            sleep(hall.dice.millis(10, 200)).await;
            // A connection that has lost something never goes on.
            network.reset();
            network.heal();
        }
        _ => network.lose_next_reply(),
    }
    hall.count_fault();
}

/// Whoever is stopped cannot be seen, and may be passed over; the others go on.
async fn process_paused(hall: &mut Hall) -> Result<(), Stop> {
    let mut companies = hall.companies(3).await?;
    let victim = any_of(hall, &companies);
    companies[victim].hand.pause()?;
    hall.count_fault();
    sleep(hall.grace / 2).await;
    hall.goes_on("a process was stopped").await?;
    sleep(hall.grace).await;
    companies[victim].hand.resume()?;
    hall.goes_on("it was continued").await?;
    hall.all_get_through(&mut companies).await
}

/// Nobody vanishes, and nobody can be seen for three times the grace period: nobody is passed over for that.
async fn everybody_paused(hall: &mut Hall) -> Result<(), Stop> {
    (hall.some_vanish, hall.nobody_is_absent) = (false, true);
    let mut companies = hall.companies(3).await?;
    sleep(hall.dice.millis(200, 500)).await;
    hall.stop_looking();
    for company in &companies {
        company.hand.pause()?;
        hall.count_fault();
    }
    sleep(hall.grace * 3).await;
    for company in &companies {
        company.hand.resume()?;
    }
    hall.look_again();
    hall.goes_on("all were stopped").await?;
    hall.all_get_through(&mut companies).await
}

async fn clock_set(hall: &mut Hall) -> Result<(), Stop> {
    (hall.some_vanish, hall.nobody_is_absent, hall.undisturbed) = (false, true, true);
    let mut companies = hall.companies(3).await?;
    for forward in [true, false, false, true] {
        // Half of the grace period may be gone at once, and it takes a moment until everybody was seen again.
        sleep(hall.grace.mul_f64(0.7)).await;
        hall.set_clock(forward)?;
        hall.goes_on("the clock was set").await?;
    }
    hall.all_get_through(&mut companies).await
}

/// Everything at once.
async fn storm(hall: &mut Hall) -> Result<(), Stop> {
    let mut companies = hall.companies(3).await?;
    for fault in 0..14 {
        sleep(hall.dice.millis(10, 120)).await;
        match hall.dice.below(6) {
            0 => replace(hall, &mut companies, fault).await?,
            1 => pause_for_a_while(hall, &companies).await?,
            2 => restart(hall).await?,
            3 => {
                let forward = hall.dice.coin();
                hall.set_clock(forward)?;
            }
            _ => disturb(hall, &companies).await,
        }
    }
    hall.goes_on("a storm").await?;
    hall.all_get_through(&mut companies).await
}

async fn pause_for_a_while(hall: &mut Hall, companies: &[Company]) -> Result<(), Stop> {
    let victim = any_of(hall, companies);
    companies[victim].hand.pause()?;
    hall.count_fault();
    sleep(hall.grace.mul_f64(1.5 * hall.dice.fraction()).max(Duration::from_millis(1))).await;
    companies[victim].hand.resume()?;
    Ok(())
}
