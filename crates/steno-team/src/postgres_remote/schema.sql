-- The schema of a team's database, version 1. `steno remote init` runs it in one transaction, as the owner of the
-- database. Members connect with roles of their own, which are members of the role steno_member.
--
-- Whoever asks is session_user: functions below run with the rights of their owner, where current_user is the owner.
CREATE SCHEMA steno;
REVOKE ALL ON SCHEMA steno FROM PUBLIC;
ALTER DEFAULT PRIVILEGES IN SCHEMA steno REVOKE ALL ON FUNCTIONS FROM PUBLIC;
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'steno_member') THEN
        CREATE ROLE steno_member NOLOGIN;
    END IF;
END $$;
GRANT USAGE ON SCHEMA steno TO steno_member;

CREATE TABLE steno.meta (name text PRIMARY KEY, value bigint NOT NULL);

-- Who belongs to which team. A role is in one team.
CREATE TABLE steno.member (role name PRIMARY KEY, team text NOT NULL);

-- One session of one owner. `manifest` names the frames of its files; `revision` is its hash.
CREATE TABLE steno.session (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    team text NOT NULL,
    owner name NOT NULL,
    agent text NOT NULL,
    id text NOT NULL,
    visibility text NOT NULL CHECK (visibility IN ('private', 'team', 'everyone')),
    project text,
    title text,
    branch text,
    thread text,
    models text[] NOT NULL DEFAULT '{}',
    started bigint,                      -- milliseconds since 1970
    ended bigint,
    entries bigint NOT NULL DEFAULT 0,
    cost double precision,
    tokens bigint NOT NULL DEFAULT 0,
    manifest text,
    revision bytea,
    taken bigint NOT NULL DEFAULT 0,     -- how many of its entries are in
    digest bytea,                        -- the hash over them
    UNIQUE (owner, agent, id)
);
CREATE INDEX session_started ON steno.session (started DESC);

-- A part of a session's files, compressed, by the hash of its content. It belongs to one session: otherwise whoever knows
-- a hash could find out whether somebody else has the content.
CREATE TABLE steno.frame (
    session bigint NOT NULL REFERENCES steno.session ON DELETE CASCADE,
    hash bytea NOT NULL,
    stored bytea NOT NULL,
    PRIMARY KEY (session, hash)
);
ALTER TABLE steno.frame ALTER COLUMN stored SET STORAGE EXTERNAL;

-- One entry. `words` are folded by the client, so that all stores find the same; `folded` has them in order.
CREATE TABLE steno.entry (
    session bigint NOT NULL REFERENCES steno.session ON DELETE CASCADE,
    number bigint NOT NULL,
    at bigint NOT NULL,                  -- milliseconds since 1970; the session's start where it has no time
    role text NOT NULL,
    kind text NOT NULL,
    tool text,
    model text,
    source text NOT NULL,
    failed boolean NOT NULL,
    text_hash bytea,
    body text,
    folded text,                         -- ' word word '
    parts text,                          -- the parts of words such as parseLine, likewise
    words tsvector,
    PRIMARY KEY (session, number, at)
) PARTITION BY RANGE (at);
CREATE INDEX entry_words ON steno.entry USING gin (words) WITH (fastupdate = on);
CREATE INDEX entry_at ON steno.entry (at DESC);
CREATE INDEX entry_text ON steno.entry (text_hash);
CREATE TABLE steno.entry_other PARTITION OF steno.entry DEFAULT;

-- What each session states of an API message. A message counts once, whoever states it.
CREATE TABLE steno.usage (
    session bigint NOT NULL REFERENCES steno.session ON DELETE CASCADE,
    key bytea NOT NULL,
    number bigint,
    at bigint,
    model text,
    input bigint NOT NULL,
    cache_read bigint NOT NULL,
    cache_write bigint NOT NULL,
    cache_write_5m bigint NOT NULL,
    cache_write_1h bigint NOT NULL,
    output bigint NOT NULL,
    reasoning bigint NOT NULL,
    band bigint NOT NULL,
    PRIMARY KEY (session, key)
);
CREATE INDEX usage_key ON steno.usage (key);

-- What was forgotten. A session in here can never be pushed again.
CREATE TABLE steno.forgotten (
    team text NOT NULL,
    owner name NOT NULL,
    agent text NOT NULL,
    id text NOT NULL,
    tombstone text NOT NULL,
    PRIMARY KEY (owner, agent, id)
);

-- The team of whoever asks; NULL for strangers.
CREATE FUNCTION steno.own_team() RETURNS text LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    AS $$ SELECT team FROM steno.member WHERE role = session_user $$;

-- Who may see a session.
CREATE FUNCTION steno.may_see(owner name, team text, visibility text, asking text) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$ SELECT asking IS NOT NULL AND (owner = session_user OR visibility = 'everyone'
        OR (visibility = 'team' AND team = asking)) $$;

CREATE FUNCTION steno.is_forgotten(wanted_agent text, wanted_id text) RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT EXISTS (SELECT FROM steno.forgotten
        WHERE owner = session_user AND agent = wanted_agent AND id = wanted_id) $$;

-- Whether a session belongs to whoever asks.
CREATE FUNCTION steno.is_own(wanted bigint) RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ SELECT EXISTS (SELECT FROM steno.session s WHERE s.key = wanted AND s.owner = session_user
        AND steno.own_team() IS NOT NULL) $$;

ALTER TABLE steno.meta ENABLE ROW LEVEL SECURITY;
CREATE POLICY read ON steno.meta FOR SELECT TO steno_member USING (true);

ALTER TABLE steno.member ENABLE ROW LEVEL SECURITY;
CREATE POLICY read ON steno.member FOR SELECT TO steno_member
    USING (team = (SELECT steno.own_team()));

ALTER TABLE steno.session ENABLE ROW LEVEL SECURITY;
CREATE POLICY read ON steno.session FOR SELECT TO steno_member
    USING (steno.may_see(owner, team, visibility, (SELECT steno.own_team())));
CREATE POLICY add ON steno.session FOR INSERT TO steno_member WITH CHECK (
    owner = session_user AND team = (SELECT steno.own_team()) AND NOT steno.is_forgotten(agent, id));
CREATE POLICY change ON steno.session FOR UPDATE TO steno_member
    USING (owner = session_user AND team = (SELECT steno.own_team()))
    WITH CHECK (owner = session_user AND team = (SELECT steno.own_team())
        AND NOT steno.is_forgotten(agent, id));

ALTER TABLE steno.frame ENABLE ROW LEVEL SECURITY;
CREATE POLICY read ON steno.frame FOR SELECT TO steno_member
    USING (EXISTS (SELECT FROM steno.session s WHERE s.key = session));
CREATE POLICY add ON steno.frame FOR INSERT TO steno_member WITH CHECK (steno.is_own(session));

ALTER TABLE steno.entry ENABLE ROW LEVEL SECURITY;
CREATE POLICY add ON steno.entry FOR INSERT TO steno_member WITH CHECK (steno.is_own(session));

ALTER TABLE steno.usage ENABLE ROW LEVEL SECURITY;
CREATE POLICY read ON steno.usage FOR SELECT TO steno_member USING (steno.is_own(session));
CREATE POLICY add ON steno.usage FOR INSERT TO steno_member WITH CHECK (steno.is_own(session));
CREATE POLICY change ON steno.usage FOR UPDATE TO steno_member
    USING (steno.is_own(session)) WITH CHECK (steno.is_own(session));

ALTER TABLE steno.forgotten ENABLE ROW LEVEL SECURITY;
CREATE POLICY read ON steno.forgotten FOR SELECT TO steno_member
    USING (team = (SELECT steno.own_team()));

GRANT SELECT ON steno.meta, steno.member, steno.forgotten TO steno_member;
GRANT SELECT ON steno.session, steno.frame, steno.usage TO steno_member;
GRANT INSERT (team, owner, agent, id, visibility) ON steno.session TO steno_member;
GRANT UPDATE (visibility, project, title, branch, thread, models, started, ended, entries, cost, tokens,
    manifest, revision, taken, digest) ON steno.session TO steno_member;
GRANT INSERT ON steno.frame, steno.entry, steno.usage TO steno_member;
GRANT UPDATE ON steno.usage TO steno_member;

-- Removes the entries and usage of an own session, before they are written anew.
CREATE FUNCTION steno.clear_rows(wanted bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ BEGIN
        IF NOT steno.is_own(wanted) THEN RAISE EXCEPTION 'not an own session'; END IF;
        DELETE FROM steno.entry WHERE session = wanted;
        DELETE FROM steno.usage WHERE session = wanted;
        UPDATE steno.session SET taken = 0, digest = NULL WHERE key = wanted;
    END $$;

-- Removes all content of an own session, before it is pushed again without removed parts.
CREATE FUNCTION steno.clear_session(wanted_agent text, wanted_id text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ BEGIN
        IF steno.own_team() IS NULL THEN RAISE EXCEPTION 'not a member'; END IF;
        DELETE FROM steno.session
            WHERE owner = session_user AND agent = wanted_agent AND id = wanted_id;
    END $$;

-- Forgets an own session: it is removed, and never accepted again.
CREATE FUNCTION steno.forget(wanted_agent text, wanted_id text, tombstone text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ BEGIN
        IF steno.own_team() IS NULL THEN RAISE EXCEPTION 'not a member'; END IF;
        INSERT INTO steno.forgotten
            VALUES (steno.own_team(), session_user, wanted_agent, wanted_id, tombstone)
            ON CONFLICT DO NOTHING;
        DELETE FROM steno.session
            WHERE owner = session_user AND agent = wanted_agent AND id = wanted_id;
    END $$;

-- Finds entries, newest first. `conditions` are checked for each entry that the query matches: lists of groups, of which
-- each must match, and exclusions. `filter` has the names of EntryFilter. The rule of may_see is written out, because a call
-- for each row takes longer.
CREATE FUNCTION steno.search(query tsquery, conditions jsonb, filter jsonb, before bigint, most bigint)
    RETURNS TABLE (owner name, agent text, id text, project text, title text, number bigint, at bigint,
        role text, kind text, tool text, model text, source text, text_hash bytea, body text)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
    DECLARE
        asking text := steno.own_team();
        checks text := '';
        grp jsonb;
        term jsonb;
        alternatives text[];
        -- One term as a condition. Its values are quoted, so they are data whatever they contain.
        condition text;
    BEGIN
        IF asking IS NULL THEN RETURN; END IF;
        FOR grp IN SELECT * FROM jsonb_array_elements(conditions) LOOP
            alternatives := '{}';
            FOR term IN SELECT * FROM jsonb_array_elements(grp->'any') LOOP
                condition := CASE term->>'in'
                    WHEN 'words' THEN format('e.words @@ %L::tsquery', term->>'query')
                    WHEN 'folded' THEN format('strpos(e.folded, %L) > 0', term->>'text')
                    WHEN 'parts' THEN format('strpos(e.parts, %L) > 0', term->>'text')
                    ELSE 'false' END;
                alternatives := alternatives || condition;
            END LOOP;
            checks := checks || format(' AND %s (%s)',
                CASE WHEN grp->>'not' = 'true' THEN 'NOT' ELSE '' END,
                array_to_string(alternatives, ' OR '));
        END LOOP;
        IF filter ? 'agent' THEN checks := checks || format(' AND s.agent = %L', filter->>'agent'); END IF;
        IF filter ? 'session' THEN checks := checks || format(' AND s.id = %L', filter->>'session'); END IF;
        IF filter ? 'thread' THEN checks := checks || format(' AND s.thread = %L', filter->>'thread'); END IF;
        IF filter ? 'owner' THEN checks := checks || format(' AND s.owner = %L', filter->>'owner'); END IF;
        IF filter ? 'project' THEN
            checks := checks || format(' AND (s.project = %1$L OR starts_with(s.project, %1$L || ''/'')
                OR right(s.project, length(%1$L) + 1) = ''/'' || %1$L)', filter->>'project');
        END IF;
        IF filter ? 'role' THEN checks := checks || format(' AND e.role = %L', filter->>'role'); END IF;
        IF filter ? 'tool' THEN
            checks := checks || format(' AND lower(e.tool) = lower(%L)', filter->>'tool');
        END IF;
        IF filter ? 'model' THEN
            checks := checks || format(' AND strpos(lower(e.model), lower(%L)) > 0', filter->>'model');
        END IF;
        IF filter ? 'since' THEN
            checks := checks || format(' AND e.at >= %s', (filter->>'since')::bigint);
        END IF;
        IF filter ? 'until' THEN
            checks := checks || format(' AND e.at < %s', (filter->>'until')::bigint);
        END IF;
        IF filter->>'errors' = 'true' THEN checks := checks || ' AND e.failed'; END IF;
        IF before IS NOT NULL THEN checks := checks || format(' AND e.at <= %s', before); END IF;
        RETURN QUERY EXECUTE format(
            'SELECT s.owner, s.agent, s.id, s.project, s.title, e.number, e.at, e.role, e.kind, e.tool,
                e.model, e.source, e.text_hash, e.body
             FROM steno.entry e JOIN steno.session s ON s.key = e.session
             WHERE e.words @@ $1 AND (s.owner = session_user OR s.visibility = ''everyone''
                OR (s.visibility = ''team'' AND s.team = $2)) %s
             ORDER BY e.at DESC, s.key DESC, e.number DESC LIMIT $3', checks)
            USING query, asking, most;
    END $$;

-- What the visible sessions cost: each API message once, with the largest number of each kind that any of them states.
CREATE FUNCTION steno.charges() RETURNS TABLE (session bigint, at bigint, model text, band bigint,
        input bigint, cache_read bigint, cache_write bigint, cache_write_5m bigint, cache_write_1h bigint,
        output bigint, reasoning bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$
        SELECT (array_agg(u.session ORDER BY s.started NULLS LAST, u.session))[1],
            (array_agg(u.at ORDER BY s.started NULLS LAST, u.session))[1],
            (array_agg(u.model ORDER BY u.model IS NULL, s.started NULLS LAST, u.session))[1],
            max(u.band), max(u.input), max(u.cache_read), max(u.cache_write), max(u.cache_write_5m),
            max(u.cache_write_1h), max(u.output), max(u.reasoning)
        FROM steno.usage u JOIN steno.session s ON s.key = u.session
        WHERE steno.may_see(s.owner, s.team, s.visibility, steno.own_team())
        GROUP BY u.key
    $$;

-- Adds a role to a team, or moves it there. Only the owner of the database may.
CREATE FUNCTION steno.add_member(role name, team text) RETURNS void
    LANGUAGE sql SET search_path = pg_catalog, pg_temp
    AS $$
        INSERT INTO steno.member VALUES (role, team)
            ON CONFLICT (role) DO UPDATE SET team = excluded.team
    $$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA steno FROM PUBLIC;
GRANT EXECUTE ON FUNCTION steno.own_team(), steno.may_see(name, text, text, text),
    steno.is_forgotten(text, text), steno.is_own(bigint), steno.clear_rows(bigint),
    steno.clear_session(text, text), steno.forget(text, text, text),
    steno.search(tsquery, jsonb, jsonb, bigint, bigint), steno.charges() TO steno_member;
