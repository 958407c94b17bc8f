//! Functions of an ELF file: named by its symbols (its own, those of a separate debug file,
//! exported ones, and those called through its procedure linkage table), and delimited by them or
//! by `.eh_frame`, which stripped files have, too.

use std::{
    cell::OnceCell,
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use gimli::{BaseAddresses, CieOrFde, EhFrame, LittleEndian, UnwindSection};
use memmap2::Mmap;
use object::{
    Object, ObjectSection, ObjectSegment, ObjectSymbol, ObjectSymbolTable, RelocationTarget, SegmentFlags, SymbolKind, elf::PF_X,
};

use crate::{
    elf::{self, PAGE, Segment, Segments},
    lines::Lines,
};

/// A file and its functions.
#[derive(Debug)]
pub struct ElfImage {
    map: Mmap,
    segments: Segments,
    functions: Functions,
    pub build_id: Option<String>,
    symbols: &'static str,
    /// The separate file with debug information, if it provided the names.
    debug: Option<Mmap>,
    lines: OnceCell<Lines>,
}

impl ElfImage {
    /// Open a file without its functions, to compare code with. `None`: it cannot be read as ELF.
    #[must_use]
    pub fn without_functions(path: &Path) -> Option<ElfImage> {
        let map = elf::map(path).ok()??;
        let segments = segments_of(&object::File::parse(&*map).ok()?);
        Some(ElfImage {
            map,
            segments,
            functions: Functions::new(),
            build_id: None,
            symbols: "none",
            debug: None,
            lines: OnceCell::new(),
        })
    }

    /// `None`: it cannot be read as ELF. Debug files are searched for below `root` and on this
    /// machine.
    #[must_use]
    pub fn open(path: &Path, root: Option<&Path>) -> Option<ElfImage> {
        let mut image = ElfImage::without_functions(path)?;
        let file = object::File::parse(&*image.map).ok()?;
        let (build_id, functions) = (elf::build_id_of(&file), &mut image.functions);
        add_frames(&file, functions);
        add_symbols(file.dynamic_symbols(), functions);
        add_linkage(&file, functions);
        image.symbols = "dynsym";
        image.debug = build_id.as_ref().and_then(|id| debug_file(id, root));
        if file.symbols().next().is_some() {
            add_symbols(file.symbols(), functions);
            image.symbols = "symtab";
        } else if let Some(debug) = &image.debug
            && let Ok(debug) = object::File::parse(&**debug)
        {
            add_symbols(debug.symbols(), functions);
            image.symbols = "debug file";
        }
        image.build_id = build_id;
        Some(image)
    }

    /// The source line of an address of the file.
    #[must_use]
    pub fn line(&self, address: u64) -> Option<(&str, u32)> {
        let read = || {
            let own = object::File::parse(&*self.map).ok().filter(|file| file.section_by_name(".debug_line").is_some());
            let separate = || object::File::parse(&**self.debug.as_ref()?).ok();
            own.or_else(separate).map(|file| Lines::read(&file)).unwrap_or_default()
        };
        self.lines.get_or_init(read).find(address)
    }

    #[must_use]
    pub fn symbols(&self) -> &'static str {
        self.symbols
    }

    /// Whether the file contains these bytes at an offset.
    #[must_use]
    pub fn has(&self, offset: u64, bytes: &[u8]) -> bool {
        usize::try_from(offset).ok().and_then(|offset| self.map.get(offset..offset.saturating_add(bytes.len()))) == Some(bytes)
    }

    /// The file's address for an offset.
    #[must_use]
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        self.segments.address_of(offset)
    }

    /// Whether the file contains these bytes at an address.
    #[must_use]
    pub fn has_at(&self, address: u64, bytes: &[u8]) -> bool {
        let covers = |it: &&Segment| (it.address..it.address.saturating_add(it.bytes)).contains(&address);
        let segment = self.segments.0.iter().find(covers);
        segment.is_some_and(|it| self.has((address - it.address).saturating_add(it.offset), bytes))
    }

    /// Addresses of these bytes in the file, at this offset in their page.
    pub fn places_of(&self, in_page: u64, bytes: &[u8]) -> impl Iterator<Item = u64> {
        self.segments.0.iter().flat_map(move |it| {
            let first = (it.address & !(PAGE - 1)).saturating_add(in_page);
            (first..it.address.saturating_add(it.bytes)).step_by(PAGE as usize).filter(move |address| {
                *address >= it.address && self.has((address - it.address).saturating_add(it.offset), bytes)
            })
        })
    }

    /// Start of the function at an address, and its name. Without a name, its bounds are those of
    /// `.eh_frame`, or the gap between named functions.
    #[must_use]
    pub fn function(&self, address: u64) -> (u64, Option<&str>) {
        match self.functions.range(..=address).next_back() {
            Some((&start, (name, end))) if address < *end || *end <= start => (start, name.as_deref()),
            Some((_, (_, end))) => (*end, None),
            None => (0, None),
        }
    }
}

fn segments_of(file: &object::File<'_>) -> Segments {
    let segment = |found: object::Segment<'_, '_>| {
        let (offset, bytes) = found.file_range();
        let is_code = matches!(found.flags(), SegmentFlags::Elf { p_flags } if p_flags & PF_X != 0);
        Segment { offset, bytes, address: found.address(), bytes_in_memory: found.size(), is_code }
    };
    Segments(file.segments().map(segment).collect())
}

fn debug_file(build_id: &str, root: Option<&Path>) -> Option<Mmap> {
    let (first, rest) = build_id.split_at_checked(2)?;
    let name = format!("usr/lib/debug/.build-id/{first}/{rest}.debug");
    let places = [root.map(|root| root.join(&name)), Some(PathBuf::from("/").join(&name))];
    places.into_iter().flatten().find_map(|path| elf::map(&path).ok().flatten())
}

/// By start: name, if there is one, and end.
type Functions = BTreeMap<u64, (Option<String>, u64)>;

fn add_symbols<'d, S: ObjectSymbol<'d>>(symbols: impl Iterator<Item = S>, functions: &mut Functions) {
    for symbol in symbols {
        // Functions in assembly often have no type; labels within functions are local.
        let is_function = symbol.kind() == SymbolKind::Text
            || matches!(symbol.kind(), SymbolKind::Unknown | SymbolKind::Label) && symbol.is_global();
        if !is_function || symbol.section_index().is_none() || symbol.address() == 0 {
            continue;
        }
        let Ok(name) = symbol.name() else { continue };
        if name.is_empty() {
            continue;
        }
        let whole = name.split(".cold").next().unwrap_or(name);
        let entry = functions.entry(symbol.address()).or_insert((None, symbol.address().saturating_add(symbol.size())));
        // The name with the fewest leading underscores is the one that programs use.
        let underscores = |name: &str| name.len() - name.trim_start_matches('_').len();
        if entry.0.as_ref().is_none_or(|known| underscores(whole) < underscores(known)) {
            entry.0 = Some(whole.to_owned());
        }
        entry.1 = entry.1.max(symbol.address().saturating_add(symbol.size()));
    }
}

/// Add bounds of functions, from the table for unwinding.
fn add_frames(file: &object::File<'_>, functions: &mut Functions) {
    let Some(section) = file.section_by_name(".eh_frame") else { return };
    let Ok(data) = section.data() else { return };
    let mut bases = BaseAddresses::default().set_eh_frame(section.address());
    if let Some(text) = file.section_by_name(".text") {
        bases = bases.set_text(text.address());
    }
    let frames = EhFrame::new(data, LittleEndian);
    let mut entries = frames.entries(&bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let Ok(fde) = partial.parse(EhFrame::cie_from_offset) else { continue };
        // The whole linkage table has one entry; its parts have names of their own.
        functions.insert(fde.initial_address(), (None, fde.initial_address().saturating_add(fde.len())));
    }
}

/// Add entries of the procedure linkage table, named by the function to which they jump.
fn add_linkage(file: &object::File<'_>, functions: &mut Functions) {
    let (Some(symbols), Some(relocations)) = (file.dynamic_symbol_table(), file.dynamic_relocations()) else { return };
    // R_X86_64_JUMP_SLOT and GLOB_DAT: the address of the entry in the table of offsets, and the
    // symbol whose address is stored there.
    let names: std::collections::HashMap<u64, String> = relocations
        .filter_map(|(address, relocation)| {
            let RelocationTarget::Symbol(index) = relocation.target() else { return None };
            Some((address, symbols.symbol_by_index(index).ok()?.name().ok()?.to_owned()))
        })
        .collect();
    for section in file.sections().filter(|section| section.name().is_ok_and(|name| name.starts_with(".plt"))) {
        let Ok(data) = section.data() else { continue };
        let size = if section.name() == Ok(".plt.got") { 8 } else { 16 };
        functions.remove(&section.address());
        for (index, entry) in data.chunks(size).enumerate() {
            let address = section.address() + (index * size) as u64;
            let name = slot_of(entry, address).and_then(|slot| names.get(&slot)).map(|name| format!("{name}@plt"));
            functions.insert(address, (name, address + size as u64));
        }
    }
}

/// The address through which an entry jumps: `jmp *slot(%rip)`, after `endbr64` or a `bnd` prefix
/// if there is one.
fn slot_of(entry: &[u8], address: u64) -> Option<u64> {
    let at = entry.windows(2).position(|pair| pair == [0xff, 0x25])?;
    let distance = i32::from_le_bytes(entry.get(at + 2..at + 6)?.try_into().ok()?);
    Some((address + at as u64 + 6).wrapping_add_signed(i64::from(distance)))
}
