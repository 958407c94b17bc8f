//! Room that clients share: connections, or bytes. There is a limit for all, and one for each
//! address. If there is no room, the client that holds the most gives way: one that takes little is
//! served, however many others there are.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    future::{Future, poll_fn},
    net::IpAddr,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
    time::Duration,
};

use tokio::sync::Notify;

/// Clients that are counted together: those of one address; with IPv6, of one network, as one host
/// has as many addresses as it wants there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Client(u128);

impl Client {
    pub(crate) fn of(address: IpAddr) -> Client {
        const NETWORK: u128 = !0 << 64;
        match address.to_canonical() {
            IpAddr::V4(address) => Client(address.to_ipv6_mapped().to_bits()),
            IpAddr::V6(address) => Client(address.to_bits() & NETWORK),
        }
    }
}

/// Room with its limits; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Room(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limit: usize,
    /// Limit for one client.
    each: usize,
    held: Mutex<Held>,
    /// Something was given back.
    freed: Notify,
}

#[derive(Debug, Default)]
struct Held {
    taken: usize,
    clients: HashMap<Client, Holder>,
    next: u64,
    gave_way: u64,
}

/// What one client holds, the oldest first.
#[derive(Debug, Default)]
struct Holder {
    taken: usize,
    places: BTreeMap<u64, Holding>,
}

#[derive(Debug)]
struct Holding {
    amount: usize,
    /// Asks it to give way; `None`: it cannot.
    give_way: Option<Notice>,
}

/// Taken room, which is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    room: Room,
    client: Client,
    number: u64,
}

/// Asks the holder of a place to give it back; several places may share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notice(Arc<Notify>);

impl Holder {
    /// Its oldest place that can give way.
    fn oldest(&self) -> Option<u64> {
        self.places.iter().find(|(_, place)| place.give_way.is_some()).map(|(number, _)| *number)
    }
}

impl Held {
    fn held_by(&self, client: Client) -> usize {
        self.clients.get(&client).map_or(0, |holder| holder.taken)
    }

    /// The client that holds the most of those that can give way, of several the one that has waited
    /// longest.
    fn largest(&self) -> Option<(Client, usize)> {
        let can = self.clients.iter().filter_map(|(client, holder)| Some((client, holder, holder.oldest()?)));
        let largest = can.max_by_key(|(_, holder, oldest)| (holder.taken, Reverse(*oldest)));
        largest.map(|(client, holder, _)| (*client, holder.taken))
    }

    /// Takes the oldest place of a client that can give way; whether there was one.
    fn evict(&mut self, client: Client) -> bool {
        let Some(number) = self.clients.get(&client).and_then(Holder::oldest) else { return false };
        if let Some(notice) = self.remove(client, number).and_then(|place| place.give_way) {
            notice.0.notify_one();
        }
        self.gave_way += 1;
        true
    }

    fn remove(&mut self, client: Client, number: u64) -> Option<Holding> {
        let holder = self.clients.get_mut(&client)?;
        let place = holder.places.remove(&number)?;
        holder.taken -= place.amount;
        if holder.places.is_empty() {
            self.clients.remove(&client);
        }
        self.taken -= place.amount;
        Some(place)
    }

    fn add(&mut self, client: Client, amount: usize, give_way: Option<Notice>) -> u64 {
        self.next += 1;
        let holder = self.clients.entry(client).or_default();
        holder.taken += amount;
        holder.places.insert(self.next, Holding { amount, give_way });
        self.taken += amount;
        self.next
    }
}

impl Room {
    pub(crate) fn new(limit: usize, each: usize) -> Room {
        let held = Mutex::default();
        Room(Arc::new(Shared { limit, each, held, freed: Notify::new() }))
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether more than half of it is taken.
    pub(crate) fn is_tight(&self) -> bool {
        self.held().taken > self.0.limit / 2
    }

    /// Number of places that had to give way, or were not given.
    pub(crate) fn gave_way(&self) -> u64 {
        self.held().gave_way
    }

    /// Makes room for more of a client; whether there is.
    fn make(&self, held: &mut Held, client: Client, amount: usize) -> bool {
        if amount > self.0.each.min(self.0.limit) {
            return false;
        }
        while held.held_by(client) + amount > self.0.each {
            if !held.evict(client) {
                return false;
            }
        }
        let own = held.held_by(client) + amount;
        // The last eighth is for those who hold little.
        let (limit, little) = (self.0.limit, self.0.limit / 64);
        let limit = if little > 0 && own > little { limit - limit / 8 } else { limit };
        while held.taken + amount > limit {
            match held.largest() {
                Some((largest, taken)) if taken >= own && held.evict(largest) => {}
                _ => return false,
            }
        }
        true
    }

    fn take(&self, client: Client, amount: usize, give_way: Option<Notice>) -> Option<Place> {
        let mut held = self.held();
        if !self.make(&mut held, client, amount) {
            return None;
        }
        let number = held.add(client, amount, give_way);
        Some(Place { room: self.clone(), client, number })
    }

    /// Take room that has to be given back on notice.
    pub(crate) fn borrow(&self, client: Client, amount: usize, notice: &Notice) -> Option<Place> {
        let place = self.take(client, amount, Some(notice.clone()));
        if place.is_none() {
            self.held().gave_way += 1;
        }
        place
    }

    /// Take room for as long as it takes.
    pub(crate) fn keep(&self, client: Client, amount: usize) -> Option<Place> {
        self.take(client, amount, None)
    }

    /// The same as [`Room::borrow`], as soon as there is room within this time.
    pub(crate) async fn borrow_within(&self, client: Client, amount: usize, notice: &Notice, limit: Duration) -> Option<Place> {
        let take = async {
            loop {
                let freed = self.0.freed.notified();
                if let Some(place) = self.borrow(client, amount, notice) {
                    return place;
                }
                freed.await;
            }
        };
        tokio::time::timeout(limit, take).await.ok()
    }
}

impl Place {
    /// It does not have to be given back on notice any more; `false`: the notice was given.
    pub(crate) fn settle(&self) -> bool {
        self.set(None)
    }

    /// It has to be given back on notice again.
    pub(crate) fn lend(&self, notice: &Notice) {
        self.set(Some(notice.clone()));
    }

    fn set(&self, give_way: Option<Notice>) -> bool {
        let mut held = self.room.held();
        let holder = held.clients.get_mut(&self.client);
        let place = holder.and_then(|holder| holder.places.get_mut(&self.number));
        place.map(|place| place.give_way = give_way).is_some()
    }

    /// Change what is taken, if there is room for more; whether there was.
    pub(crate) fn resize(&self, amount: usize) -> bool {
        self.change(&mut self.room.held(), amount)
    }

    fn change(&self, held: &mut Held, amount: usize) -> bool {
        let Some(place) = held.clients.get(&self.client).and_then(|holder| holder.places.get(&self.number)) else { return false };
        let before = place.amount;
        if amount > before && !self.room.make(held, self.client, amount - before) {
            return false;
        }
        let Some(holder) = held.clients.get_mut(&self.client) else { return false };
        let Some(place) = holder.places.get_mut(&self.number) else { return false };
        place.amount = amount;
        holder.taken = holder.taken - before + amount;
        held.taken = held.taken - before + amount;
        if amount < before {
            self.room.0.freed.notify_waiters();
        }
        true
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.room.held().remove(self.client, self.number);
        self.room.0.freed.notify_waiters();
    }
}

/// Works until it is done, or notice is given: then `None`.
pub(crate) async fn unless<F: Future>(notice: Notice, work: F) -> Option<F::Output> {
    let (mut noticed, mut work) = (pin!(notice.0.notified()), pin!(work));
    poll_fn(move |context| match noticed.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(None),
        Poll::Pending => work.as_mut().poll(context).map(Some),
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn client(number: u8) -> Client {
        Client::of(Ipv4Addr::new(10, 0, 0, number).into())
    }

    fn borrow(room: &Room, number: u8, amount: usize) -> Option<(Place, Notice)> {
        let notice = Notice::default();
        Some((room.borrow(client(number), amount, &notice)?, notice))
    }

    fn was_asked(notice: &Notice) -> bool {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        pin!(notice.0.notified()).poll(&mut context).is_ready()
    }

    #[test]
    fn the_client_that_holds_the_most_gives_way() {
        let room = Room::new(10, 8);
        let many: Vec<_> = (0..8).map(|_| borrow(&room, 1, 1).expect("there is room")).collect();
        let two: Vec<_> = (0..2).map(|_| borrow(&room, 2, 1).expect("there is room")).collect();
        let (_one, notice) = borrow(&room, 3, 1).expect("it finds room");
        assert!(was_asked(&many[0].1) && !was_asked(&many[1].1), "the oldest of the largest");
        assert!(!two.iter().any(|(_, notice)| was_asked(notice)) && !was_asked(&notice));
        assert!(borrow(&room, 4, 9).is_none(), "it would hold the most itself");
        assert_eq!(room.gave_way(), 2);
    }

    #[test]
    fn one_client_has_a_limit_of_its_own() {
        let room = Room::new(100, 4);
        let _kept = room.keep(client(1), 3).expect("there is room");
        assert!(room.keep(client(1), 2).is_none());
        let (_first, notice) = borrow(&room, 1, 1).expect("there is room");
        let _second = borrow(&room, 1, 1).expect("its own oldest gives way");
        assert!(was_asked(&notice));
        assert!(room.keep(client(2), 4).is_some());
    }

    #[test]
    fn what_is_kept_does_not_give_way() {
        let room = Room::new(4, 4);
        let (place, notice) = borrow(&room, 1, 4).expect("there is room");
        assert!(place.settle());
        assert!(borrow(&room, 2, 1).is_none() && !was_asked(&notice));
        drop(place);
        assert!(borrow(&room, 2, 1).is_some());
    }

    #[test]
    fn room_is_given_back_once() {
        let room = Room::new(4, 4);
        let (place, _notice) = borrow(&room, 1, 4).expect("there is room");
        let (other, _notice) = borrow(&room, 2, 4).expect("the first gives way");
        assert!(!place.settle() && other.settle());
        drop(place);
        assert!(room.keep(client(3), 1).is_none());
        drop(other);
        assert!(room.keep(client(3), 4).is_some());
    }

    #[test]
    fn a_place_grows_as_far_as_there_is_room() {
        let room = Room::new(10, 6);
        let place = room.keep(client(1), 1).expect("there is room");
        assert!(place.resize(6) && !place.resize(7));
        assert!(room.is_tight());
        let other = room.keep(client(2), 4).expect("there is room");
        assert!(!other.resize(5));
        assert!(place.resize(2) && other.resize(5));
    }

    #[test]
    fn the_last_eighth_is_for_those_who_hold_little() {
        let room = Room::new(640, 640);
        let _large = room.keep(client(1), 560).expect("there is room");
        assert!(room.keep(client(2), 11).is_none());
        let small: Vec<_> = (2..10).filter_map(|number| room.keep(client(number), 10)).collect();
        assert_eq!(small.len(), 8);
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        let of = |text: &str| Client::of(text.parse().expect("an address"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), client(1));
        assert_ne!(client(1), client(2));
    }
}
