//! Facts as English sentences, for what the executable prints itself. Everything else reads them in Python (`sysdock.sentences`).

use sysdock_table::{Fact, Facts, Value, facts::ENGLISH};

/// Sentences of several facts, separated by semicolons.
pub(crate) fn all(facts: &Facts) -> String {
    facts.iter().map(sentence).collect::<Vec<_>>().join("; ")
}

/// The sentence of a fact; of one that has no entry, its code.
pub(crate) fn sentence(fact: &Fact) -> String {
    let Some((_, template, units)) = ENGLISH.iter().find(|(code, ..)| *code == fact.code()) else { return fact.code().into() };
    let mut text = String::new();
    let mut rest = *template;
    while let Some((before, (place, after))) =
        rest.split_once('{').and_then(|(before, tail)| Some((before, tail.split_once('}')?)))
    {
        text += before;
        text += &filled(fact, place, units);
        rest = after;
    }
    text + rest
}

/// One place: `name`, or `name:noun` for a number with the noun that agrees with it.
fn filled(fact: &Fact, place: &str, units: &[(&str, &str)]) -> String {
    let (name, noun) = place.split_once(':').map_or((place, None), |(name, noun)| (name, Some(noun)));
    let unit = units.iter().find(|(known, _)| *known == name).map_or("", |(_, unit)| unit);
    let number = match fact.value(name) {
        Some(Value::Text(text)) => text.clone(),
        Some(Value::Fact(inner)) => sentence(inner),
        Some(Value::Facts(inner)) => all(inner),
        Some(Value::Int(number)) => of_unit(*number as f64, unit).unwrap_or_else(|| number.to_string()),
        Some(Value::Float(number)) => of_unit(*number, unit).unwrap_or_else(|| number.to_string()),
        None => "unknown".into(),
    };
    match noun {
        Some(noun) => format!("{number} {}", agreeing(matches!(fact.value(name), Some(Value::Int(1))), noun)),
        None => number,
    }
}

fn of_unit(number: f64, unit: &str) -> Option<String> {
    match unit {
        "ns" => Some(if number < 1e9 { format!("{:.2} ms", number / 1e6) } else { format!("{:.2} s", number / 1e9) }),
        "percent" => Some(format!("{:.0} %", 100.0 * number)),
        _ => None,
    }
}

/// `file` or `index|indices`: singular or plural.
fn agreeing(is_one: bool, noun: &str) -> String {
    let (one, several) = noun.split_once('|').map_or((noun, None), |(one, several)| (one, Some(several)));
    match (is_one, several) {
        (true, _) => one.into(),
        (false, Some(several)) => several.into(),
        (false, None) => format!("{one}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sysdock_table::facts;

    #[test]
    fn a_sentence_has_its_values_with_units_and_nouns() {
        let one = facts::load::operations_failed(1, "no space left");
        assert_eq!(sentence(&one), "1 operation failed: no space left");
        let several: Facts = [facts::load::wrong_content(3), facts::load::too_short(3_100_000)].into_iter().collect();
        assert_eq!(all(&several), "3 requests did not read what had been written; it took only 3.10 ms: use more files or bytes");
        let nested = facts::load::workers_ended(2, 4, facts::load::killed_by_signal(9));
        assert_eq!(sentence(&nested), "2 of 4 workers killed by signal 9");
    }

    #[test]
    fn every_place_of_a_sentence_has_a_value() {
        for (code, template, units) in ENGLISH {
            for place in template.split('{').skip(1).filter_map(|tail| tail.split_once('}')).map(|(place, _)| place) {
                let name = place.split(':').next().unwrap();
                assert!(units.iter().any(|(known, _)| *known == name), "{code}: {{{place}}}");
            }
        }
    }
}
