-- The schema of a bucket's people and keys, version 1. `steno remote init` runs it in one transaction, as the owner of the
-- database. Members connect with roles of their own, which are members of the role steno_member.
--
-- Whoever asks is session_user: functions below run with the rights of their owner, where current_user is the owner.
CREATE SCHEMA steno_keys;
REVOKE ALL ON SCHEMA steno_keys FROM PUBLIC;
ALTER DEFAULT PRIVILEGES IN SCHEMA steno_keys REVOKE ALL ON FUNCTIONS FROM PUBLIC;
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'steno_member') THEN
        CREATE ROLE steno_member NOLOGIN;
    END IF;
END $$;
GRANT USAGE ON SCHEMA steno_keys TO steno_member;

-- The version of the schema, and the id of the bucket.
CREATE TABLE steno_keys.meta (name text PRIMARY KEY, value text NOT NULL);

-- Who belongs to which team. A role is in one team.
CREATE TABLE steno_keys.member (role name PRIMARY KEY, team text NOT NULL);

-- The key that encrypts all pieces of a session in the bucket.
CREATE TABLE steno_keys.session_key (
    team text NOT NULL,
    owner name NOT NULL,
    agent text NOT NULL,
    id text NOT NULL,
    visibility text NOT NULL CHECK (visibility IN ('private', 'team', 'everyone')),
    key_id text NOT NULL,
    key bytea NOT NULL CHECK (length(key) = 32),
    PRIMARY KEY (owner, agent, id)
);

-- What was forgotten. A session in here never gets a key again.
CREATE TABLE steno_keys.forgotten (
    team text NOT NULL,
    owner name NOT NULL,
    agent text NOT NULL,
    id text NOT NULL,
    tombstone text NOT NULL,
    PRIMARY KEY (owner, agent, id)
);

-- The team of whoever asks; NULL for strangers.
CREATE FUNCTION steno_keys.own_team() RETURNS text LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    AS $$ SELECT team FROM steno_keys.member WHERE role = session_user $$;

-- Who may see a session.
CREATE FUNCTION steno_keys.may_see(owner name, team text, visibility text, asking text) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
    AS $$ SELECT asking IS NOT NULL AND (owner = session_user OR visibility = 'everyone'
        OR (visibility = 'team' AND team = asking)) $$;

ALTER TABLE steno_keys.meta ENABLE ROW LEVEL SECURITY;
CREATE POLICY read ON steno_keys.meta FOR SELECT TO steno_member USING (true);

ALTER TABLE steno_keys.member ENABLE ROW LEVEL SECURITY;
CREATE POLICY read ON steno_keys.member FOR SELECT TO steno_member
    USING (team = (SELECT steno_keys.own_team()));

ALTER TABLE steno_keys.session_key ENABLE ROW LEVEL SECURITY;
CREATE POLICY read ON steno_keys.session_key FOR SELECT TO steno_member
    USING (steno_keys.may_see(owner, team, visibility, (SELECT steno_keys.own_team())));

ALTER TABLE steno_keys.forgotten ENABLE ROW LEVEL SECURITY;
CREATE POLICY read ON steno_keys.forgotten FOR SELECT TO steno_member
    USING (team = (SELECT steno_keys.own_team()));

GRANT SELECT ON steno_keys.meta, steno_keys.member, steno_keys.session_key, steno_keys.forgotten
    TO steno_member;

-- Waits for whoever changes the same own session, until the end of the transaction.
CREATE FUNCTION steno_keys.lock_session(wanted_agent text, wanted_id text) RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
    AS $$ BEGIN
        IF steno_keys.own_team() IS NULL THEN RAISE EXCEPTION 'not a member'; END IF;
        PERFORM pg_advisory_xact_lock(
            hashtextextended(session_user || '/' || wanted_agent || '/' || wanted_id, 0));
    END $$;

-- Gives an own session a key if it has none, and states who may see it. Returns nothing if it was forgotten.
CREATE FUNCTION steno_keys.create_key(wanted_agent text, wanted_id text, wanted_visibility text,
        new_id text, new_key bytea) RETURNS TABLE (key_id text, key bytea)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ BEGIN
        PERFORM steno_keys.lock_session(wanted_agent, wanted_id);
        IF EXISTS (SELECT FROM steno_keys.forgotten f WHERE f.owner = session_user
                AND f.agent = wanted_agent AND f.id = wanted_id) THEN
            RETURN;
        END IF;
        INSERT INTO steno_keys.session_key AS k (team, owner, agent, id, visibility, key_id, key)
            VALUES (steno_keys.own_team(), session_user, wanted_agent, wanted_id, wanted_visibility,
                new_id, new_key)
            ON CONFLICT (owner, agent, id) DO UPDATE SET visibility = excluded.visibility
            WHERE k.visibility <> excluded.visibility;
        RETURN QUERY SELECT k.key_id, k.key FROM steno_keys.session_key k
            WHERE k.owner = session_user AND k.agent = wanted_agent AND k.id = wanted_id;
    END $$;

-- Gives an own session another key, before it is pushed again without removed parts.
CREATE FUNCTION steno_keys.replace_key(wanted_agent text, wanted_id text, new_id text, new_key bytea)
    RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ BEGIN
        PERFORM steno_keys.lock_session(wanted_agent, wanted_id);
        UPDATE steno_keys.session_key SET key_id = new_id, key = new_key
            WHERE owner = session_user AND agent = wanted_agent AND id = wanted_id;
    END $$;

-- Forgets an own session: its key is removed, and it never gets another.
CREATE FUNCTION steno_keys.forget(wanted_agent text, wanted_id text, tombstone text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    AS $$ BEGIN
        PERFORM steno_keys.lock_session(wanted_agent, wanted_id);
        INSERT INTO steno_keys.forgotten
            VALUES (steno_keys.own_team(), session_user, wanted_agent, wanted_id, tombstone)
            ON CONFLICT DO NOTHING;
        DELETE FROM steno_keys.session_key
            WHERE owner = session_user AND agent = wanted_agent AND id = wanted_id;
    END $$;

-- Adds a role to a team, or moves it there. Only the owner of the database may.
CREATE FUNCTION steno_keys.add_member(role name, team text) RETURNS void
    LANGUAGE sql SET search_path = pg_catalog, pg_temp
    AS $$
        INSERT INTO steno_keys.member VALUES (role, team)
            ON CONFLICT (role) DO UPDATE SET team = excluded.team
    $$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA steno_keys FROM PUBLIC;
GRANT EXECUTE ON FUNCTION steno_keys.own_team(), steno_keys.may_see(name, text, text, text),
    steno_keys.create_key(text, text, text, text, bytea),
    steno_keys.replace_key(text, text, text, bytea), steno_keys.forget(text, text, text)
    TO steno_member;
