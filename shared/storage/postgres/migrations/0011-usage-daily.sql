-- Usage of whole days, rolled up so that a year of it is a few hundred rows.
create table usage_daily (
  key_hash      bytea   not null,
  -- UTC.
  day           date    not null,
  -- Provider-prefixed; '' where no request named one.
  model         text    not null,
  requests      bigint  not null,
  input_tokens  bigint  not null,
  output_tokens bigint  not null,
  memory_tokens bigint  not null,
  primary key (key_hash, day, model)
);

-- Days before this one are rolled up; later ones are summed from their events.
create table usage_rolled (
  one    boolean primary key default true check (one),
  before date    not null
);

insert into usage_rolled (before) values ((now() at time zone 'utc')::date);

-- Rolls up a day at a time.
create index usage_events_by_time on usage_events (at);
