-- An outbox in PostgreSQL, in the words of the reference relay: PENDING, DELIVERING, DELIVERED,
-- DEAD; locked_at, locked_by, delivered_at. The table itself refuses what must not be.

drop schema if exists outbox cascade;
create schema outbox;

create table outbox.events (
    position bigint generated always as identity unique,
    id text primary key,
    event_type text not null,
    payload bytea not null,
    headers jsonb,
    metadata jsonb,
    ordering_key text,
    partition_key text,
    created_at timestamptz not null,
    status text not null default 'PENDING',
    lifecycle integer not null default 0,
    attempts integer not null default 0,
    failures integer not null default 0, -- answers failed or none, within the lifecycle
    crashes integer not null default 0, -- leases that ran out while it was alone
    last_error text,
    available_at timestamptz,
    ages_from timestamptz not null,
    locked_at timestamptz,
    locked_by text,
    locked_until timestamptz,
    lock_id uuid,
    lock_size integer,
    delivered_at timestamptz,
    killed boolean not null default false,
    check (status in ('PENDING', 'DELIVERING', 'DELIVERED', 'DEAD')),
    check ((status = 'DELIVERING') = (locked_at is not null)),
    check ((status = 'DELIVERING') = (locked_by is not null)),
    check ((status = 'DELIVERING') = (lock_id is not null)),
    check ((status = 'DELIVERED') = (delivered_at is not null))
);

create index events_open on outbox.events (position) where status in ('PENDING', 'DELIVERING');
create index events_open_by_key on outbox.events (ordering_key, position)
where status in ('PENDING', 'DELIVERING');

create table outbox.transitions (
    number bigint generated always as identity primary key,
    id text not null references outbox.events (id),
    from_status text not null,
    to_status text not null
);

create function outbox.check_event() returns trigger language plpgsql as $$
begin
    if (new.id, new.event_type, new.payload, new.headers, new.metadata, new.ordering_key, new.partition_key,
        new.created_at)
        is distinct from (old.id, old.event_type, old.payload, old.headers, old.metadata, old.ordering_key,
        old.partition_key, old.created_at)
    then
        raise exception 'outbox: the content of % must not change', old.id;
    end if;
    if new.status <> old.status then
        if (old.status, new.status) not in (
            ('PENDING', 'DELIVERING'), ('DELIVERING', 'DELIVERED'), ('DELIVERING', 'PENDING'),
            ('DELIVERING', 'DEAD'), ('DELIVERED', 'PENDING'), ('DEAD', 'PENDING')
        ) then
            raise exception 'outbox: % must not go from % to %', old.id, old.status, new.status;
        end if;
        insert into outbox.transitions (id, from_status, to_status) values (old.id, old.status, new.status);
    end if;
    return new;
end $$;

create trigger check_event before update on outbox.events
for each row execute function outbox.check_event();

-- What waits and is due, unless an earlier event of its key is not yet over and cannot go itself.
create function outbox.eligible(at timestamptz) returns table (id text, "position" bigint) language sql stable as $$
    select e.id, e.position
    from outbox.events as e
    where
        e.status = 'PENDING'
        and not e.killed
        and coalesce(e.available_at <= at, true)
        and not exists (
            select 1
            from outbox.events as earlier
            where
                earlier.ordering_key = e.ordering_key
                and earlier.position < e.position
                and (
                    earlier.status = 'DELIVERING'
                    or (earlier.status = 'PENDING' and not earlier.killed and earlier.available_at > at)
                )
        )
    order by e.position
$$;
