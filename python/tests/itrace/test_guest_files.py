"""What guests are made of: services, kernels, their first file system."""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from sysdock.errors import UserError
from sysdock.itrace import cpio, packages
from sysdock.itrace.disk import make_disk
from sysdock.itrace.kernel import DISK_MODULES, MODULES, Kernel, copy_modules, find_kernel
from sysdock.itrace.service import make_tree, read_service, shipped

MINIMAL = 'command = ["/bin/server"]\nport = 80\n'


def service_of(folder: Path, text: str) -> Path:
    path = folder / "service.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", shipped())
def test_shipped_services_are_understood(name: str) -> None:
    service = read_service(name)
    for words in (service.command, *service.requests.values()):
        assert words == [] or words[0].startswith("/")
    assert service.request in service.requests or f"/srv/www{service.request}" in service.sizes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("port = 80\n", "`command` is missing"),
        (MINIMAL, "one of packages, tree, export is needed"),
        (MINIMAL + 'tree = "a"\nexport = "b"\n', "one of packages, tree, export is needed"),
        (MINIMAL + 'tree = "a"\nports = 1\n', "unknown key `ports`"),
        (MINIMAL + 'tree = "a"\nrequest = 1\n', "`request` has a value of the wrong type"),
        (MINIMAL + "packages = [1]\n", "`packages` has a value of the wrong type"),
        ("port = \n", "cannot be read"),
        (MINIMAL + 'tree = "a"\n[requests]\none = "word"\n', "`requests` has a value of the wrong type"),
        (MINIMAL + 'tree = "a"\n[requests]\none = []\n', "a command in `requests` is empty"),
        (MINIMAL + 'tree = "a"\n[requests]\none = [1]\n', "has an argument that is empty, not text"),
        (MINIMAL + 'tree = "a"\n[requests]\none = ["a", ""]\n', "has an argument that is empty, not text"),
        (MINIMAL + 'tree = "a"\n[requests]\none = ["a\\nb"]\n', "or longer than a line"),
        (
            MINIMAL + 'tree = "a"\n[requests]\n"a/b" = ["a"]\n',
            "a name in `requests` has characters other than",
        ),
        (MINIMAL + 'tree = "a"\n[lines]\none = "text"\n', "`lines` has `one`, but `requests` has not"),
        ('request = "/"\ntree = "a"\n[requests]\none = ["a"]\n', "`request` names none of `requests`"),
        (MINIMAL + 'tree = "a"\ndisk = "data"\n', "`disk` is not a folder of the guest"),
    ],
)
def test_what_is_wrong_in_a_service_is_said(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UserError) as raised:
        read_service(str(service_of(tmp_path, text)))
    assert said in str(raised.value)


def test_a_service_that_is_not_there_is_said() -> None:
    with pytest.raises(UserError) as raised:
        read_service("apach")
    assert "no such service: apach" in str(raised.value)
    assert "apache" in str(raised.value)


def test_a_tree_gets_its_files(tmp_path: Path) -> None:
    (tmp_path / "own" / "lib").mkdir(parents=True)
    (tmp_path / "own" / "lib" / "part.so").write_text("code")
    more = '[files]\n"/etc/a" = "text"\n[programs]\n"/bin/run" = "#!/bin/sh"\n[sizes]\n"/srv/page" = 6040\n'
    tree = tmp_path / "tree"
    make_tree(
        read_service(str(service_of(tmp_path, MINIMAL + 'tree = "own"\n' + more))), tree, tmp_path / "cache"
    )
    assert (tree / "etc" / "a").read_text() == "text"
    assert (tree / "usr" / "bin" / "run").stat().st_mode & 0o111
    assert (tree / "srv" / "page").stat().st_size == 6040
    # As on an installed Debian: both names lead to one folder.
    assert (tree / "usr" / "lib" / "part.so").read_text() == "code"
    assert (tree / "lib").readlink() == Path("usr/lib")


def test_a_service_may_have_nothing_but_commands(tmp_path: Path) -> None:
    service = read_service(str(service_of(tmp_path, 'tree = "own"\n[requests]\ntrue = ["/bin/true"]\n')))
    assert service.request == "true"
    assert service.port == 0


def test_programs_in_c_are_compiled(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    text = MINIMAL + 'tree = "own"\n[sources]\n"/bin/seven" = "int main(void) { return 7; }"\n'
    make_tree(read_service(str(service_of(tmp_path, text))), tmp_path / "tree", tmp_path)
    assert subprocess.run([tmp_path / "tree" / "usr" / "bin" / "seven"], check=False).returncode == 7


def test_what_is_wrong_with_a_program_in_c_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own").mkdir()
    text = MINIMAL + 'tree = "own"\n[sources]\n"/bin/seven" = "int main(void) { return x; }"\n'
    service = read_service(str(service_of(tmp_path, text)))
    with pytest.raises(UserError) as raised:
        make_tree(service, tmp_path / "tree", tmp_path)
    assert "/bin/seven: cannot be compiled: <stdin>:1:" in str(raised.value)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError) as raised:
        make_tree(service, tmp_path / "tree", tmp_path)
    assert "cc: not found" in str(raised.value)
    assert "apt-get install gcc" in str(raised.value)


def test_a_disk_has_the_files_of_its_folder(tmp_path: Path) -> None:
    debugfs = shutil.which("debugfs", path="/usr/sbin:/sbin:/usr/bin")
    if not debugfs:
        pytest.skip("debugfs is not installed (apt-get install e2fsprogs)")
    files = tmp_path / "files"
    files.mkdir()
    (files / "block").write_text("content")
    make_disk(tmp_path / "image", files, 16)
    assert (tmp_path / "image").stat().st_size == 16 << 20
    command = [debugfs, "-R", "cat /block", tmp_path / "image"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "content"
    (files / "large").write_bytes(b"x" * (20 << 20))
    with pytest.raises(UserError) as raised:
        make_disk(tmp_path / "other", files, 16)
    assert "mke2fs: " in str(raised.value)
    assert "`disk_mb`" in str(raised.value)


def test_packages_may_be_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "apt-cache").write_text("#!/bin/sh\nprintf 'server\\n  Depends: large\\nlarge\\nlibc6\\n'\n")
    (tmp_path / "apt-cache").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert packages.with_dependencies(["server"], ["large"]) == ["libc6", "server"]


def test_no_file_is_written_outside_of_the_tree(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "etc").symlink_to(tmp_path)
    for name in ("/etc/a", "/../../a"):
        text = MINIMAL + f'tree = "own"\n[files]\n"{name}" = "text"\n'
        with pytest.raises(UserError) as raised:
            make_tree(read_service(str(service_of(tmp_path, text))), tmp_path / "tree", tmp_path)
        assert "is outside the tree" in str(raised.value)
        shutil.rmtree(tmp_path / "tree")
    assert not (tmp_path / "a").exists()


def test_an_export_of_a_container_is_unpacked(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "export.tar", "w") as archive:
        for name, kind, content in (
            ("bin/server", tarfile.REGTYPE, b"code"),
            ("dev/null", tarfile.CHRTYPE, b""),
        ):
            member = tarfile.TarInfo(name)
            member.type, member.size, member.mode = kind, len(content), 0o755
            archive.addfile(member, io.BytesIO(content))
        link = tarfile.TarInfo("etc/mtab")
        link.type, link.linkname = tarfile.SYMTYPE, "/proc/mounts"
        archive.addfile(link)
    tree = tmp_path / "tree"
    make_tree(
        read_service(str(service_of(tmp_path, MINIMAL + 'export = "export.tar"\n'))), tree, tmp_path / "cache"
    )
    assert (tree / "usr" / "bin" / "server").read_bytes() == b"code"
    assert (tree / "etc" / "mtab").readlink() == Path("/proc/mounts")
    assert not (tree / "dev" / "null").exists()


def test_a_damaged_export_is_said(tmp_path: Path) -> None:
    (tmp_path / "export.tar").write_bytes(b"x" * 2000)
    service = read_service(str(service_of(tmp_path, MINIMAL + 'export = "export.tar"\n')))
    with pytest.raises(UserError) as raised:
        make_tree(service, tmp_path / "tree", tmp_path)
    assert "export.tar: cannot be unpacked" in str(raised.value)


def test_a_folder_is_packed_as_cpio_reads_it(tmp_path: Path) -> None:
    if not shutil.which("cpio"):
        pytest.skip("cpio is not installed")
    for name in ("one/bin", "two"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "one" / "bin" / "server").write_text("code")
    (tmp_path / "one" / "bin" / "server").chmod(0o755)
    (tmp_path / "one" / "link").symlink_to("bin/server")
    (tmp_path / "two" / "init").write_text("first")
    packed = io.BytesIO()
    cpio.pack([tmp_path / "one", tmp_path / "two"], packed)
    said = subprocess.run(
        ["cpio", "-tv", "--quiet"], input=packed.getvalue(), capture_output=True, check=True
    )
    lines = [line.split() for line in said.stdout.decode().splitlines()]
    shown = {" ".join(line[8:] if line[0][0] != "c" else line[9:]): line[0] for line in lines}
    assert shown == {
        "bin": "drwxr-xr-x",
        "bin/server": "-rwxr-xr-x",
        "link -> bin/server": "lrwxrwxrwx",
        "init": "-rw-r--r--",
        "dev": "drwxr-xr-x",
        "dev/console": "crw-------",
    }


def test_a_package_comes_with_what_it_depends_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "server\n  Depends: libc6\nlibc6\n  Depends: libgcc-s1\n<awk>\n  mawk\ndebconf\nlibgcc-s1\n"
    (tmp_path / "apt-cache").write_text(f"#!/bin/sh\nprintf '%s' '{said}'\n")
    (tmp_path / "apt-cache").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert packages.with_dependencies(["server"]) == ["libc6", "libgcc-s1", "server"]


def test_without_apt_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError) as raised:
        packages.with_dependencies(["server"])
    assert "apt-cache: not found" in str(raised.value)


def test_what_is_no_kernel_is_said(tmp_path: Path) -> None:
    (tmp_path / "image").write_bytes(b"x" * 4096)
    with pytest.raises(UserError) as raised:
        find_kernel(str(tmp_path / "image"), tmp_path)
    assert "is not a kernel for x86" in str(raised.value)
    with pytest.raises(UserError) as raised:
        find_kernel(str(tmp_path), tmp_path)
    assert "no kernel in it" in str(raised.value)


def test_a_kernel_without_virtio_is_said(tmp_path: Path) -> None:
    own = tmp_path / "lib" / "6.1.0"
    own.mkdir(parents=True)
    (own / "modules.builtin").write_text("kernel/drivers/virtio/virtio.ko\nkernel/net/core/failover.ko\n")
    kernel = Kernel(tmp_path / "image", tmp_path / "lib", "6.1.0")
    with pytest.raises(UserError) as raised:
        copy_modules(kernel, tmp_path / "modules")
    assert "lacks modules: virtio_ring, virtio_pci, virtio_console, net_failover, virtio_net" in str(
        raised.value
    )


def test_modules_are_in_the_order_in_which_they_need_each_other(tmp_path: Path) -> None:
    own = tmp_path / "lib" / "6.1.0" / "kernel"
    own.mkdir(parents=True)
    for name in MODULES[1:]:
        (own / f"{name}.ko").write_text(name)
    (own.parent / "modules.builtin").write_text(f"kernel/drivers/virtio/{MODULES[0]}.ko\n")
    copy_modules(Kernel(tmp_path / "image", tmp_path / "lib", "6.1.0"), tmp_path / "modules")
    assert (tmp_path / "modules" / "order").read_text().split() == [f"{name}.ko" for name in MODULES[1:]]


def test_a_disk_needs_more_modules(tmp_path: Path) -> None:
    own = tmp_path / "lib" / "6.1.0" / "kernel"
    own.mkdir(parents=True)
    for name in [*MODULES, *DISK_MODULES[:-1]]:
        (own / f"{name}.ko").write_text(name)
    kernel = Kernel(tmp_path / "image", tmp_path / "lib", "6.1.0")
    with pytest.raises(UserError) as raised:
        copy_modules(kernel, tmp_path / "modules", has_disk=True)
    assert "lacks modules: ext4" in str(raised.value)
    copy_modules(kernel, tmp_path / "other")
    assert "virtio_blk.ko" not in (tmp_path / "other" / "order").read_text()
