fn main() {
    let settings =
        sysdock_bpf::Settings { target: sysdock_bpf::Target::All, ring_bytes: 1 << 24, secret: 42, count_produced: true };
    libbpf_rs::set_print(Some((libbpf_rs::PrintLevel::Warn, |_, s| eprint!("{s}"))));
    let t = std::time::Instant::now();
    let (mut p, o) = match sysdock_bpf::Probes::load(&settings) {
        Ok(x) => x,
        Err(e) => {
            eprintln!("{e:?}");
            return;
        }
    };
    let l = t.elapsed();
    p.attach(o).unwrap();
    eprintln!("load {l:?} attach {:?}", t.elapsed());
    let mut n = [0u64; 16];
    let mut bytes = 0;
    for _ in 0..1000 {
        std::thread::sleep(std::time::Duration::from_millis(2));
        for r in &mut p.rings {
            while r
                .read::<()>(&mut |e| {
                    let mut at = 0;
                    while at < e.len() {
                        let len = u16::from_le_bytes([e[at + 4], e[at + 5]]) as usize;
                        n[e[at + 6] as usize] += 1;
                        if e[at + 6] == 2 && n[2] < 12 {
                            eprintln!("path {:?}", String::from_utf8_lossy(&e[at + 48..at + len]));
                        }
                        if e[at + 6] == 4 {
                            eprintln!("exec {:?}", String::from_utf8_lossy(&e[at + 48..at + len]));
                        }
                        at += len;
                        bytes += len;
                    }
                    Ok(())
                })
                .unwrap()
            {}
        }
    }
    eprintln!("{n:?} {bytes}");
    for r in &p.rings {
        eprintln!("{:?} {:?}", r.produced(), r.dropped());
    }
}
