//! The draw: seeded choices, and values drawn from pictures, so that the corpus is the same every time.

/// SplitMix64: small, and the same on every machine.
pub struct Draw(u64);

impl Draw {
    pub fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// A number of `from..=to`.
    pub fn between(&mut self, from: usize, to: usize) -> usize {
        from + self.below(to - from + 1)
    }

    pub fn chance(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }

    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }

    /// Draws a picture: `{class:length}` or `{class:least-most}` stands for random characters, everything
    /// else for itself. Classes: `a` letters and digits, `c` letters, `w` base64url, `s` base64, `x` and
    /// `X` hexadecimal, `d` digits, `L` lower case and digits, `U` upper case and digits, `l` lower case,
    /// `u` upper case, `b` base32.
    pub fn picture(&mut self, picture: &str) -> String {
        let mut out = String::new();
        let mut rest = picture;
        while let Some(open) = rest.find('{') {
            out.push_str(&rest[..open]);
            let close = open + rest[open..].find('}').expect("a picture closes its braces");
            let (class, length) = rest[open + 1..close].split_once(':').expect("a class and a length");
            let length = match length.split_once('-') {
                None => length.parse().expect("a length"),
                Some((least, most)) => {
                    self.between(least.parse().expect("a length"), most.parse().expect("a length"))
                }
            };
            let alphabet = alphabet(class);
            out.extend((0..length).map(|_| char::from(alphabet[self.below(alphabet.len())])));
            rest = &rest[close + 1..];
        }
        out + rest
    }
}

fn alphabet(class: &str) -> &'static [u8] {
    match class {
        "a" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
        "c" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
        "w" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
        "s" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
        "x" => b"0123456789abcdef",
        "X" => b"0123456789ABCDEF",
        "d" => b"0123456789",
        "L" => b"abcdefghijklmnopqrstuvwxyz0123456789",
        "U" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
        "l" => b"abcdefghijklmnopqrstuvwxyz",
        "u" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        "b" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
        class => panic!("no class {class}"),
    }
}

/// Base64 as RFC 4648 has it; `url` is the alphabet of §5, without padding.
pub fn base64(bytes: &[u8], url: bool) -> String {
    let alphabet = alphabet(if url { "w" } else { "s" });
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for index in 0..=chunk.len() {
            out.push(char::from(alphabet[(word >> (18 - 6 * index)) as usize & 63]));
        }
        if !url {
            out.extend(std::iter::repeat_n('=', 3 - chunk.len()));
        }
    }
    out
}
