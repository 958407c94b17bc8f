use std::os::unix::{fs::MetadataExt, process::CommandExt};
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let group = format!("/sys/fs/cgroup/unified/sysdock-{}", std::process::id());
    std::fs::create_dir(&group).unwrap();
    let id = std::fs::metadata(&group).unwrap().ino();
    let settings = sysdock_bpf::Settings {
        target: sysdock_bpf::Target::ControlGroup(id),
        ring_bytes: 1 << 24,
        secret: 42,
        count_produced: false,
    };
    libbpf_rs::set_print(Some((libbpf_rs::PrintLevel::Warn, |_, s| eprint!("{s}"))));
    let t = std::time::Instant::now();
    let (mut p, o) = sysdock_bpf::Probes::load(&settings).unwrap();
    let l = t.elapsed();
    p.attach(o).unwrap();
    eprintln!("load {l:?} attach {:?}", t.elapsed());
    let g = group.clone();
    let mut c = std::process::Command::new(&args[0]);
    c.args(&args[1..]);
    unsafe {
        c.pre_exec(move || std::fs::write(format!("{g}/cgroup.procs"), std::process::id().to_string()));
    }
    let mut child = c.spawn().unwrap();
    let mut n = [0u64; 16];
    let mut bytes = 0;
    let mut done = false;
    loop {
        for r in &mut p.rings {
            while r
                .read::<()>(&mut |e| {
                    let mut at = 0;
                    while at < e.len() {
                        let len = u16::from_le_bytes([e[at + 4], e[at + 5]]) as usize;
                        n[e[at + 6] as usize] += 1;
                        at += len;
                        bytes += len;
                    }
                    Ok(())
                })
                .unwrap()
            {}
        }
        if done {
            break;
        }
        done = child.try_wait().unwrap().is_some();
        std::thread::sleep(std::time::Duration::from_millis(4));
    }
    let dropped: u64 = p.rings.iter().map(|r| r.dropped().iter().sum::<u64>()).sum();
    eprintln!("{n:?} {bytes} dropped {dropped}");
    let t = std::time::Instant::now();
    drop(p);
    eprintln!("detach {:?}", t.elapsed());
    let _ = std::fs::remove_dir(&group);
}
