//! The crowd. Most want a coupon and wait for it; some do what crowds do.

use std::sync::Arc;
use std::time::Duration;

use lockgate::clock::Clock;
use lockgate::line::TicketId;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::dice::Dice;
use super::http::{Answer, Http};
use super::shop::{COUPON, LINE, Sale};
use super::tally::{Ending, Story, Tally};
use crate::commands::Failure;

/// What a shopper is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Character {
    /// Enters, waits, takes one, goes.
    Patient,
    /// Enters twice and takes twice.
    Greedy,
    /// Tries without a pass and with an invented one, before standing in line like everybody else.
    Pushy,
    /// Hands the used pass to a friend.
    Generous,
    /// Leaves after a while.
    Impatient,
    /// Closes the page without a word.
    Vanishing,
}

/// What one shopper is going to do.
#[derive(Debug)]
struct Plan {
    user: String,
    character: Character,
    comes_after: Duration,
    stays_for: Duration,
    dawdles_for: Duration,
}

/// Nobody looks in less often than this, so that nobody is passed over who is there.
const LONGEST_LOOK: Duration = Duration::from_millis(1_500);
const SHORTEST_LOOK: Duration = Duration::from_millis(150);

impl Plan {
    fn of(sale: &Sale, shopper: u32) -> Self {
        let mut dice = Dice::of(sale.seed, shopper);
        let character = match dice.percent() {
            0..6 => Character::Greedy,
            6..11 => Character::Pushy,
            11..16 => Character::Generous,
            16..24 => Character::Impatient,
            24..30 => Character::Vanishing,
            _ => Character::Patient,
        };
        let length = sale.length();
        let is_late = dice.percent() < 5;
        // A rush at the opening that ebbs away.
        let comes_after = match is_late {
            true => dice.between(length.mul_f64(0.9), length.mul_f64(1.05)),
            false => length.mul_f64(0.6 * dice.fraction().powi(2)),
        };
        Self {
            user: format!("shopper-{shopper}"),
            character,
            comes_after,
            stays_for: length.mul_f64(0.5 * dice.fraction()),
            dawdles_for: dice.between(Duration::from_millis(20), Duration::from_millis(300)),
        }
    }
}

/// Lets them all come, and hears what each has to tell.
pub(super) async fn shop(sale: &Sale, http: &Arc<Http>, tally: &Arc<Tally>) -> Result<Vec<Story>, Failure> {
    let mut crowd = JoinSet::new();
    for shopper in 0..sale.shoppers {
        let (http, tally, plan) = (Arc::clone(http), Arc::clone(tally), Plan::of(sale, shopper));
        crowd.spawn(async move { Shopper::new(http, tally, plan).tell().await });
    }
    let mut stories = Vec::new();
    while let Some(story) = crowd.join_next().await {
        stories.push(story?);
    }
    Ok(stories)
}

struct Shopper {
    http: Arc<Http>,
    tally: Arc<Tally>,
    clock: Clock,
    plan: Plan,
    story: Story,
}

impl Shopper {
    fn new(http: Arc<Http>, tally: Arc<Tally>, plan: Plan) -> Self {
        let story = Story { user: plan.user.clone(), ..Story::default() };
        Self { http, tally, clock: Clock::system(), plan, story }
    }

    /// A call that failed for good is told like everything else that should not have happened.
    async fn tell(mut self) -> Story {
        tokio::time::sleep(self.plan.comes_after).await;
        if let Err(why) = self.act().await {
            self.story.surprises.push(why.to_string());
        }
        self.story
    }

    async fn act(&mut self) -> Result<(), Failure> {
        if self.plan.character == Character::Pushy {
            self.must_be_refused(None, "pass-required").await?;
            self.must_be_refused(Some("invented.by.me"), "pass-invalid").await?;
        }
        let ticket = self.enter().await?;
        if self.plan.character == Character::Vanishing {
            self.story.ending = Some(Ending::Vanished);
            self.tally.gone.one_more();
            return Ok(());
        }
        let Some(pass) = self.wait(&ticket).await? else { return Ok(()) };
        tokio::time::sleep(self.plan.dawdles_for).await;
        self.take_one(&pass).await?;
        match self.plan.character {
            Character::Greedy => self.take_another(&pass).await?,
            Character::Generous => {
                let friend = format!("friend-of-{}", self.plan.user);
                let answer = self.issue(&friend, Some(&pass)).await?;
                self.expect_refusal(&answer, "pass-invalid");
            }
            _ => {}
        }
        let finished = self.http.post(&format!("{ticket}/finish"), &Value::Null, None).await?;
        self.expect(matches!(finished.status, 200 | 409), "finishing", &finished);
        Ok(())
    }

    /// The path of the ticket.
    async fn enter(&mut self) -> Result<String, Failure> {
        let door = format!("/v1/lines/{LINE}/tickets");
        let user = json!({ "user": self.plan.user });
        let entered = self.http.post(&door, &user, None).await?;
        self.expect(matches!(entered.status, 200 | 201), "entering", &entered);
        let id = TicketId::parse(entered.text("ticket")).ok_or("was given no ticket")?;
        self.story.number = Some(id.number());
        self.tally.arrived.one_more();
        if self.plan.character == Character::Greedy {
            let again = self.http.post(&door, &user, None).await?;
            self.expect(again.text("ticket") == entered.text("ticket"), "entering twice", &again);
        }
        Ok(format!("{door}/{id}"))
    }

    /// Waits for the turn. `None`: it will not come.
    async fn wait(&mut self, ticket: &str) -> Result<Option<String>, Failure> {
        let told = if self.plan.character == Character::Impatient {
            let patience = tokio::time::timeout(self.plan.stays_for, self.look_in(ticket)).await;
            match patience {
                Ok(told) => told?,
                Err(_) => return self.leave(ticket).await,
            }
        } else {
            match self.watch(ticket).await {
                Some(told) => told,
                None => self.look_in(ticket).await?,
            }
        };
        Ok(self.heard(&told))
    }

    /// By the events of the ticket, if there is room for one more who watches. Whoever is cut off looks in.
    async fn watch(&self, ticket: &str) -> Option<Value> {
        let _place = self.http.may_watch()?;
        self.http.watch(ticket).await.ok().flatten()
    }

    async fn look_in(&mut self, ticket: &str) -> Result<Value, Failure> {
        loop {
            let asked = self.clock.monotonic();
            let answer = self.http.get(ticket).await?;
            self.expect(answer.status == 200, "looking in", &answer);
            if answer.text("state") != "waiting" {
                return Ok(answer.body);
            }
            self.story.last_waited = Some(asked);
            let eta = Duration::from_millis(answer.body["eta_ms"].as_u64().unwrap_or(0));
            tokio::time::sleep((eta / 2).clamp(SHORTEST_LOOK, LONGEST_LOOK)).await;
        }
    }

    async fn leave(&mut self, ticket: &str) -> Result<Option<String>, Failure> {
        let told = self.http.delete(ticket).await?;
        if told.text("state") != "left" {
            return Ok(self.heard(&told.body));
        }
        self.end(Ending::Left);
        Ok(None)
    }

    fn heard(&mut self, told: &Value) -> Option<String> {
        match told["state"].as_str().unwrap_or_default() {
            "admitted" => {
                self.admit();
                let pass = told["pass"].as_str().map(str::to_owned);
                if pass.is_none() {
                    self.story.surprises.push("was admitted and given no pass".to_owned());
                }
                return pass;
            }
            "abandoned" => self.end(Ending::PassedOver),
            "no-show" => self.end(Ending::NoShow),
            other => self.story.surprises.push(format!("waited, and was told {other:?}")),
        }
        None
    }

    fn admit(&mut self) {
        self.story.admitted = Some(self.clock.monotonic());
        self.tally.admitted.one_more();
    }

    fn end(&mut self, ending: Ending) {
        self.story.ending = Some(ending);
        self.tally.gone.one_more();
    }

    async fn take_one(&mut self, pass: &str) -> Result<(), Failure> {
        let answer = self.issue(&self.plan.user, Some(pass)).await?;
        match (answer.status, answer.body["seq"].as_u64()) {
            (200 | 201, Some(seq)) => {
                self.story.granted = Some(seq);
                self.tally.granted.one_more();
            }
            _ => self.expect(self.is_a_fair_refusal(&answer), "taking one", &answer),
        }
        Ok(())
    }

    /// Whoever came too late, or dawdled for too long, is told so.
    fn is_a_fair_refusal(&self, answer: &Answer) -> bool {
        let code = answer.text("code");
        self.tally.refuse(code);
        matches!(code, "sold-out" | "pass-expired")
    }

    async fn take_another(&mut self, pass: &str) -> Result<(), Failure> {
        let answer = self.issue(&self.plan.user, Some(pass)).await?;
        let is_the_same = match self.story.granted {
            Some(seq) => answer.status == 200 && answer.body["seq"] == seq,
            None => self.is_a_fair_refusal(&answer),
        };
        self.expect(is_the_same, "taking another", &answer);
        Ok(())
    }

    async fn must_be_refused(&mut self, pass: Option<&str>, code: &str) -> Result<(), Failure> {
        let answer = self.issue(&self.plan.user, pass).await?;
        self.expect_refusal(&answer, code);
        Ok(())
    }

    fn expect_refusal(&mut self, answer: &Answer, code: &str) {
        self.tally.refuse(answer.text("code"));
        self.expect(answer.text("code") == code, code, answer);
    }

    async fn issue(&self, user: &str, pass: Option<&str>) -> Result<Answer, Failure> {
        self.http.post(&format!("/v1/coupons/{COUPON}/issues"), &json!({ "user": user }), pass).await
    }

    /// Without what was said: there may be a pass in it.
    fn expect(&mut self, holds: bool, doing: &str, answer: &Answer) {
        if !holds {
            let (status, code) = (answer.status, answer.text("code"));
            self.story.surprises.push(format!("{doing}: {status} {code}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_is_in_a_crowd_and_the_same_seed_is_the_same_crowd() {
        let sale = Sale { shoppers: 200, stock: 1, batch: 10, every: Duration::from_millis(100), seed: 7 };
        let crowd = |sale: &Sale| {
            (0..sale.shoppers).map(|one| format!("{:?}", Plan::of(sale, one))).collect::<Vec<_>>()
        };
        assert_eq!(crowd(&sale), crowd(&sale));
        assert_ne!(crowd(&sale), crowd(&Sale { seed: 8, ..sale.clone() }));
        let all = crowd(&sale).concat();
        for character in ["Patient", "Greedy", "Pushy", "Generous", "Impatient", "Vanishing"] {
            assert!(all.contains(character), "{character}");
        }
    }
}
