-- Version 3 of the schema: phrases of common words are found without reading the texts of all entries that have the words.

-- Which pairs of words follow each other, as a Bloom filter that the client makes. It stays in the row, where reading it costs
-- nothing. Entries of older versions have none. Its size is limited, so that no member can break the searches of others.
ALTER TABLE steno.entry ADD COLUMN pairs bytea CHECK (octet_length(pairs) BETWEEN 8 AND 1024);
ALTER TABLE steno.entry ALTER COLUMN pairs SET STORAGE MAIN;

-- What must hold of the pairs of words of the entry e, as SQL. A search that excludes a phrase needs its text.
CREATE FUNCTION steno.pair_checks(conditions jsonb) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
        SELECT coalesce(string_agg(format(' AND (e.pairs IS NULL OR %s)', (
            SELECT string_agg(format('(%s)', (
                SELECT coalesce(string_agg(format('get_bit(e.pairs, %s %% (8 * octet_length(e.pairs))) = 1', pair::bigint),
                    ' AND '), 'true')
                FROM jsonb_array_elements_text(term->'pairs') pair)), ' OR ')
            FROM jsonb_array_elements(grp->'any') term)), ''), '')
        FROM jsonb_array_elements(conditions) grp
        WHERE grp->>'not' IS DISTINCT FROM 'true'
    $$;

-- Finds entries, newest first. `conditions` are checked for each entry that the query matches: lists of groups, of which
-- each must match, and exclusions. `filter` has the names of EntryFilter.
--
-- The planner cannot know how frequent a word is, and a wrong guess costs a thousand times. So the newest entries are
-- searched one by one while at least one of fifty matches. After that, the text index finds all matches of one month after
-- the other. Costs are set so that the planner has no other choice. Of a phrase, all pairs of words must be in the filter of
-- an entry before its text is read.
CREATE OR REPLACE FUNCTION steno.search(query tsquery, conditions jsonb, filter jsonb, before bigint, most bigint)
    RETURNS TABLE (owner name, agent text, id text, project text, title text, number bigint, at bigint,
        role text, kind text, tool text, model text, source text, text_hash bytea, body text)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off SET random_page_cost = 1.1 SET jit = off SET work_mem = '16MB'
    AS $$
    DECLARE
        asking text := steno.own_team();
        phrases text := steno.phrase_checks(conditions);
        of_session text := steno.session_checks(filter);
        -- The rule of may_see is written out, because a call for each row takes longer.
        visible CONSTANT text := '(s.owner = session_user OR s.visibility = ''everyone''
            OR (s.visibility = ''team'' AND s.team = $2))';
        found_columns CONSTANT text := 's.owner, s.agent, s.id, s.project, s.title, e.number, e.at, e.role,
            e.kind, e.tool, e.model, e.source, e.text_hash, e.body';
        newest_first CONSTANT text := 'e.session DESC, e.number DESC';
        checks text;
        sessions bigint[];
        period record;
        walked bigint := 400;            -- entries to search one by one; 0 if matches are rare
        edge bigint;                     -- the time of the first entry after those
        added bigint;
        missing bigint := most;
    BEGIN
        IF asking IS NULL THEN RETURN; END IF;
        checks := visible || steno.entry_checks(filter) || steno.pair_checks(conditions);
        IF of_session <> '' THEN
            EXECUTE format('SELECT array_agg(s.key) FROM steno.session s WHERE $1 AND %s%s', visible, of_session)
                INTO sessions USING true, asking;
            IF sessions IS NULL THEN RETURN; END IF;
            checks := checks || ' AND e.session = ANY ($4)';
        END IF;
        FOR period IN SELECT * FROM steno.entry_ranges(
            coalesce((filter->>'since')::bigint, -9223372036854775808),
            least((filter->>'until')::bigint - 1, before, 9223372036854775807))
        LOOP
            WHILE walked > 0 LOOP
                EXECUTE format('SELECT at FROM steno.%I WHERE at BETWEEN $1 AND $2
                        ORDER BY at DESC LIMIT 1 OFFSET $3', period.name)
                    INTO edge USING period.first, period.last, walked;
                IF edge = period.last THEN
                    walked := 0;
                    EXIT;
                END IF;
                RETURN QUERY EXECUTE format('SELECT %s FROM
                        (SELECT * FROM steno.%I WHERE at BETWEEN $5 AND $6 ORDER BY at DESC LIMIT $7) e
                        JOIN steno.session s ON s.key = e.session WHERE e.words @@ $1 AND %s%s
                        ORDER BY e.at DESC, %s LIMIT $3',
                        found_columns, period.name, checks, phrases, newest_first)
                    USING query, asking, missing, sessions, coalesce(edge + 1, period.first), period.last, walked;
                GET DIAGNOSTICS added = ROW_COUNT;
                missing := missing - added;
                EXIT WHEN edge IS NULL OR missing <= 0;
                period.last := edge;
                period.is_whole := false;
                walked := CASE WHEN added * 50 >= walked THEN 4000 ELSE 0 END;
            END LOOP;
            EXIT WHEN missing <= 0;
            CONTINUE WHEN walked > 0;
            -- All matches are sorted. If texts must be read, that is done in this order, up to the last one needed.
            RETURN QUERY EXECUTE format(CASE WHEN phrases = ''
                    THEN 'SELECT %1$s FROM steno.%2$I e JOIN steno.session s ON s.key = e.session
                        WHERE e.words @@ $1 AND %3$s%4$s ORDER BY e.at + 0 DESC, %6$s LIMIT $3'
                    ELSE 'SELECT %1$s FROM (SELECT e.ctid AS place, s.* FROM steno.%2$I e
                            JOIN steno.session s ON s.key = e.session WHERE e.words @@ $1 AND %3$s%4$s
                            ORDER BY e.at + 0 DESC, %6$s OFFSET 0) s
                        JOIN LATERAL (SELECT * FROM steno.%2$I e WHERE e.ctid = s.place) e ON true
                        WHERE true%5$s LIMIT $3' END,
                    found_columns, period.name, checks,
                    CASE WHEN period.is_whole THEN '' ELSE ' AND e.at BETWEEN $5 AND $6' END,
                    phrases, newest_first)
                USING query, asking, missing, sessions, period.first, period.last;
            GET DIAGNOSTICS added = ROW_COUNT;
            missing := missing - added;
            EXIT WHEN missing <= 0;
        END LOOP;
    END $$;

REVOKE ALL ON FUNCTION steno.pair_checks(jsonb) FROM PUBLIC;
