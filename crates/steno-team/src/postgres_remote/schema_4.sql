-- Version 4 of the schema: a message that several sessions have is charged to the same session as on the machines of the
-- members, and usage is replaced whose keys an older program made.

-- The version of the rules by which a program made the key of a row. A session has rows of its version or of newer ones.
ALTER TABLE steno.usage ADD COLUMN key_version smallint NOT NULL DEFAULT 0;
ALTER TABLE steno.session ADD COLUMN usage_key_version smallint NOT NULL DEFAULT 0;
GRANT INSERT (usage_key_version) ON steno.session TO steno_member;

-- Removes usage of an own session with keys of older versions, after all of it was sent with keys of this one.
CREATE FUNCTION steno.remove_old_usage(wanted bigint, present_version smallint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ BEGIN
        IF NOT steno.is_own(wanted) THEN RAISE EXCEPTION 'not an own session'; END IF;
        DELETE FROM steno.usage WHERE session = wanted AND key_version < present_version;
        UPDATE steno.session SET usage_key_version = present_version
            WHERE key = wanted AND usage_key_version < present_version;
    END $$;

-- What the visible sessions cost: each API message once, with the largest number of each kind that any of them states. Of
-- several sessions, the one that started first is charged; of equal ones, the first by owner, agent and id.
CREATE OR REPLACE FUNCTION steno.charges() RETURNS TABLE (session bigint, at bigint, model text, band bigint,
        input bigint, cache_read bigint, cache_write bigint, cache_write_5m bigint, cache_write_1h bigint,
        output bigint, reasoning bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
        SELECT (array_agg(u.session ORDER BY s.place))[1], (array_agg(u.at ORDER BY s.place))[1],
            (array_agg(u.model ORDER BY u.model IS NULL, s.place))[1],
            max(u.band), max(u.input), max(u.cache_read), max(u.cache_write), max(u.cache_write_5m),
            max(u.cache_write_1h), max(u.output), max(u.reasoning)
        FROM steno.usage u JOIN (
            SELECT key, row_number() OVER (
                ORDER BY started NULLS LAST, owner, agent COLLATE "C", id COLLATE "C") AS place
            FROM steno.session
            WHERE steno.may_see(owner, team, visibility, steno.own_team())) s ON s.key = u.session
        GROUP BY u.key
    $$;

REVOKE ALL ON FUNCTION steno.remove_old_usage(bigint, smallint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION steno.remove_old_usage(bigint, smallint) TO steno_member;
