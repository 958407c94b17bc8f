//! `sysdock-native options`: the options of all verbs as JSON. The Python half declares its own
//! from it, so an option, its default and its help stand in `arguments.rs` only.

use std::{
    any::TypeId,
    io::{self, Write},
    path::PathBuf,
};

use clap::{Arg, Command};
use serde_json::{Map, Value};

use crate::{arguments, messages::Message};

/// Print the options; returns the exit status.
pub(crate) fn print() -> Result<u8, Message> {
    let mut verbs = Map::new();
    collect(&arguments::declared(), "", &mut verbs);
    let mut out = io::stdout().lock();
    let written = writeln!(out, "{}", Value::from(verbs)).and_then(|()| out.flush());
    written.map_err(|error| Message::bare(format!("standard output: {error}")))?;
    Ok(0)
}

/// Add the verbs below a command, each with its options in the order in which they are declared.
fn collect(command: &Command, path: &str, verbs: &mut Map<String, Value>) {
    for verb in command.get_subcommands() {
        let name = format!("{path}{}", verb.get_name());
        if verb.has_subcommands() {
            collect(verb, &format!("{name} "), verbs);
        } else {
            let options = verb.get_arguments().filter(|option| !option.is_hide_set());
            verbs.insert(name, options.filter_map(described).collect());
        }
    }
}

/// An option; None for an argument without a name. Members that say nothing are left out.
fn described(option: &Arg) -> Option<Value> {
    let takes_value = option.get_action().takes_values();
    // Without a value, the option means the first of the forms that its value may have.
    let alone = option.get_num_args().is_some_and(|count| takes_value && count.min_values() == 0);
    let form = option.get_value_names().and_then(<[_]>::first).filter(|_| takes_value);
    let values = option.get_possible_values();
    let choices: Vec<&str> = values.iter().filter(|_| takes_value).map(|value| value.get_name()).collect();
    let default = option.get_default_values().first().filter(|_| takes_value && !option.is_hide_default_value_set());
    // A list with commas is one value.
    let is_repeated = matches!(option.get_action(), clap::ArgAction::Append) && option.get_value_delimiter().is_none();
    let mut help = option.get_help()?.to_string();
    if !help.ends_with('.') {
        // clap takes the full stop off the last sentence.
        help.push('.');
    }
    let members = [
        ("name", Value::from(option.get_long()?)),
        ("short", option.get_short().map(String::from).into()),
        ("help", help.into()),
        ("kind", kind(option).into()),
        ("form", form.map(|form| form.to_string()).into()),
        ("choices", if choices.is_empty() { Value::Null } else { choices.into() }),
        ("default", default.map(|default| default.to_string_lossy()).into()),
        ("alone", form.filter(|_| alone).and_then(|form| form.split('|').next()).into()),
        ("required", option.is_required_set().then_some(true).into()),
        ("repeated", is_repeated.then_some(true).into()),
    ];
    Some(members.into_iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.to_string(), value)).collect())
}

/// What the value of an option is. Sizes are text, because they may have a unit.
fn kind(option: &Arg) -> &'static str {
    let parsed = option.get_value_parser().type_id();
    let is_any = |types: &[TypeId]| types.iter().any(|known| parsed == *known);
    let integers = [TypeId::of::<i32>(), TypeId::of::<u32>(), TypeId::of::<u64>(), TypeId::of::<usize>()];
    let has_unit = option.get_value_names().is_some_and(|names| names.iter().any(|name| name.as_str() == "SIZE"));
    if !option.get_action().takes_values() {
        "flag"
    } else if parsed == TypeId::of::<PathBuf>() {
        "path"
    } else if is_any(&integers) && !has_unit {
        "integer"
    } else {
        "text"
    }
}
