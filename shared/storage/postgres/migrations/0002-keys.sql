-- What opens a vault. Raw keys are not here: a key is found by its HMAC.
create table memory_keys (
  hash       bytea       primary key check (octet_length(hash) = 32),
  vault      uuid        not null references vaults (id),
  account    uuid        not null references accounts (id),
  kind       text        not null check (kind in ('vault', 'member')),
  name       text        not null,
  -- First and last characters, for listings.
  masked     text        not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  revoked_at timestamptz
);

create index memory_keys_of_vault on memory_keys (vault);
create index memory_keys_of_account on memory_keys (account);

-- What lets an admin in: random, hashed, expiring, revocable, and somebody's.
create table admin_keys (
  hash       bytea       primary key check (octet_length(hash) = 32),
  email      text        not null check (email = lower(email)),
  masked     text        not null,
  -- The email of the admin who issued it, or `bootstrap`.
  issued_by  text        not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  revoked_at timestamptz
);

create index admin_keys_of_email on admin_keys (email);
