//! The methods of an open file that SQLite calls. Pages are encrypted and decrypted here; all else is delegated.

use std::ffi::{c_int, c_void};
use std::ptr;

use rusqlite::ffi;

use crate::page_key::{PAGE_BYTES, PageFile, PageKey};

/// The size of the header of a write-ahead log.
const LOG_HEADER_BYTES: i64 = 32;

/// The size of the header of each frame in the log.
const FRAME_HEADER_BYTES: usize = 24;

const FRAME_BYTES: i64 = (FRAME_HEADER_BYTES + PAGE_BYTES) as i64;

/// An open file. SQLite allocates it together with the file of the base, which follows it in memory.
#[repr(C)]
pub(crate) struct CipherFile {
    /// First, so that a pointer to the whole is one to this.
    sqlite: ffi::sqlite3_file,
    state: *mut OpenFileState,
}

struct OpenFileState {
    key: PageKey,
    kind: PageFile,
    /// For what cannot be encrypted or decrypted in the memory of SQLite.
    buffer: Vec<u8>,
    /// Offset and page number of the last written frame header.
    last_frame: Option<(i64, u32)>,
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    // Version 2 has shared memory, and no pages mapped into memory.
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(map_shared_memory),
    xShmLock: Some(lock_shared_memory),
    xShmBarrier: Some(order_shared_memory),
    xShmUnmap: Some(unmap_shared_memory),
    xFetch: None,
    xUnfetch: None,
};

/// Opens the file of the base with `open`, and prepares this one.
///
/// # Safety
/// `file` points to memory for this file and the file of the base.
pub(crate) unsafe fn open_base(
    key: &PageKey,
    file: *mut CipherFile,
    kind: PageFile,
    open: impl FnOnce(*mut ffi::sqlite3_file) -> c_int,
) -> c_int {
    // SAFETY: the caller guarantees the memory. SQLite calls `close` only if `pMethods` is set.
    unsafe {
        (*file).sqlite.pMethods = ptr::null();
        let base = base_file(file.cast());
        (*base).pMethods = ptr::null();
        let code = open(base);
        if code != ffi::SQLITE_OK {
            if let Some(close) = (*base).pMethods.as_ref().and_then(|methods| methods.xClose) {
                close(base);
            }
            return code;
        }
        let state = OpenFileState { key: key.clone(), kind, buffer: Vec::new(), last_frame: None };
        (*file).state = Box::into_raw(Box::new(state));
        (*file).sqlite.pMethods = &raw const METHODS;
    }
    ffi::SQLITE_OK
}

/// The file of the base.
///
/// # Safety
/// `file` is the start of a [`CipherFile`].
unsafe fn base_file(file: *mut ffi::sqlite3_file) -> *mut ffi::sqlite3_file {
    // SAFETY: the memory goes on with the file of the base. The size of this struct is a multiple of a pointer's, so
    // the alignment is right.
    unsafe { file.cast::<CipherFile>().add(1).cast() }
}

/// The state of an open file. SQLite uses a file from one thread at a time, and methods do not call each other with it.
///
/// # Safety
/// `file` was opened by [`open_base`], and is not closed.
unsafe fn file_state<'a>(file: *mut ffi::sqlite3_file) -> &'a mut OpenFileState {
    // SAFETY: `open_base` set the state, and only `close` frees it.
    unsafe { &mut *(*file.cast::<CipherFile>()).state }
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    // SAFETY: SQLite closes an open file once. The state is freed once, as its pointer is cleared.
    unsafe {
        let own = file.cast::<CipherFile>();
        drop(Box::from_raw((*own).state));
        (*own).state = ptr::null_mut();
        let base = base_file(file);
        (*(*base).pMethods).xClose.map_or(ffi::SQLITE_OK, |close| close(base))
    }
}

/// Reads from the file of the base.
///
/// # Safety
/// `file` is open, and `out` is memory that can be written.
unsafe fn read_base(file: *mut ffi::sqlite3_file, out: &mut [u8], offset: i64) -> c_int {
    let Ok(size) = c_int::try_from(out.len()) else { return ffi::SQLITE_IOERR_READ };
    // SAFETY: the base writes `size` bytes to `out`.
    unsafe {
        let base = base_file(file);
        let read = (*(*base).pMethods).xRead;
        read.map_or(ffi::SQLITE_IOERR_READ, |read| {
            read(base, out.as_mut_ptr().cast(), size, offset)
        })
    }
}

/// Writes to the file of the base.
///
/// # Safety
/// `file` is open.
unsafe fn write_base(file: *mut ffi::sqlite3_file, bytes: &[u8], offset: i64) -> c_int {
    let Ok(size) = c_int::try_from(bytes.len()) else { return ffi::SQLITE_IOERR_WRITE };
    // SAFETY: the base reads `size` bytes from `bytes`.
    unsafe {
        let base = base_file(file);
        let write = (*(*base).pMethods).xWrite;
        write.map_or(ffi::SQLITE_IOERR_WRITE, |write| {
            write(base, bytes.as_ptr().cast(), size, offset)
        })
    }
}

unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    out: *mut c_void,
    size: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    let Ok(length) = usize::try_from(size) else { return ffi::SQLITE_IOERR_READ };
    // SAFETY: SQLite passes memory of `size` bytes and an open file.
    unsafe {
        let out = std::slice::from_raw_parts_mut(out.cast::<u8>(), length);
        match file_state(file).kind {
            PageFile::Database => read_database(file, out, offset),
            PageFile::Log => read_log(file, out, offset),
        }
    }
}

/// Reads a page, or a part of one such as the header of the database.
///
/// # Safety
/// `file` is open.
unsafe fn read_database(file: *mut ffi::sqlite3_file, out: &mut [u8], offset: i64) -> c_int {
    let Some(place) = PagePlace::in_database(offset, out.len()) else {
        return ffi::SQLITE_IOERR_READ;
    };
    // SAFETY: the file is open, and the state is not used in two ways at once.
    unsafe {
        let state = file_state(file);
        if out.len() == PAGE_BYTES {
            let code = read_base(file, out, offset);
            return match code {
                ffi::SQLITE_OK => state.decrypt(out, place.number),
                // The base has filled the rest with zeros. There is no such page.
                code => code,
            };
        }
        state.buffer.resize(PAGE_BYTES, 0);
        let code = read_base(file, &mut state.buffer, place.start);
        if code == ffi::SQLITE_IOERR_SHORT_READ {
            out.fill(0);
        }
        if code != ffi::SQLITE_OK {
            return code;
        }
        let mut page = std::mem::take(&mut state.buffer);
        let code = state.decrypt(&mut page, place.number);
        out.copy_from_slice(&page[place.within..place.within + out.len()]);
        state.buffer = page;
        code
    }
}

/// Reads a header, the page of a frame, or a frame with its header.
///
/// # Safety
/// `file` is open.
unsafe fn read_log(file: *mut ffi::sqlite3_file, out: &mut [u8], offset: i64) -> c_int {
    const WHOLE_FRAME: usize = FRAME_HEADER_BYTES + PAGE_BYTES;
    let within = (offset - LOG_HEADER_BYTES).rem_euclid(FRAME_BYTES) as usize;
    // SAFETY: the file is open, and the state is not used in two ways at once.
    unsafe {
        let state = file_state(file);
        match (within, out.len()) {
            _ if offset < LOG_HEADER_BYTES => read_base(file, out, offset),
            // A part of a header, such as its checksum, or all of it.
            (within, size) if within + size <= FRAME_HEADER_BYTES => read_base(file, out, offset),
            (0, WHOLE_FRAME) => {
                let code = read_base(file, out, offset);
                let (header, page) = out.split_at_mut(FRAME_HEADER_BYTES);
                if code == ffi::SQLITE_OK && state.decrypt(page, page_number(header)) != code {
                    // SQLite is looking for the end of the log. The checksum of this page will differ.
                    page.fill(0);
                }
                code
            }
            (FRAME_HEADER_BYTES, PAGE_BYTES) => {
                state.buffer.resize(WHOLE_FRAME, 0);
                let mut frame = std::mem::take(&mut state.buffer);
                let mut code = read_base(file, &mut frame, offset - FRAME_HEADER_BYTES as i64);
                let (header, page) = frame.split_at_mut(FRAME_HEADER_BYTES);
                if code == ffi::SQLITE_OK {
                    code = state.decrypt(page, page_number(header));
                }
                out.copy_from_slice(page);
                state.buffer = frame;
                code
            }
            _ => ffi::SQLITE_IOERR_READ,
        }
    }
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    bytes: *const c_void,
    size: c_int,
    offset: ffi::sqlite3_int64,
) -> c_int {
    let Ok(length) = usize::try_from(size) else { return ffi::SQLITE_IOERR_WRITE };
    // SAFETY: SQLite passes memory of `size` bytes and an open file.
    unsafe {
        let bytes = std::slice::from_raw_parts(bytes.cast::<u8>(), length);
        match file_state(file).kind {
            PageFile::Database => match PagePlace::in_database(offset, length) {
                Some(place) if length == PAGE_BYTES => {
                    write_page(file, bytes, offset, place.number)
                }
                _ => ffi::SQLITE_IOERR_WRITE,
            },
            PageFile::Log => write_log(file, bytes, offset),
        }
    }
}

/// Writes a header, or the page of a frame.
///
/// # Safety
/// `file` is open.
unsafe fn write_log(file: *mut ffi::sqlite3_file, bytes: &[u8], offset: i64) -> c_int {
    let within = (offset - LOG_HEADER_BYTES).rem_euclid(FRAME_BYTES) as usize;
    // SAFETY: the file is open.
    unsafe {
        match (within, bytes.len()) {
            _ if offset < LOG_HEADER_BYTES => write_base(file, bytes, offset),
            (0, FRAME_HEADER_BYTES) => {
                file_state(file).last_frame = Some((offset, page_number(bytes)));
                write_base(file, bytes, offset)
            }
            (FRAME_HEADER_BYTES, PAGE_BYTES) => {
                let start = offset - FRAME_HEADER_BYTES as i64;
                let mut header = [0; FRAME_HEADER_BYTES];
                let number = match file_state(file).last_frame {
                    Some((last, number)) if last == start => number,
                    // SQLite replaces a page that it wrote in the same transaction.
                    _ => match read_base(file, &mut header, start) {
                        ffi::SQLITE_OK => page_number(&header),
                        code => return code,
                    },
                };
                write_page(file, bytes, offset, number)
            }
            _ => ffi::SQLITE_IOERR_WRITE,
        }
    }
}

/// Encrypts and writes a page.
///
/// # Safety
/// `file` is open.
unsafe fn write_page(file: *mut ffi::sqlite3_file, page: &[u8], offset: i64, number: u32) -> c_int {
    // SAFETY: the file is open, and the state is not used in two ways at once.
    unsafe {
        let state = file_state(file);
        let mut buffer = std::mem::take(&mut state.buffer);
        buffer.clear();
        buffer.extend_from_slice(page);
        let encrypted = state.key.encrypt_page(&mut buffer, number, state.kind);
        let code = match encrypted {
            Ok(()) => write_base(file, &buffer, offset),
            Err(_) => ffi::SQLITE_IOERR_WRITE,
        };
        file_state(file).buffer = buffer;
        code
    }
}

impl OpenFileState {
    fn decrypt(&self, page: &mut [u8], number: u32) -> c_int {
        match self.key.decrypt_page(page, number, self.kind) {
            Ok(()) => ffi::SQLITE_OK,
            Err(_) => {
                page.fill(0);
                ffi::SQLITE_CORRUPT
            }
        }
    }
}

/// Where bytes of the database file are.
struct PagePlace {
    /// The number of the page, from 1.
    number: u32,
    /// The offset of the page in the file.
    start: i64,
    /// The offset of the bytes in the page.
    within: usize,
}

impl PagePlace {
    /// `None` for bytes of more than one page.
    fn in_database(offset: i64, length: usize) -> Option<Self> {
        let page = i64::try_from(PAGE_BYTES).ok()?;
        let within = usize::try_from(offset.checked_rem_euclid(page)?).ok()?;
        let number = u32::try_from(offset / page + 1).ok()?;
        let is_in_page = offset >= 0 && within + length <= PAGE_BYTES;
        is_in_page.then_some(Self { number, start: offset - within as i64, within })
    }
}

/// The page number in the header of a frame.
fn page_number(header: &[u8]) -> u32 {
    header.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

/// Defines methods that call the same method of the base.
macro_rules! delegate_to_base {
    ($($name:ident => $method:ident($($argument:ident: $kind:ty),*) -> $result:ty = $absent:expr;)*) => {$(
        unsafe extern "C" fn $name(file: *mut ffi::sqlite3_file $(, $argument: $kind)*) -> $result {
            // SAFETY: the base gets the arguments that SQLite passed, and its own file, which is open.
            unsafe {
                let base = base_file(file);
                (*(*base).pMethods).$method.map_or($absent, |method| method(base $(, $argument)*))
            }
        }
    )*};
}

delegate_to_base! {
    truncate => xTruncate(size: ffi::sqlite3_int64) -> c_int = ffi::SQLITE_IOERR;
    sync => xSync(flags: c_int) -> c_int = ffi::SQLITE_IOERR;
    file_size => xFileSize(out: *mut ffi::sqlite3_int64) -> c_int = ffi::SQLITE_IOERR;
    lock => xLock(level: c_int) -> c_int = ffi::SQLITE_IOERR;
    unlock => xUnlock(level: c_int) -> c_int = ffi::SQLITE_IOERR;
    check_reserved_lock => xCheckReservedLock(out: *mut c_int) -> c_int = ffi::SQLITE_IOERR;
    file_control => xFileControl(operation: c_int, argument: *mut c_void) -> c_int = ffi::SQLITE_NOTFOUND;
    sector_size => xSectorSize() -> c_int = 0;
    device_characteristics => xDeviceCharacteristics() -> c_int = 0;
    map_shared_memory => xShmMap(
        region: c_int, size: c_int, extend: c_int, out: *mut *mut c_void
    ) -> c_int = ffi::SQLITE_IOERR;
    lock_shared_memory => xShmLock(first: c_int, count: c_int, flags: c_int) -> c_int = ffi::SQLITE_IOERR;
    order_shared_memory => xShmBarrier() -> () = ();
    unmap_shared_memory => xShmUnmap(delete: c_int) -> c_int = ffi::SQLITE_OK;
}
