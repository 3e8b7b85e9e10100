-- The depth of each queue every five minutes, for two days.
create table queue_samples (
  at             timestamptz not null,
  queue          text        not null,
  -- Due or for later, held and retried ones included.
  waiting        integer     not null,
  active         integer     not null,
  dead           integer     not null,
  -- Since the oldest job that is due could have begun; null: none is due.
  oldest_seconds integer,
  primary key (at, queue)
);
