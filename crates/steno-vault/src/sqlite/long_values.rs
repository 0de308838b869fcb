//! Values too long to hold in memory: read in chunks, or hidden.

use std::io::{self, Read};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use rusqlite::blob::Blob;
use rusqlite::{Connection, MAIN_DB};

use super::rows::table_layout::{TableLayout, plain_tables, quote_name};

/// Bytes per read. A multiple of three, so that base64 needs no padding between chunks.
const PIECE_BYTES: usize = 3 << 16;

/// A value that stays in the database.
#[derive(Clone, Debug)]
pub(super) struct LongValue {
    pub table: String,
    pub column: String,
    pub rowid: i64,
    /// Whether the value is text, which may be invalid UTF-8. Otherwise it is a blob.
    pub is_text: bool,
}

/// Receives a chunk of output.
pub(super) type TakePiece<'a> = &'a mut dyn FnMut(&[u8]) -> io::Result<()>;

impl LongValue {
    /// The length in bytes.
    pub(super) fn length(&self, connection: &Connection) -> io::Result<u64> {
        Ok(self.open(connection)?.len() as u64)
    }

    /// Passes the bytes to `take` in chunks.
    pub(super) fn for_each_piece(
        &self,
        connection: &Connection,
        take: TakePiece<'_>,
    ) -> io::Result<()> {
        let mut blob = self.open(connection)?;
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let length = fill_buffer(&mut blob, &mut piece)?;
            if length == 0 {
                return Ok(());
            }
            take(&piece[..length])?;
        }
    }

    /// Passes the value to `take` as JSON, encoded as in a row log.
    pub(super) fn write_json(
        &self,
        connection: &Connection,
        take: TakePiece<'_>,
    ) -> io::Result<()> {
        if self.is_text && self.is_utf8(connection)? {
            return self.write_json_string(connection, take);
        }
        take(if self.is_text { b"{\"text\":\"" } else { b"{\"blob\":\"" })?;
        self.for_each_piece(connection, &mut |piece| take(BASE64.encode(piece).as_bytes()))?;
        take(b"\"}")
    }

    fn write_json_string(&self, connection: &Connection, take: TakePiece<'_>) -> io::Result<()> {
        take(b"\"")?;
        let mut rest = Vec::new();
        self.for_each_piece(connection, &mut |piece| {
            rest.extend_from_slice(piece);
            let text = std::str::from_utf8(&rest);
            let end = text.map_or_else(|error| error.valid_up_to(), str::len);
            let text = String::from_utf8_lossy(&rest[..end]);
            let quoted = serde_json::to_vec(&text)?;
            take(&quoted[1..quoted.len() - 1])?;
            rest.drain(..end);
            Ok(())
        })?;
        take(b"\"")
    }

    fn is_utf8(&self, connection: &Connection) -> io::Result<bool> {
        let (mut rest, mut is_utf8) = (Vec::new(), true);
        self.for_each_piece(connection, &mut |piece| {
            if !is_utf8 {
                return Ok(());
            }
            rest.extend_from_slice(piece);
            match std::str::from_utf8(&rest) {
                Ok(_) => rest.clear(),
                Err(error) => {
                    is_utf8 = error.error_len().is_none();
                    rest.drain(..error.valid_up_to());
                }
            }
            Ok(())
        })?;
        Ok(is_utf8 && rest.is_empty())
    }

    fn open<'a>(&self, connection: &'a Connection) -> io::Result<Blob<'a>> {
        let opened = connection.blob_open(
            MAIN_DB,
            self.table.as_str(),
            self.column.as_str(),
            self.rowid,
            true,
        );
        opened.map_err(io::Error::other)
    }
}

/// Reads until the buffer is full or the input ends.
fn fill_buffer(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

/// Makes values longer than `limit` bytes read as null: a temporary view shadows each table. The database itself does
/// not change.
pub(super) fn hide_long_values(connection: &Connection, limit: usize) -> rusqlite::Result<()> {
    for (name, _) in plain_tables(connection)? {
        let table = TableLayout::read(connection, &name)?;
        let columns = table.columns.iter().map(|column| {
            let column = quote_name(column);
            format!("CASE WHEN octet_length({column}) <= {limit} THEN {column} END AS {column}")
        });
        let rowid = table.rowid.map(|name| format!("{name} AS rowid"));
        let columns: Vec<String> = columns.chain(rowid).collect();
        let name = quote_name(&name);
        let columns = columns.join(", ");
        connection.execute_batch(&format!(
            "CREATE TEMP VIEW {name} AS SELECT {columns} FROM main.{name}"
        ))?;
    }
    Ok(())
}
