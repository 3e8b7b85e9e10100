-- Who pays. One account per email; an admin credential of that email acts for it.
create table accounts (
  id             uuid        primary key,
  email          text        not null unique check (email = lower(email)),

  -- A card on file, by the name the operator's billing gives it; null means none.
  payment_method text,
  -- Tokens left; null means unlimited.
  balance        bigint,
  created_at     timestamptz not null default now()
);

-- One memory. A key points to it, so a rotated key keeps what was remembered.
create table vaults (
  id               uuid        primary key,
  account          uuid        not null references accounts (id),

  -- Raised when everything is deleted: documents of an earlier epoch no longer exist.
  epoch            integer     not null default 1,
  -- Raised by every change that can be read: images held at an older revision refresh.
  revision         bigint      not null default 0,
  -- Accepted and not yet stored, for fairness between tenants: the more waits, the lower the priority.
  pending          integer     not null default 0,

  -- What consolidation has not covered yet, kept here so that reading the debt costs nothing.
  raw_units        integer     not null default 0,
  raw_tokens       bigint      not null default 0,
  tier2_count      integer     not null default 0,
  tier2_importance integer     not null default 0,
  tier2_tokens     bigint      not null default 0,

  created_at       timestamptz not null default now()
);

create index vaults_of_account on vaults (account);
