//! Maps of BPF programs, by name. Some of them contain what a flight recorder has left in the
//! memory of the kernel.

use crate::{error::Fault, format::PAGE, kernel::Kernel};

/// An array map of BPF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BpfArray {
    /// Id of the map: later ones have greater ids.
    pub id: u32,
    /// Distance between elements [B].
    pub stride: u64,
    /// Number of elements.
    pub elements: u64,
    values: u64,
}

impl Kernel {
    /// The arrays of this name, which the kernel cuts to 15 bytes.
    ///
    /// # Errors
    /// A [`Fault`]: this kernel has no list of maps, or it cannot be read.
    pub fn bpf_arrays(&self, name: &str) -> Result<Vec<BpfArray>, Fault> {
        let (own_name, id) = (self.field("bpf_map", "name")?, self.field("bpf_map", "id")?);
        let (elements, values) = (self.field("bpf_map", "max_entries")?, self.field("bpf_array", "value")?);
        let stride = self.field("bpf_array", "elem_size")?;
        let (maps, _) = self.xarray(self.symbol("map_idr")?)?;
        let mut found = Vec::new();
        for (_, map) in maps {
            if self.text(map, own_name).is_ok_and(|own| own == name) {
                let number = |field| self.number(map, field);
                let (id, stride, elements) = (number(id)? as u32, number(stride)?, number(elements)?);
                found.push(BpfArray { id, stride, elements, values: map.wrapping_add(values.offset) });
            }
        }
        Ok(found)
    }

    /// Fill `out` with bytes of the elements, from `offset` on; parts that are not in the dump are
    /// zeros. Returns the number of missing pages.
    pub fn read_array(&self, array: &BpfArray, offset: u64, out: &mut [u8]) -> u64 {
        let (mut address, mut rest, mut missing) = (array.values.wrapping_add(offset), out, 0);
        while !rest.is_empty() {
            let here = rest.len().min((PAGE - address % PAGE) as usize);
            let (now, later) = rest.split_at_mut(here);
            if self.memory.read(address, now).is_err() {
                now.fill(0);
                missing += 1;
            }
            (rest, address) = (later, address.wrapping_add(here as u64));
        }
        missing
    }

    /// Names of functions and variables in the form of /proc/kallsyms.
    #[must_use]
    pub fn kallsyms(&self) -> String {
        let mut text = self.symbols.lines();
        for code in self.code() {
            for (address, name) in code.functions() {
                text.push_str(&format!("{address:016x} t {name}\t[{}]\n", code.module));
            }
        }
        text
    }
}
