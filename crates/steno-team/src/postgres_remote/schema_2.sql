-- Version 2 of the schema: a faster search, faster compression, and retention. It changes version 1, also in a new database.

-- Texts are compressed with LZ4 where the server has it: it takes half as long to add entries then.
DO $$
DECLARE
    part regclass;
BEGIN
    IF (SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression') THEN
        FOR part IN SELECT 'steno.entry'::regclass
            UNION ALL SELECT inhrelid FROM pg_inherits WHERE inhparent = 'steno.entry'::regclass
        LOOP
            EXECUTE format('ALTER TABLE %s ALTER body SET COMPRESSION lz4, ALTER folded SET COMPRESSION lz4,
                ALTER parts SET COMPRESSION lz4, ALTER words SET COMPRESSION lz4', part);
        END LOOP;
    END IF;
END $$;

-- Nothing reads this index.
DROP INDEX steno.entry_text;

-- The parts of the entries' table that have entries between two moments, newest first, as ranges that do not overlap. Entries
-- of a month without a partition are in entry_other.
CREATE FUNCTION steno.entry_ranges(earliest bigint, latest bigint)
    RETURNS TABLE (name name, first bigint, last bigint, is_whole boolean)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    DECLARE
        month record;
        upper bigint := latest;
        has_others boolean := pg_relation_size('steno.entry_other') > 0;
    BEGIN
        FOR month IN
            SELECT c.oid, c.relname, bound[1]::bigint AS first, bound[2]::bigint - 1 AS last
            FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
            CROSS JOIN regexp_match(pg_get_expr(c.relpartbound, c.oid),
                $pattern$FROM \('(-?\d+)'\) TO \('(-?\d+)'\)$pattern$) AS bound
            WHERE i.inhparent = 'steno.entry'::regclass AND bound IS NOT NULL
            ORDER BY bound[1]::bigint DESC
        LOOP
            CONTINUE WHEN month.first > upper;
            EXIT WHEN month.last < earliest;
            IF month.last < upper AND has_others THEN
                RETURN QUERY SELECT 'entry_other'::name, month.last + 1, upper, false;
            END IF;
            IF pg_relation_size(month.oid) > 0 THEN
                RETURN QUERY SELECT month.relname, greatest(month.first, earliest),
                    least(month.last, upper), month.first >= earliest AND month.last <= upper;
            END IF;
            upper := month.first - 1;
        END LOOP;
        IF upper >= earliest AND has_others THEN
            RETURN QUERY SELECT 'entry_other'::name, earliest, upper, false;
        END IF;
    END $$;

-- Conditions of phrases as SQL for the entry e. All values are quoted, so they are data whatever they contain.
CREATE FUNCTION steno.phrase_checks(conditions jsonb) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
    DECLARE
        checks text := '';
        grp jsonb;
        term jsonb;
        alternatives text[];
    BEGIN
        FOR grp IN SELECT * FROM jsonb_array_elements(conditions) LOOP
            alternatives := '{}';
            FOR term IN SELECT * FROM jsonb_array_elements(grp->'any') LOOP
                alternatives := alternatives || CASE term->>'in'
                    WHEN 'words' THEN format('e.words @@ %L::tsquery', term->>'query')
                    WHEN 'folded' THEN format('strpos(e.folded, %L) > 0', term->>'text')
                    WHEN 'parts' THEN format('strpos(e.parts, %L) > 0', term->>'text')
                    ELSE 'false' END;
            END LOOP;
            checks := checks || format(' AND %s (%s)',
                CASE WHEN grp->>'not' = 'true' THEN 'NOT' ELSE '' END,
                array_to_string(alternatives, ' OR '));
        END LOOP;
        RETURN checks;
    END $$;

-- The conditions of a filter that concern the session s, as SQL.
CREATE FUNCTION steno.session_checks(filter jsonb) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
        SELECT concat(
            CASE WHEN filter ? 'agent' THEN format(' AND s.agent = %L', filter->>'agent') END,
            CASE WHEN filter ? 'session' THEN format(' AND s.id = %L', filter->>'session') END,
            CASE WHEN filter ? 'thread' THEN format(' AND s.thread = %L', filter->>'thread') END,
            CASE WHEN filter ? 'owner' THEN format(' AND s.owner = %L', filter->>'owner') END,
            CASE WHEN filter ? 'project' THEN format(' AND (s.project = %1$L
                OR starts_with(s.project, %1$L || ''/'')
                OR right(s.project, length(%1$L) + 1) = ''/'' || %1$L)', filter->>'project') END)
    $$;

-- The conditions of a filter that concern the entry e, besides its time, as SQL.
CREATE FUNCTION steno.entry_checks(filter jsonb) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
    AS $$
        SELECT concat(
            CASE WHEN filter ? 'role' THEN format(' AND e.role = %L', filter->>'role') END,
            CASE WHEN filter ? 'tool' THEN
                format(' AND lower(e.tool) = lower(%L)', filter->>'tool') END,
            CASE WHEN filter ? 'model' THEN
                format(' AND strpos(lower(e.model), lower(%L)) > 0', filter->>'model') END,
            CASE WHEN filter->>'errors' = 'true' THEN ' AND e.failed' END)
    $$;

-- Finds entries, newest first. `conditions` are checked for each entry that the query matches: lists of groups, of which
-- each must match, and exclusions. `filter` has the names of EntryFilter.
--
-- The planner cannot know how frequent a word is, and a wrong guess costs a thousand times. So the newest entries are
-- searched one by one while at least one of fifty matches. After that, the text index finds all matches of one month after
-- the other. Costs are set so that the planner has no other choice.
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
        checks := visible || steno.entry_checks(filter);
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

-- Removes the sessions that ended before a moment, with their entries: those of whole months by dropping the partition. Only
-- the owner of the database may. Sessions whose end is unknown stay.
CREATE FUNCTION steno.prune(ended_before bigint, is_trial boolean)
    RETURNS TABLE (sessions bigint, partitions bigint)
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
    AS $$
    DECLARE
        month record;
        is_used boolean;
    BEGIN
        IF NOT pg_has_role((SELECT nspowner FROM pg_namespace WHERE nspname = 'steno'), 'USAGE') THEN
            RAISE EXCEPTION 'only the owner of the database may remove the sessions of others';
        END IF;
        SELECT count(*) INTO sessions FROM steno.session s WHERE coalesce(s.ended, s.started) < ended_before;
        partitions := 0;
        FOR month IN SELECT * FROM steno.entry_ranges(-9223372036854775808, ended_before - 1) r
            WHERE r.name <> 'entry_other' AND r.is_whole
        LOOP
            EXECUTE format('SELECT EXISTS (SELECT FROM steno.%I e JOIN steno.session s ON s.key = e.session
                WHERE (coalesce(s.ended, s.started) < $1) IS NOT TRUE)', month.name) INTO is_used USING ended_before;
            CONTINUE WHEN is_used;
            partitions := partitions + 1;
            IF NOT is_trial THEN EXECUTE format('DROP TABLE steno.%I', month.name); END IF;
        END LOOP;
        IF NOT is_trial THEN
            DELETE FROM steno.session s WHERE coalesce(s.ended, s.started) < ended_before;
        END IF;
        RETURN NEXT;
    END $$;

REVOKE ALL ON FUNCTION steno.entry_ranges(bigint, bigint), steno.phrase_checks(jsonb), steno.session_checks(jsonb),
    steno.entry_checks(jsonb), steno.prune(bigint, boolean) FROM PUBLIC;
