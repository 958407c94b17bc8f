// Writes from functions of Rust in every form. Each says by its offset where it stands: the line in main and its own.
use std::{fs::File, os::unix::fs::FileExt, thread};

trait Thing {
    fn sell(&self, file: &File, root: u64) -> u64;
}

struct Book<T>(T);

/// The offset that says both.
fn at(root: u64, line: u32) -> u64 {
    root * 100_000 + u64::from(line)
}

impl<T: Into<u64> + Copy> Thing for Book<T> {
    #[inline(never)]
    fn sell(&self, file: &File, root: u64) -> u64 {
        file.write_at(b"x", at(root, line!())).unwrap() as u64 + self.0.into()
    }
}

impl<T> Drop for Book<T> {
    #[inline(never)]
    fn drop(&mut self) {}
}

mod shop {
    use super::*;

    #[inline(never)]
    pub fn plain(file: &File, root: u64) -> u64 {
        file.write_at(b"x", at(root, line!())).unwrap() as u64 + within(file, root)
    }

    #[inline(always)]
    fn within(file: &File, root: u64) -> u64 {
        file.write_at(b"x", at(root, line!())).unwrap() as u64 + 1
    }

    #[inline(never)]
    pub fn recursion(depth: u64, file: &File, root: u64) -> u64 {
        if depth == 0 { file.write_at(b"x", at(root, line!())).unwrap() as u64 + 1 } else { recursion(depth - 1, file, root) + 1 }
    }
}

#[inline(never)]
fn called(function: &dyn Fn(u64) -> u64, root: u64) -> u64 {
    function(root) + 1
}

fn main() {
    let file = File::create(std::env::args().nth(1).unwrap()).unwrap();
    let things: Vec<Box<dyn Thing>> = vec![Box::new(Book(1u8)), Box::new(Book(2u32))];
    let mut sum = 0;
    for turn in 0..100 {
        sum += file.write_at(b"x", at(u64::from(line!()), line!())).unwrap() as u64;
        sum += shop::plain(&file, u64::from(line!()));
        sum += shop::recursion(turn % 7, &file, u64::from(line!()));
        for thing in &things {
            sum += thing.sell(&file, u64::from(line!()));
        }
        sum += called(&|root| file.write_at(b"x", at(root, line!())).unwrap() as u64 + 1, u64::from(line!()));
        sum += (0..3).map(|_| file.write_at(b"x", at(0, line!())).unwrap() as u64).sum::<u64>();
    }
    let writer = thread::spawn(move || (0..100).map(|_| shop::plain(&file, 0)).sum::<u64>());
    sum += writer.join().unwrap();
    assert!(sum > 1000);
}
