-- One table, as relays on PostgreSQL have it. Whoever writes gives the shard of the key: a process
-- works on one, so that the events of a key leave in order although there are several processes.

drop table if exists outbox;

create table outbox (
    position bigint generated always as identity primary key,
    event_id text not null unique,
    event_type text not null,
    ordering_key text,
    shard integer not null,
    headers jsonb not null,
    payload bytea not null,
    created_at timestamptz not null default now(),
    status text not null default 'PENDING' check (status in ('PENDING', 'DELIVERING', 'DELIVERED', 'DEAD')),
    attempts integer not null default 0,
    available_at timestamptz,
    locked_by text,
    locked_until timestamptz,
    delivered_at timestamptz,
    last_error text
);

create index outbox_pending on outbox (shard, position) where status = 'PENDING';
create index outbox_delivering on outbox (locked_until) where status = 'DELIVERING';
