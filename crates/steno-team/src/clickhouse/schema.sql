CREATE TABLE IF NOT EXISTS steno_meta (name String, value Int64)
ENGINE = ReplacingMergeTree ORDER BY name;

CREATE TABLE IF NOT EXISTS steno_session (
    org LowCardinality(String),
    session String COMMENT 'owner/agent/id',
    owner LowCardinality(String),
    agent LowCardinality(String),
    id String,
    project LowCardinality(String),
    title String,
    thread LowCardinality(String),
    started Nullable(Int64) COMMENT 'milliseconds since 1970, as all times',
    ended Nullable(Int64),
    cost Nullable(Float64) COMMENT 'what the agent reports, in dollars',
    tokens Int64,
    entries UInt64,
    digest String COMMENT 'over all entries',
    parts Array(String) COMMENT 'the parts of its entries that count',
    revision String COMMENT 'that of the remote, and the version of the keys of usage; empty while the session is loaded for the first time',
    is_clean UInt8 COMMENT '0 if there may be rows of other parts or revisions'
)
ENGINE = ReplacingMergeTree ORDER BY (org, session);

CREATE TABLE IF NOT EXISTS steno_entry (
    org LowCardinality(String),
    session String,
    source LowCardinality(String),
    seq UInt32 COMMENT 'number of the entry in its session',
    part String,
    at Int64,
    role LowCardinality(String),
    kind LowCardinality(String),
    tool LowCardinality(String),
    model LowCardinality(String),
    is_failure UInt8,
    body String CODEC(ZSTD(3)),
    words String CODEC(ZSTD(3)) COMMENT 'folded by the client, then a mark, then the parts of words such as parseLine',
    text_bytes UInt32 COMMENT 'where the mark is in words',
    time DateTime64(3, 'UTC') ALIAS fromUnixTimestamp64Milli(at),
    INDEX word words TYPE text(tokenizer = splitByString([' ']))
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(fromUnixTimestamp64Milli(at, 'UTC'))
ORDER BY (org, session, source, seq, part);

CREATE TABLE IF NOT EXISTS steno_usage (
    org LowCardinality(String),
    key String COMMENT 'the API message, the same in all sessions',
    session String,
    revision String,
    at Nullable(Int64),
    model LowCardinality(String),
    band UInt8 COMMENT 'length of the prompt, for its price',
    input Int64,
    cache_read Int64,
    cache_write Int64,
    cache_write_5m Int64,
    cache_write_1h Int64,
    output Int64,
    reasoning Int64
)
ENGINE = ReplacingMergeTree ORDER BY (org, key, session, revision);
