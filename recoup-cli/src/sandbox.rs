//! The walls that a worker puts around itself.
//!
//! They hold for the whole process and are never taken down again, so they stand in the program and not
//! in the library: nobody who calls a library expects to lose the file system by it. Only Linux has them.

/// Shuts this process in: it can compute, read its standard input and write its standard output.
///
/// # Errors
/// In words, where the system lacks a wall. The process is then partly shut in and should end.
#[cfg(target_os = "linux")]
pub(crate) fn shut_in() -> Result<(), String> {
    linux::close_descriptors()?;
    linux::limit_resources()?;
    linux::leave_file_system()?;
    linux::leave_system_calls()
}

/// No other system has these walls.
#[cfg(not(target_os = "linux"))]
pub(crate) fn shut_in() -> Result<(), String> {
    Err("this system has neither Landlock nor seccomp".to_owned())
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeMap;

    use landlock::{ABI, Access as _, AccessFs, AccessNet, Ruleset, RulesetAttr as _, RulesetStatus, Scope};
    use nix::libc;
    use nix::sys::resource::{Resource, setrlimit};
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

    /// Address space: the interpreter's greatest heap, twice, and the allocator's reserve of 1 GiB.
    const ADDRESS_SPACE: u64 = 5 << 29;
    /// Processor time, in seconds. A worker is replaced long before.
    const PROCESSOR_SECONDS: u64 = 3600;

    pub(super) fn limit_resources() -> Result<(), String> {
        let limits = [
            (Resource::RLIMIT_AS, ADDRESS_SPACE, "address space"),
            (Resource::RLIMIT_CPU, PROCESSOR_SECONDS, "processor time"),
            (Resource::RLIMIT_FSIZE, 0, "file size"),
            (Resource::RLIMIT_CORE, 0, "core files"),
            (Resource::RLIMIT_NOFILE, 16, "descriptors"),
        ];
        for (resource, limit, name) in limits {
            setrlimit(resource, limit, limit).map_err(|error| format!("cannot limit {name}: {error}"))?;
        }
        nix::sys::prctl::set_no_new_privs().map_err(|error| format!("cannot give up new privileges: {error}"))
    }

    /// Closes what the parent's own parents left open: all but the three standard streams.
    pub(super) fn close_descriptors() -> Result<(), String> {
        let cannot = |error: std::io::Error| format!("cannot list the open descriptors: {error}");
        let mut open: Vec<i32> = Vec::new();
        for entry in std::fs::read_dir("/proc/self/fd").map_err(cannot)? {
            open.extend(
                entry.map_err(cannot)?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()),
            );
        }
        for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2) {
            // The listing's own descriptor is closed by now.
            let _ = nix::unistd::close(descriptor);
        }
        Ok(())
    }

    /// Landlock: no file, no socket, no signal to other processes. Every access is handled and none allowed.
    pub(super) fn leave_file_system() -> Result<(), String> {
        let newest = ABI::V6;
        let status = Ruleset::default()
            .handle_access(AccessFs::from_all(newest))
            .and_then(|ruleset| ruleset.handle_access(AccessNet::from_all(newest)))
            .and_then(|ruleset| ruleset.scope(Scope::from_all(newest)))
            .and_then(|ruleset| ruleset.create()?.restrict_self());
        match status {
            Ok(status) if status.ruleset != RulesetStatus::NotEnforced => Ok(()),
            Ok(_) => Err("this system's kernel has no Landlock".to_owned()),
            Err(error) => Err(format!("Landlock: {error}")),
        }
    }

    /// seccomp: what an interpreter needs to compute and to talk over pipes; all else fails.
    pub(super) fn leave_system_calls() -> Result<(), String> {
        const ALLOWED: [libc::c_long; 23] = [
            libc::SYS_brk,
            libc::SYS_clock_gettime,
            libc::SYS_close,
            libc::SYS_exit,
            libc::SYS_exit_group,
            libc::SYS_futex,
            libc::SYS_getpid,
            libc::SYS_getrandom,
            libc::SYS_gettid,
            libc::SYS_madvise,
            libc::SYS_mmap,
            libc::SYS_mprotect,
            libc::SYS_mremap,
            libc::SYS_munmap,
            libc::SYS_read,
            libc::SYS_restart_syscall,
            libc::SYS_rt_sigaction,
            libc::SYS_rt_sigprocmask,
            libc::SYS_rt_sigreturn,
            libc::SYS_sched_yield,
            libc::SYS_sigaltstack,
            libc::SYS_tgkill,
            libc::SYS_write,
        ];
        let refused = |error: &dyn std::fmt::Display| format!("seccomp: {error}");
        let rules: BTreeMap<i64, Vec<_>> = ALLOWED.into_iter().map(|call| (call, Vec::new())).collect();
        let target = std::env::consts::ARCH.try_into().map_err(|error| refused(&error))?;
        let deny = SeccompAction::Errno(libc::EPERM as u32);
        let filter =
            SeccompFilter::new(rules, deny, SeccompAction::Allow, target).map_err(|error| refused(&error))?;
        let program = BpfProgram::try_from(filter).map_err(|error| refused(&error))?;
        apply_filter(&program).map_err(|error| refused(&error))
    }
}
