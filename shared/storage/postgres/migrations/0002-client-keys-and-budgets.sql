-- Keys with fewer rights than their vault gives, limits of use per day, and how many users an account may have.

alter table memory_keys
  -- `memory`: opens its vault and does nothing for the account. `users`: opens the vaults of the account's
  -- users alone, by X-Memory-User.
  add column rights         text not null default 'all' check (rights in ('all', 'memory', 'users')),
  -- Requests, and tokens of model calls, in 24 hours; null: those that the account sets for its users, if any.
  add column daily_requests integer check (daily_requests > 0),
  add column daily_tokens   bigint  check (daily_tokens > 0);

-- Use of these limits by all processes, for 24 hours from the first request. Logged, other than rate_points: a
-- restart of the server gives no budget back.
create table budget_points (
  -- `requests` or `tokens`, the seconds, and a hash of the key, in base64url.
  key    text    primary key,
  -- Used, or reserved by one of the processes.
  points bigint  not null default 0,
  -- When the 24 hours end, in epoch milliseconds.
  expire bigint
) with (fillfactor = 70);

alter table accounts
  -- Users that the account may have; null: USERS_MAX of the environment.
  add column users_max           integer check (users_max >= 0),
  -- Limits of each user whose key has none of its own; null: none.
  add column user_daily_requests integer check (user_daily_requests > 0),
  add column user_daily_tokens   bigint  check (user_daily_tokens > 0);
