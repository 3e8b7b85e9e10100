-- Applications: clients of OAuth that a person has let into one vault at /mcp. A row goes with the key that let
-- it in, and its tokens go with the row.
create table applications (
  -- Also the subject of its tokens.
  id            uuid        primary key,
  account       uuid        not null references accounts (id) on delete cascade,
  -- The vault that it reads and writes.
  vault         uuid        not null references vaults (id) on delete cascade,
  -- The key by which it acts.
  key_hash      bytea       not null references memory_keys (hash) on delete cascade,
  -- The user of the account whose vault it is, where the key is an owner's; null: the vault of the key.
  external_id   text,
  -- An https:// address is that of the client's metadata document, and so proves whose client it is.
  client_id     text        not null,
  -- Id of the record of a registered client.
  client        bytea       not null,
  -- As the client calls itself; anyone can register under any name.
  client_name   text        not null,
  -- The host, or the scheme of an app, to which the person was sent back.
  redirect_host text        not null,
  scopes        text[]      not null check (scopes <@ '{read,write,delete}' and cardinality(scopes) > 0),
  created_at    timestamptz not null default now(),
  -- To the minute.
  last_used_at  timestamptz
);
create index applications_of_vault on applications (vault);
create index applications_of_account on applications (account);
create index applications_of_key on applications (key_hash);
create index applications_of_client on applications (client);

-- What the authorization server keeps: registered clients, sign-ins under way, grants, codes and tokens. Ids are
-- secrets and stand here as an HMAC.
create table oauth_records (
  -- As oidc-provider names the kind: Client, Interaction, Grant, AuthorizationCode, AccessToken, RefreshToken.
  model       text        not null,
  id          bytea       not null check (octet_length(id) = 32),
  -- Of a grant and what was issued under it.
  application uuid        references applications (id) on delete cascade,
  grant_id    bytea,
  -- Sealed to model and id; without the id.
  payload     text        not null,
  -- When a code or refresh token was used: a second use revokes the grant.
  consumed_at timestamptz,
  -- infinity: a registered client that some application uses.
  expires_at  timestamptz not null,
  primary key (model, id)
);
create index oauth_records_of_grant on oauth_records (grant_id) where grant_id is not null;
create index oauth_records_of_application on oauth_records (application) where application is not null;
create index oauth_records_by_end on oauth_records (expires_at);
