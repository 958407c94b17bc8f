//! Positions of the names of groups on a map.

use super::{Curve, Window};

/// A block group, an allocation group or a chunk [B].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    pub device: i64,
    pub number: i32,
    pub start: u64,
    pub length: u64,
}

/// A name on the map: of one group, or of several adjacent ones if each alone is too small.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Label {
    /// Number of the device that contains the groups.
    pub device: i64,
    /// The first and the last of the groups.
    pub groups: (i32, i32),
    /// The middle of their cells, as fractions of the side of the picture.
    pub place: (f64, f64),
}

/// Smallest share of the picture for a label: 1 / `MOST`.
const MOST: u64 = 256;
/// Number of cells of a group that are examined for its middle.
const SAMPLES: u64 = 64;

/// Labels for the groups in a window, which are ordered by address. Groups of a device are joined
/// until each label has room.
#[must_use]
pub fn labels(groups: &[Group], window: Window, curve: Curve, order: u32) -> Vec<Label> {
    let end = window.from.saturating_add(window.length);
    let shown: Vec<&Group> =
        groups.iter().filter(|group| group.start < end && group.start.saturating_add(group.length) > window.from).collect();
    let mut together = 1;
    while shown.len() as u64 / together > MOST {
        together *= 4;
    }
    let by_device = shown.chunk_by(|one, other| one.device == other.device);
    by_device.flat_map(|of_it| of_it.chunks(together as usize)).filter_map(|some| label(some, window, curve, order)).collect()
}

fn label(groups: &[&Group], window: Window, curve: Curve, order: u32) -> Option<Label> {
    let (first, last) = (groups.first()?, groups.last()?);
    let cells = 1_u64 << (2 * order);
    let cell = |address: u64| {
        let place = address.clamp(window.from, window.from.saturating_add(window.length)) - window.from;
        (u128::from(place) * u128::from(cells) / u128::from(window.length.max(1))) as u64
    };
    let start = cell(first.start).min(cells - 1);
    let end = cell(last.start.saturating_add(last.length)).clamp(start + 1, cells);
    if (end - start) * MOST * 2 < cells {
        return None;
    }
    let step = ((end - start) / SAMPLES).max(1);
    let places: Vec<(u32, u32)> = (start..end).step_by(step as usize).map(|index| curve.place(order, index)).collect();
    let side = f64::from(1_u32 << order) * places.len() as f64;
    let middle = |value: fn(&(u32, u32)) -> u32| places.iter().map(|place| f64::from(value(place)) + 0.5).sum::<f64>() / side;
    Some(Label {
        device: first.device,
        groups: (first.number, last.number),
        place: (middle(|place| place.0), middle(|place| place.1)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(count: u64) -> Vec<Group> {
        (0..count).map(|number| Group { device: 0, number: number as i32, start: number << 20, length: 1 << 20 }).collect()
    }

    #[test]
    fn a_quarter_has_its_label_in_its_middle() {
        let window = Window { from: 0, length: 4 << 20 };
        let found = labels(&groups(4), window, Curve::Hilbert, 8);
        let places: Vec<_> = found.iter().map(|label| ((label.place.0 * 4.0).round(), (label.place.1 * 4.0).round())).collect();
        assert_eq!(places, [(1.0, 1.0), (1.0, 3.0), (3.0, 3.0), (3.0, 1.0)]);
    }

    #[test]
    fn many_groups_share_labels_and_none_is_left_out() {
        let found = labels(&groups(4992), Window { from: 0, length: 4992 << 20 }, Curve::Hilbert, 10);
        assert!(found.len() as u64 <= MOST, "{}", found.len());
        assert!(found.windows(2).all(|two| two[0].groups.1 + 1 == two[1].groups.0));
        assert_eq!((found[0].groups.0, found.last().unwrap().groups.1), (0, 4991));
    }

    #[test]
    fn groups_that_lie_nowhere_do_no_harm() {
        let hostile = [
            Group { device: 0, number: 7, start: u64::MAX, length: u64::MAX },
            Group { device: 0, number: -1, start: 0, length: 0 },
        ];
        assert!(labels(&hostile, Window { from: 0, length: 0 }, Curve::Rows, 0).len() <= 2);
    }
}
