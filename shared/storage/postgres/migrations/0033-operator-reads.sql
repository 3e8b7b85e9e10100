-- Usage of whole days per account, for the operator: usage_daily is per key, and an account may have
-- a hundred thousand of them.
create table usage_accounts (
  account       uuid    not null references accounts (id) on delete cascade,
  -- UTC.
  day           date    not null,
  requests      bigint  not null,
  input_tokens  bigint  not null,
  output_tokens bigint  not null,
  memory_tokens bigint  not null,
  primary key (account, day)
);

-- Sums the days of all accounts.
create index usage_accounts_by_day on usage_accounts (day);

-- Days before this one are in it; later ones are summed from their events.
create table usage_accounts_rolled (
  one    boolean primary key default true check (one),
  before date    not null
);

insert into usage_accounts
select account, (at at time zone 'utc')::date, count(*), sum(input_tokens), sum(output_tokens),
       sum(memory_tokens)
from usage_events
where at >= now() - interval '400 days'
  and at < (now() at time zone 'utc')::date::timestamp at time zone 'utc'
group by 1, 2;

insert into usage_accounts_rolled (before) values ((now() at time zone 'utc')::date);

-- What has failed, of all accounts, newest first.
create index operations_failed on operations (id desc) where state = 'failed';
