-- Keys with fewer rights than their vault gives, limits of use per day, and how many users an account may have.

alter table memory_keys
  -- `memory`: opens its vault and does nothing for the account. `users`: opens the vaults of the account's
  -- users alone, by X-Memory-User.
  add column rights         text not null default 'all' check (rights in ('all', 'memory', 'users')),
  -- Requests, and tokens of model calls, in 24 hours; null: those that the account sets for its users, if any.
  add column daily_requests integer check (daily_requests > 0),
  add column daily_tokens   bigint  check (daily_tokens > 0);

alter table accounts
  -- Users that the account may have; null: USERS_MAX of the environment.
  add column users_max           integer check (users_max >= 0),
  -- Limits of each user whose key has none of its own; null: none.
  add column user_daily_requests integer check (user_daily_requests > 0),
  add column user_daily_tokens   bigint  check (user_daily_tokens > 0);
