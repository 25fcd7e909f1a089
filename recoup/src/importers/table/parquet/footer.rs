//! The footer of a Parquet file, looked over before the decoder builds a tree of it by recursion: how
//! long it is, and how deep its columns nest.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};

/// Bytes of a footer.
const FOOTER_BYTES_MAX: u64 = 64 << 20;
/// Groups within groups of columns.
const DEPTH_MAX: usize = 64;
/// Values within values of what describes a column.
const VALUE_DEPTH_MAX: usize = 16;
/// The footer's length and the file's last four bytes.
const TAIL_BYTES: u64 = 8;

/// Why a file is not read.
pub(super) enum Problem {
    /// Reading failed.
    Io(io::Error),
    /// It is no Parquet file that recoup reads, in words.
    Damaged(String),
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Looks a footer over.
///
/// # Errors
/// When the file cannot be read, its end is missing, or its columns nest too deeply.
pub(super) fn check(file: &mut File) -> Result<(), Problem> {
    let damaged = |reason: &str| Problem::Damaged(reason.to_owned());
    let length = file.seek(SeekFrom::End(0))?;
    let at = length.checked_sub(TAIL_BYTES).ok_or_else(|| damaged("it is too short"))?;
    file.seek(SeekFrom::Start(at))?;
    let mut tail = [0; TAIL_BYTES as usize];
    file.read_exact(&mut tail)?;
    let [a, b, c, d, magic @ ..] = tail;
    match &magic {
        b"PAR1" => {}
        b"PARE" => return Err(damaged("it is encrypted")),
        _ => return Err(damaged("its end is missing; it was perhaps not copied or written whole")),
    }
    let size = u64::from(u32::from_le_bytes([a, b, c, d]));
    let start = at.checked_sub(size).ok_or_else(|| damaged("its footer is longer than itself"))?;
    if size > FOOTER_BYTES_MAX {
        return Err(damaged("its footer is too long"));
    }
    file.seek(SeekFrom::Start(start))?;
    let mut footer = Vec::new();
    file.take(size).read_to_end(&mut footer)?;
    match depth(&footer) {
        Some(depth) if depth <= DEPTH_MAX => Ok(()),
        Some(_) => Err(damaged("its columns nest too deeply")),
        None => Err(damaged("its footer is damaged")),
    }
}

/// How deep columns nest, or `None` where the list of them (the footer's second field) cannot be read.
fn depth(footer: &[u8]) -> Option<usize> {
    const LIST: u8 = 9;
    let mut reader = Reader(footer);
    let mut field = 0;
    loop {
        let kind = reader.field(&mut field)?;
        if kind == LIST && field == 2 {
            break;
        }
        reader.skip(kind, 0)?;
    }
    // Children that groups on the way to the column at hand still have.
    let mut open: Vec<u64> = Vec::new();
    let mut deepest = 0;
    for _ in 0..reader.list()?.1 {
        while open.last() == Some(&0) {
            open.pop();
        }
        if let Some(left) = open.last_mut() {
            *left -= 1;
        }
        let children = reader.children()?;
        if children > 0 {
            open.push(children);
            deepest = deepest.max(open.len());
        }
    }
    Some(deepest)
}

/// Reads Thrift's compact form as far as skipping needs.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn bytes(&mut self, count: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(count).ok()?..)?;
        Some(())
    }

    fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        let value = self.number()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// The type of the next field, 0 at the struct's end; `id` becomes its number.
    fn field(&mut self, id: &mut i64) -> Option<u8> {
        let byte = self.byte()?;
        if byte & 0x0f != 0 {
            *id = if byte >> 4 == 0 { self.signed()? } else { id.wrapping_add(i64::from(byte >> 4)) };
        }
        Some(byte & 0x0f)
    }

    /// The type and number of a list's elements.
    fn list(&mut self) -> Option<(u8, u64)> {
        let byte = self.byte()?;
        let count = if byte >> 4 == 15 { self.number()? } else { u64::from(byte >> 4) };
        // Each element takes a byte at least.
        (count <= self.0.len() as u64).then_some((byte & 0x0f, count))
    }

    /// How many children a column has: the fifth field of what describes it.
    fn children(&mut self) -> Option<u64> {
        let (mut field, mut children) = (0, 0);
        loop {
            match self.field(&mut field)? {
                0 => return Some(children),
                5 if field == 5 => children = u64::try_from(self.signed()?).ok()?,
                kind => self.skip(kind, 0)?,
            }
        }
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        if depth > VALUE_DEPTH_MAX {
            return None;
        }
        match kind {
            1 | 2 => Some(()),
            3 => self.bytes(1),
            4..=6 => self.number().map(drop),
            7 => self.bytes(8),
            8 => {
                let count = self.number()?;
                self.bytes(count)
            }
            9 | 10 => {
                let (kind, count) = self.list()?;
                // A truth value is a byte in a list, and no byte as a field.
                (0..count)
                    .try_for_each(|_| if kind <= 2 { self.bytes(1) } else { self.skip(kind, depth + 1) })
            }
            12 => {
                let mut field = 0;
                loop {
                    match self.field(&mut field)? {
                        0 => return Some(()),
                        kind => self.skip(kind, depth + 1)?,
                    }
                }
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::depth;

    /// A footer of a chain of groups, one in the other, with a column at the end.
    fn chain(groups: u8) -> Vec<u8> {
        let mut footer = vec![0x15, 2, 0x19, 0xfc, groups + 1];
        for _ in 0..groups {
            // Fourth field a name, fifth a number of children, the end.
            footer.extend([0x48, 1, b'g', 0x15, 2, 0]);
        }
        footer.extend([0x48, 1, b'c', 0, 0]);
        footer
    }

    #[test]
    fn nesting_is_counted_without_recursion() {
        assert_eq!(depth(&chain(1)), Some(1));
        assert_eq!(depth(&chain(100)), Some(100));
        assert_eq!(depth(&chain(3)[..8]), None);
        assert_eq!(depth(&[0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x0f]), None, "more elements than bytes");
        assert_eq!(depth(&[0x1c; 100]), None);
    }
}
