//! Registers file systems with SQLite: one for each key and base.

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use rusqlite::ffi;

use crate::file_methods::{self, CipherFile};
use crate::page_key::{PageFile, PageKey};

/// The file system of SQLite that reads and writes the encrypted files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseFileSystem {
    /// The default one.
    Default,
    /// The one without locks, for files that no process can write.
    Lockless,
}

impl BaseFileSystem {
    fn name(self) -> Option<&'static CStr> {
        match self {
            Self::Default => None,
            Self::Lockless if cfg!(windows) => Some(c"win32-none"),
            Self::Lockless => Some(c"unix-none"),
        }
    }
}

/// What `pAppData` of a registered file system points to.
pub(crate) struct CipherVfs {
    pub(crate) base: *mut ffi::sqlite3_vfs,
    pub(crate) key: PageKey,
}

struct RegisteredVfs {
    key: PageKey,
    base: BaseFileSystem,
    name: &'static CStr,
}

static REGISTERED: Mutex<Vec<RegisteredVfs>> = Mutex::new(Vec::new());

/// The name of the file system for a key and base. Registers it first, for the rest of the process: a connection may
/// be open at any time.
pub(crate) fn registered_name(
    key: &PageKey,
    base: BaseFileSystem,
) -> rusqlite::Result<&'static CStr> {
    let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = registered.iter().find(|one| one.key == *key && one.base == base) {
        return Ok(known.name);
    }
    let name = CString::new(format!("steno-page-cipher-{}", registered.len()));
    let name: &'static CStr = Box::leak(name.expect("digits have no zero").into_boxed_c_str());
    register(name, key, base)?;
    registered.push(RegisteredVfs { key: key.clone(), base, name });
    Ok(name)
}

fn register(name: &'static CStr, key: &PageKey, base: BaseFileSystem) -> rusqlite::Result<()> {
    let failure = |code| rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
    let base_name = base.name().map_or(ptr::null(), CStr::as_ptr);
    // SAFETY: initialising is allowed at any time, and the name is null or a C string.
    let base = unsafe {
        ffi::sqlite3_initialize();
        ffi::sqlite3_vfs_find(base_name)
    };
    if base.is_null() {
        return Err(failure(ffi::SQLITE_NOTFOUND));
    }
    // SAFETY: SQLite's own file systems exist for the whole process and do not change.
    let (base_file, longest_path) = unsafe { ((*base).szOsFile, (*base).mxPathname) };
    let own_size = c_int::try_from(size_of::<CipherFile>()).expect("a small struct");
    let data = Box::leak(Box::new(CipherVfs { base, key: key.clone() }));
    let vfs = Box::leak(Box::new(ffi::sqlite3_vfs {
        // Version 2 has no system calls to replace.
        iVersion: 2,
        szOsFile: own_size + base_file,
        mxPathname: longest_path,
        pNext: ptr::null_mut(),
        zName: name.as_ptr(),
        pAppData: (data as *mut CipherVfs).cast(),
        xOpen: Some(open_file),
        xDelete: Some(delete_file),
        xAccess: Some(check_access),
        xFullPathname: Some(full_path),
        xDlOpen: None,
        xDlError: None,
        xDlSym: None,
        xDlClose: None,
        xRandomness: Some(fill_random),
        xSleep: Some(sleep),
        xCurrentTime: Some(current_time),
        xGetLastError: Some(last_error),
        xCurrentTimeInt64: Some(current_time_int64),
        xSetSystemCall: None,
        xGetSystemCall: None,
        xNextSystemCall: None,
    }));
    // SAFETY: `vfs` and all it points to live as long as the process.
    match unsafe { ffi::sqlite3_vfs_register(vfs, 0) } {
        ffi::SQLITE_OK => Ok(()),
        code => Err(failure(code)),
    }
}

/// The data of a file system that [`register`] made.
///
/// # Safety
/// `vfs` is such a file system.
unsafe fn vfs_data(vfs: *mut ffi::sqlite3_vfs) -> &'static CipherVfs {
    // SAFETY: `register` leaked the data, and nothing changes it.
    unsafe { &*(*vfs).pAppData.cast::<CipherVfs>() }
}

/// Opens a database or its log. Other files could hold plain pages, so they are refused.
unsafe extern "C" fn open_file(
    vfs: *mut ffi::sqlite3_vfs,
    name: *const c_char,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    let kind = match flags {
        flags if flags & ffi::SQLITE_OPEN_MAIN_DB != 0 => PageFile::Database,
        flags if flags & ffi::SQLITE_OPEN_WAL != 0 => PageFile::Log,
        _ => {
            // SAFETY: SQLite passes memory of `szOsFile` bytes.
            unsafe { (*file).pMethods = ptr::null() };
            return ffi::SQLITE_CANTOPEN;
        }
    };
    // SAFETY: SQLite passes the arguments that its interface states, and `register` set the size of the memory.
    unsafe {
        let data = vfs_data(vfs);
        file_methods::open_base(&data.key, file.cast(), kind, |base_file| {
            (*data.base).xOpen.map_or(ffi::SQLITE_CANTOPEN, |open| {
                open(data.base, name, base_file, flags, out_flags)
            })
        })
    }
}

/// Defines functions that call the same function of the base file system.
macro_rules! delegate_to_base {
    ($($name:ident => $method:ident($($argument:ident: $kind:ty),*) or $absent:expr;)*) => {$(
        unsafe extern "C" fn $name(vfs: *mut ffi::sqlite3_vfs $(, $argument: $kind)*) -> c_int {
            // SAFETY: the base gets the arguments that SQLite passed, and itself.
            unsafe {
                let base = vfs_data(vfs).base;
                (*base).$method.map_or($absent, |method| method(base $(, $argument)*))
            }
        }
    )*};
}

delegate_to_base! {
    delete_file => xDelete(name: *const c_char, sync: c_int) or ffi::SQLITE_IOERR;
    check_access => xAccess(name: *const c_char, flags: c_int, out: *mut c_int) or ffi::SQLITE_IOERR;
    full_path => xFullPathname(name: *const c_char, size: c_int, out: *mut c_char) or ffi::SQLITE_CANTOPEN;
    fill_random => xRandomness(size: c_int, out: *mut c_char) or 0;
    sleep => xSleep(microseconds: c_int) or 0;
    current_time => xCurrentTime(out: *mut f64) or ffi::SQLITE_ERROR;
    last_error => xGetLastError(size: c_int, out: *mut c_char) or 0;
    current_time_int64 => xCurrentTimeInt64(out: *mut ffi::sqlite3_int64) or ffi::SQLITE_ERROR;
}
