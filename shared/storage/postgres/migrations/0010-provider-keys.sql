-- An account's own keys for model providers, sealed: they pay for its model calls.
create table provider_keys (
  account    uuid        not null references accounts (id),
  provider   text        not null,
  sealed     text        not null,
  masked     text        not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (account, provider)
);
