-- The whole schema of the first release, grouped by subject. After that release this file stays as it is,
-- and every change is a further numbered file.

-- ---- Accounts ------------------------------------------------------------------------------------------

-- Accounts pay for usage. There is one per email; admin keys of that email act for it.
create table accounts (
  id                  uuid        primary key,
  email               text        not null unique check (email = lower(email)),
  -- A payment method on file, by the name that the operator's billing gives it; null: none.
  payment_method      text,
  -- Tokens left; null: unlimited.
  balance             bigint,
  -- Private data in what is to be stored:
  -- {"mode": "off" | "redact" | "block", "kinds": ["secret", …]}.
  redaction           jsonb       check (redaction ? 'mode' and redaction ? 'kinds'),
  -- Days that memories are kept after they are stored; null: without end.
  retention_days      integer     check (retention_days between 1 and 36500),
  -- Whether X-Memory-User with an unknown id creates the user.
  create_users        boolean     not null default true,
  -- Whether model calls are stored as they were sent, with what programs have written into them.
  verbatim            boolean     not null default false,
  -- Whether an answer is stored only if the input that it answers is stored.
  response_with_input boolean     not null default false,
  traces              text        not null default 'texts' check (traces in ('off', 'ids', 'texts')),
  trace_days          smallint    not null default 7 check (trace_days between 1 and 365),
  -- Set when existing traces must expire earlier than they were written to; null once all do.
  traces_shortened_at timestamptz,
  created_at          timestamptz not null default now()
);
create index accounts_with_shortened_traces on accounts (traces_shortened_at)
  where traces_shortened_at is not null;

-- Credentials of admins: random, stored as a hash, each with an email, an end and an id for listings.
create table admin_keys (
  id         uuid        not null default gen_random_uuid(),
  hash       bytea       primary key check (octet_length(hash) = 32),
  email      text        not null check (email = lower(email)),
  masked     text        not null,
  -- The email of the admin who issued it, or `bootstrap`.
  issued_by  text        not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  revoked_at timestamptz
);
create unique index admin_keys_by_id on admin_keys (id);
create index admin_keys_of_email on admin_keys (email);

-- The keys of an account for model providers, sealed. They pay for the model calls of the account.
create table provider_keys (
  account    uuid        not null references accounts (id),
  provider   text        not null,
  sealed     text        not null,
  masked     text        not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (account, provider)
);

-- Erasures of accounts. After an erasure there are left this row, the account's id and the ids of its
-- empty vaults; the ids keep late work out and are deleted once no job can be old enough to write there.
create table account_erasures (
  -- The operation's UUIDv7, and the id of the receipt.
  id           uuid        primary key,
  account      uuid        not null unique,
  -- SHA-256 of id and email: proves that they belong together.
  proof        text        not null,
  vaults       uuid[]      not null,
  -- What was deleted at the request: {"keys": 3, …}.
  counts       jsonb       not null,
  requested_at timestamptz not null default now(),
  finished_at  timestamptz,
  -- Signed.
  receipt      text,
  -- When the ids were deleted.
  purged_at    timestamptz
);
create index account_erasures_unpurged on account_erasures (finished_at) where purged_at is null;

-- Settings that hold for all processes on this database, by name.
create table settings (
  name   text        primary key,
  value  text        not null,
  set_at timestamptz not null default now()
);

-- ---- Vaults --------------------------------------------------------------------------------------------

-- A vault is one memory. Keys refer to it, so a rotated key keeps the memories.
create table vaults (
  id               uuid        primary key,
  account          uuid        not null references accounts (id),
  -- Created with its account by the operator: its keys speak for the account. Keys created over HTTP are
  -- for one user each and open their own vault alone.
  owner            boolean     not null default false,
  -- The id by which a product names the user of the vault. Removed when the vault is erased.
  external_id      text        check (length(external_id) between 1 and 256),
  -- Raised when everything is deleted: documents of an earlier epoch no longer exist.
  epoch            integer     not null default 1,
  -- Raised by every change that can be read: an index held at an older revision is refreshed.
  revision         bigint      not null default 0,
  -- Accepted and not yet stored, for fairness between tenants: the more waits, the lower the priority.
  pending          integer     not null default 0,
  -- The embedding model whose space the vault is in, used by requests that name no model. Null only for
  -- vaults created before any process has started.
  embeddings       text,
  -- When it was moved to that space from another one, and when to look next for memories that have been
  -- stored in the former space since.
  moved_at         timestamptz,
  look_at          timestamptz,
  -- No memory of the vault expires before this time; null: none ever does. It may be too early, never too
  -- late.
  next_expiry      timestamptz,
  -- What consolidation has not covered yet, kept here so that it can be read without counting.
  raw_units        integer     not null default 0,
  raw_tokens       bigint      not null default 0,
  tier2_count      integer     not null default 0,
  tier2_importance integer     not null default 0,
  tier2_tokens     bigint      not null default 0,
  created_at       timestamptz not null default now()
);
create index vaults_of_account on vaults (account);
create unique index vaults_of_users on vaults (account, external_id) where external_id is not null;
create index vaults_look_at on vaults (look_at) where look_at is not null;
create index vaults_next_expiry on vaults (next_expiry) where next_expiry is not null;

-- A new vault is in the space of the model that is the default by then, whatever model the process that
-- creates it was started with.
create function stand_in_default_space() returns trigger language plpgsql as $$
begin
  new.embeddings := coalesce(
    new.embeddings,
    (select value from settings where name = 'embeddings')
  );
  return new;
end $$;

create trigger stand_in_default_space before insert on vaults for each row
  execute function stand_in_default_space();

-- Sessions in which something was stored, or that were cleared. A session without a row is at epoch 0.
create table sessions (
  vault     uuid        not null references vaults (id) on delete cascade,
  session   text        not null,
  -- Raised when the session is cleared.
  epoch     integer     not null default 0,
  -- When something was stored or changed in it; null from its clearing until the next time.
  stored_at timestamptz,
  primary key (vault, session)
);
create index sessions_stored on sessions (vault, stored_at desc, session desc)
  where stored_at is not null;

-- The log of what each revision of a vault changed: an index held in another process reads only that. Old
-- rows may be deleted at any time; an index older than the log is loaded again.
create table vault_changes (
  vault    uuid        not null references vaults (id) on delete cascade,
  revision bigint      not null,
  -- The session that changed; '' is the core vault.
  session  text        not null,
  stored   uuid[]      not null default '{}',
  removed  uuid[]      not null default '{}',
  -- The whole session was deleted.
  cleared  boolean     not null default false,
  at       timestamptz not null default now(),
  primary key (vault, revision, session)
);
create index vault_changes_by_age on vault_changes (at);

-- What was cleared. A job erases it, then it is swept again: work that was under way may still have
-- written there.
create table erasures (
  vault      uuid        not null references vaults (id) on delete cascade,
  -- The session that was cleared; '' is the whole vault.
  session    text        not null,
  -- Documents of this epoch, of the vault or of the session, and of earlier ones no longer exist.
  up_to      integer     not null,
  cleared_at timestamptz not null default now(),
  -- The next sweep, each twice as far from the clearing as the one before; infinity until it is erased.
  due_at     timestamptz not null,
  primary key (vault, session)
);
create index erasures_due on erasures (due_at);

-- Days on which a vault has written tombstones. Tombstones keep ids taken and are deleted once no job can
-- be old enough to store the memory again.
create table tombstone_days (
  day   date not null,
  vault uuid not null references vaults (id) on delete cascade,
  primary key (day, vault)
);

-- Memories with an expiry that are being written at this moment: a search for the earliest expiry of the
-- vault may not find them yet. A row is of no use once they are settled or no job can still write them.
create table announced_expiries (
  -- Of the work that writes them.
  id           uuid        primary key,
  vault        uuid        not null references vaults (id) on delete cascade,
  expires_at   timestamptz not null,
  announced_at timestamptz not null default clock_timestamp()
);
create index announced_expiries_of on announced_expiries (vault);

-- Leases: batches of memories given to one client for consolidation until it commits them or the lease
-- expires. Readers compare expires_at with the clock, so an expired lease needs no cleaning up.
create table leases (
  -- The id of the checkout; the commit names it.
  batch        uuid        primary key,
  vault        uuid        not null references vaults (id) on delete cascade,
  -- Of the vault at checkout; once the vault was cleared the batch does not exist either.
  epoch        integer     not null,
  -- Of the leased memories; their reflections are one above.
  tier         smallint    not null check (tier in (1, 2)),
  -- Embedding model of the vault space that they were taken from and that the reflections go to.
  model        text        not null,
  -- Oldest first.
  source_ids   uuid[]      not null check (cardinality(source_ids) > 0),
  -- First and last moment that the sources are about, epoch milliseconds.
  covers_from  bigint      not null,
  covers_to    bigint      not null,
  -- committing: the reflections are being stored, which cannot be taken back.
  state        text        not null default 'leased'
               check (state in ('leased', 'committing', 'committed')),
  expires_at   timestamptz not null,
  -- [{id, importance}] as first answered, so that a repeated commit gets the same answer.
  created      jsonb       check ((created is null) = (state = 'leased')),
  -- Sources that were still there to be marked.
  consolidated integer,
  committed_at timestamptz check ((committed_at is null) = (state <> 'committed'))
);
create index leases_open on leases (vault, tier) where state <> 'committed';
create index leases_of_vault on leases (vault);

-- What was measured of the embedding model of a vault space: how its cosines map to scores.
create table embedding_spaces (
  space       text        not null,
  -- Of the sentences that it was measured with.
  version     integer     not null,
  calibration jsonb       not null,
  measured_at timestamptz not null default now(),
  primary key (space, version)
);

-- ---- Operations ----------------------------------------------------------------------------------------

-- Queued work that was promised to a client. The id is also that of the job.
create table operations (
  id             uuid        primary key,
  account        uuid        not null references accounts (id),
  vault          uuid        not null references vaults (id),
  key_hash       bytea       not null,
  session        text,
  kind           text        not null,
  -- Of the vault when the work was accepted; a later epoch makes the work void.
  epoch          integer     not null,
  state          text        not null default 'accepted'
                 check (state in ('accepted', 'running', 'done', 'failed', 'cancelled')),
  -- A request waits for it: its end sends a notification.
  awaited        boolean     not null default false,
  progress_done  integer     not null default 0,
  progress_total integer     not null default 0,
  -- How it ended (shared/domain/operation-outcome.ts), and the HTTP status of that answer.
  outcome        jsonb,
  status         smallint,
  created_at     timestamptz not null default now(),
  finished_at    timestamptz
);
create index operations_of_account on operations (account, id desc);
create index operations_of_vault on operations (vault, id desc);
create index operations_unfinished on operations (created_at) where state in ('accepted', 'running');
create index operations_finished on operations (finished_at) where finished_at is not null;
create index operations_failed on operations (id desc) where state = 'failed';
-- The newest removal of expired memories in a vault.
create index operations_expiring on operations (vault, id) where kind = 'expire';

-- The first response to a request with an Idempotency-Key, per key and route, for a day.
create table idempotency (
  key_hash     bytea       not null,
  route        text        not null,
  idempotency  text        not null,
  -- SHA-256 of the request; the same Idempotency-Key with another request is refused.
  body_hash    bytea       not null,
  -- The operation id of this request, so that a second try after a crash does the same work.
  operation    uuid        not null,
  -- Null while the request runs; sealed, since a response may hold a raw key.
  answer       text,
  -- A request that has not answered by then has died with its process.
  locked_until timestamptz not null,
  created_at   timestamptz not null default now(),
  primary key (key_hash, route, idempotency)
);
create index idempotency_by_age on idempotency (created_at);
-- Responses to requests about an organization, whatever credential sent them: removed with the texts of a
-- memory that is deleted for good.
create index idempotency_of_organization on idempotency (split_part(route, '/', 4))
  where route like '% /v1/orgs/%/%';

-- Positions of sweeps that read a table page by page: where the last page ended.
create table sweep_positions (
  sweep text primary key,
  after uuid not null
);

-- Counters of the rate limits of keys and addresses. Unlogged: a window lasts a minute at most.
create unlogged table rate_points (
  -- The name of the window and a hash of the key or address.
  key    text    primary key,
  -- Used by all processes, or reserved by one of them.
  points integer not null default 0,
  -- When the window ends, in epoch milliseconds.
  expire bigint
  -- Leaves room on each page for the next version of a row, so that an update stays on its page.
) with (fillfactor = 70);

-- ---- Long operations: files, copies, re-embeddings, retentions -----------------------------------------

-- What an operation of many steps was asked to do, until it has ended. The steps of a file are stored while it
-- arrives; accepting it makes them the work of an operation.
create table long_operations (
  -- The operation; of a file an id of its own.
  id           uuid        primary key,
  -- Null while a file arrives: nothing of it is stored yet.
  operation    uuid        unique references operations (id) on delete cascade,
  kind         text        not null
               check (kind in ('upload', 'import', 'transfer', 'graft', 'reembed', 'retention')),
  -- The vault that is written to, and its epoch when the work was accepted: a later epoch makes it void.
  vault        uuid        not null references vaults (id) on delete cascade,
  epoch        integer,
  -- By kind; the types stand with the modules that do the work.
  request      jsonb       not null,
  -- SHA-256 of the request of a file: the same file sent again joins the work that is under way.
  request_hash bytea,
  created_at   timestamptz not null default now(),
  -- The operation was cancelled while it ran: steps that have not begun are not done.
  cancelled_at timestamptz
);
create index long_operations_of_vault on long_operations (vault);
-- Files whose process died while they arrived.
create index long_operations_staged on long_operations (created_at) where operation is null;

-- The work of one job, and then the counts of what was done. A step is settled once.
create table operation_steps (
  long_operation uuid    not null references long_operations (id) on delete cascade,
  -- The order of the steps.
  n              integer not null,
  -- What is to be done; null once it is done.
  input          json,
  -- The id of each memory, fixed before the first is written: a second run neither stores one twice nor
  -- restores one that was deleted in between. Null once the step is done.
  plan           json,
  -- Sessions that the lines of a file name.
  sessions       text[]  not null default '{}',
  settled        boolean not null default false,
  -- Sums by name, and the first errors: of a file from when it was staged.
  counts         jsonb   not null default '{}',
  errors         json    not null default '[]',
  primary key (long_operation, n)
);

-- ---- Model calls ---------------------------------------------------------------------------------------

-- Exchanges of model calls that are under way, with the text of the user. The process that serves the call
-- renews the row every half minute; a row that is two minutes old belongs to a process that died.
create table open_exchanges (
  -- The id of the exchange's operation.
  operation     uuid        primary key,
  account       uuid        not null references accounts (id),
  vault         uuid        not null references vaults (id) on delete cascade,
  key_hash      bytea       not null,
  session       text,
  -- When it was opened; later epochs make it void.
  epoch         integer     not null,
  session_epoch integer     not null,
  -- The embedding model it is to be stored with, and the provider-prefixed model that was called.
  embeddings    text        not null,
  model         text        not null,
  -- [{role, text, at, speaker}]: what is stored of the user, with or without an answer.
  user_turn     jsonb       not null,
  -- The digest of its turn (see recalled_turns), when the user's text is new in it.
  turn          bytea,
  -- The row holds a model's text beside its tool calls, stored only if the turn never ends; a further call
  -- of the turn removes it.
  step          boolean     not null default false,
  -- False: stored for its member alone and not shared with the organization.
  shares        boolean     not null default true,
  -- Fields that the call gives to what it stores.
  metadata      jsonb,
  -- When the memories are to expire, if the call sets that.
  expires_at    timestamptz,
  renewed_at    timestamptz not null default now()
);
create index open_exchanges_by_turn on open_exchanges (vault, turn) where turn is not null;

-- The memories that a model got when a turn began, so that all calls of the turn get the same block. Only
-- ids are stored, and the block is rebuilt from them. Unlogged: after a crash the turn is recalled again.
create unlogged table recalled_turns (
  vault      uuid        not null,
  -- SHA-256 of the session, the space and the conversation up to and including the turn.
  turn       bytea       not null,
  -- Null when memory could not be searched: then the whole turn goes on without.
  memories   uuid[],
  -- How the memories were shown: [{id, from?, to?, later?}], of those that were not shown whole or stand
  -- under an older line about the same subject. The same lines give the same bytes.
  lines      jsonb       not null default '[]',
  -- The time from which the ages of memories are counted, in epoch milliseconds.
  at         bigint      not null,
  -- How many parts of the message stand before the block.
  place      integer     not null,
  -- Of the block: a memory that was reworded gives other bytes.
  digest     bytea,
  -- The turn was last sent without a block that a request before had.
  is_partial boolean     not null default false,
  kept_at    timestamptz not null default now(),
  primary key (vault, turn)
);

-- Turns whose last call ended without an answer; what the user wrote is stored all the same. The same turn
-- sent again within minutes is not stored a second time.
create unlogged table unanswered_turns (
  vault         uuid        not null,
  turn          bytea       not null,
  -- When it was stored; later epochs no longer have it.
  epoch         integer     not null,
  session_epoch integer     not null,
  -- True: the turn was answered. Sent again as the last turn it is a new one; sent again before another
  -- turn it is the same and not stored twice.
  answered      boolean     not null default false,
  ended_at      timestamptz not null default now(),
  primary key (vault, turn)
);

-- Traces of model calls: ids of memories, positions and digests, no texts. The texts are read from the
-- vault with the trace, so what is deleted there does not appear.
create table call_traces (
  -- The operation of the call.
  id            uuid        primary key,
  vault         uuid        not null,
  epoch         integer     not null,
  -- The session that was searched; null: the core vault alone.
  session       text,
  session_epoch integer     not null,
  created_at    timestamptz not null default now(),
  expires_at    timestamptz not null,
  trace         jsonb       not null
);
create index call_traces_by_vault on call_traces (vault, id);
create index call_traces_by_expiry on call_traces (expires_at);

-- ---- Organizations -------------------------------------------------------------------------------------

-- An organization is a team that shares a memory. It belongs to an account, which pays for its members.
create table orgs (
  id                 uuid        primary key,
  account            uuid        not null references accounts (id),
  -- The shared memory: a vault that the keys of members open.
  vault              uuid        not null unique references vaults (id),
  name               text        not null,
  -- The provider and models that extract and classify.
  processor_provider text        not null,
  extract_model      text        not null,
  classify_model     text        not null,
  -- As that of an account; null: that of its account.
  redaction          jsonb       check (redaction ? 'mode' and redaction ? 'kinds'),
  -- The vault space in which every shared memory can be found; null until it was checked. The shared vault
  -- is re-embedded when this is not the space of the service's embedding model.
  space              text,
  -- Raised by every change to members, roles and tags.
  policy_version     bigint      not null default 1,
  created_at         timestamptz not null default now(),
  updated_at         timestamptz not null default now()
);
-- Names that look alike are the same name.
create unique index orgs_by_name on orgs (account, lower(normalize(name, NFKC)));

-- Members of organizations. Each has a private vault, which only their own keys open.
create table org_users (
  id             uuid        primary key,
  org            uuid        not null references orgs (id) on delete cascade,
  vault          uuid        not null unique references vaults (id),
  -- The organization's id of the member. An email is stored in lower case, and also as `email`.
  team_member_id text        not null,
  email          text        check (email = lower(email)),
  first_name     text,
  last_name      text,
  -- False: what the member writes is stored for the member alone.
  shares         boolean     not null default true,
  created_at     timestamptz not null default now(),
  unique (org, team_member_id),
  unique (org, email)
);

-- Roles: the tags whose shared memories their members may see.
create table org_roles (
  id           uuid        primary key,
  org          uuid        not null references orgs (id) on delete cascade,
  name         text        not null,
  -- Labels of tags; '*' is every tag, present and future.
  allowed_tags text[]      not null default '{}',
  created_at   timestamptz not null default now()
);
create unique index org_roles_by_name on org_roles (org, lower(normalize(name, NFKC)));

-- The roles of each member.
create table org_user_roles (
  org_user uuid    not null references org_users (id) on delete cascade,
  role     uuid    not null references org_roles (id) on delete cascade,
  -- In the order of the assignment.
  position integer not null,
  primary key (org_user, role)
);
create index org_user_roles_of_role on org_user_roles (role);

-- Tags: what the classifier asks about each memory.
create table org_tags (
  id         uuid        primary key,
  org        uuid        not null references orgs (id) on delete cascade,
  label      text        not null check (label <> '*'),
  question   text        not null,
  -- Memories that the tag fits, and similar memories that it does not fit.
  examples   text[]      not null default '{}',
  negatives  text[]      not null default '{}',
  -- Former labels that memories may still have until a job has relabelled them.
  former     text[]      not null default '{}',
  created_at timestamptz not null default now()
);
create unique index org_tags_by_label on org_tags (org, lower(normalize(label, NFKC)));

-- Applies a tag to the memories that an organization shares already, and how far that is.
create table org_tag_runs (
  -- The operation of the request, and the id of its job.
  id          uuid        primary key,
  org         uuid        not null references orgs (id) on delete cascade,
  tag         uuid        not null references org_tags (id) on delete cascade,
  created_by  text        not null,
  -- Memories without the tag when it began, and how many of them were examined.
  memories    integer     not null,
  examined    integer     not null default 0,
  -- Memories that got the tag, and those of them that a person has to review.
  tagged      integer     not null default 0,
  doubtful    integer     not null default 0,
  -- The last examined memory: its time in epoch milliseconds, and its id.
  after_at    float8,
  after_id    uuid,
  -- Why it waits; null while it does not.
  last_error  text,
  created_at  timestamptz not null default now(),
  finished_at timestamptz
);
-- One at a time for each tag.
create unique index org_tag_runs_open on org_tag_runs (tag) where finished_at is null;
create index org_tag_runs_of_tag on org_tag_runs (tag, created_at);

-- What an organization wants stored: its own instructions, with or without those of the service.
create table org_instructions (
  org        uuid        primary key references orgs (id) on delete cascade,
  default_on boolean     not null default true,
  custom     text        not null default '',
  updated_at timestamptz not null default now()
);

-- Rules of an organization. anti: never stored; exec: stored only as a short note.
create table org_rules (
  id       uuid    primary key,
  org      uuid    not null references orgs (id) on delete cascade,
  kind     text    not null check (kind in ('anti', 'exec')),
  position integer not null,
  match    text    not null,
  note     text    not null default ''
);
create index org_rules_of_org on org_rules (org, kind, position);

-- Reviewers decide about the review queue of one organization and can do nothing else. Their credentials
-- are apart from admin_keys, so no other request finds them.
create table org_reviewers (
  id         uuid        primary key,
  org        uuid        not null references orgs (id) on delete cascade,
  -- The name in the audit.
  email      text        not null check (email = lower(email)),
  hash       bytea       not null unique,
  masked     text        not null,
  created_by text        not null,
  created_at timestamptz not null default now(),
  unique (org, email)
);

-- Removals of roles and tags, by the operation of the request: a repeated request gets the same answer.
-- Kept as long as Idempotency-Keys.
create table policy_removals (
  operation  uuid        primary key,
  org        uuid        not null references orgs (id) on delete cascade,
  created_at timestamptz not null default now()
);
create index policy_removals_of_org on policy_removals (org);
create index policy_removals_by_age on policy_removals (created_at);

-- ---- Keys of vaults ------------------------------------------------------------------------------------

-- Memory Keys, found by their HMAC. `vault` keys are an account's; `member` keys open a member's private
-- vault and what the roles allow of the shared one, or without a member the shared one alone; `user` keys
-- open the private vault alone. Keys of organizations do not speak for the account, which pays for them.
create table memory_keys (
  hash         bytea       primary key check (octet_length(hash) = 32),
  -- In paths and listings.
  id           uuid        not null unique default gen_random_uuid(),
  vault        uuid        not null references vaults (id),
  account      uuid        not null references accounts (id),
  org          uuid        references orgs (id) on delete cascade,
  org_user     uuid        references org_users (id) on delete cascade,
  kind         text        not null constraint memory_keys_kind_check
               check (kind in ('vault', 'member', 'user') and (kind = 'vault') = (org is null)
                      and (kind <> 'user' or org_user is not null)),
  name         text        not null,
  -- First and last characters, for listings.
  masked       text        not null,
  -- The raw key of a member, for an admin to read again.
  sealed       text,
  -- False: what is written with this key is stored for the member alone.
  shares       boolean     not null default true,
  -- The key whose rate limits this one shares: the key of a user that created it or that it replaced, and
  -- so on to the first. Null: limits of its own.
  limited_as   bytea       check (octet_length(limited_as) = 32),
  created_at   timestamptz not null default now(),
  -- To the minute, and a few seconds late.
  last_used_at timestamptz,
  -- When another key replaced it: it works until the grace period ends, and no longer creates or ends keys.
  rotated_at   timestamptz,
  expires_at   timestamptz,
  revoked_at   timestamptz
);
create index memory_keys_of_vault on memory_keys (vault);
create index memory_keys_of_account on memory_keys (account);
create index memory_keys_of_org on memory_keys (org) where org is not null;
create index memory_keys_of_org_user on memory_keys (org_user) where org_user is not null;
create index memory_keys_listed on memory_keys (account, created_at desc, id desc) where kind = 'vault';
-- Events name keys in their masked form.
create index memory_keys_masked on memory_keys (account, masked) where kind = 'vault';

-- ---- Shared memory -------------------------------------------------------------------------------------

-- Changes of shared memories, written before the change is made: after a crash it is known what was
-- intended, by whom, and whether it was done. Kept for 30 days with both texts, so that it can be undone.
create table shared_writes (
  -- Derived from the operation and the memory; the document holds it once the change is done.
  id         uuid        primary key,
  org        uuid        not null references orgs (id) on delete cascade,
  -- The vault of the document, and its epoch.
  vault      uuid        not null,
  epoch      integer     not null,
  memory     uuid        not null,
  kind       text        not null
             check (kind in ('add', 'edit', 'delete', 'review', 'undo', 'restore', 'withdraw')),
  -- The admin's email, or the organization's id of the member.
  actor      text        not null,
  actions    text[]      not null,
  -- Text, tags and so on; null if there is no memory before or after it.
  before     jsonb,
  after      jsonb,
  state      text        not null default 'pending' check (state in ('pending', 'done')),
  created_at timestamptz not null default now(),
  -- When a pending one is checked.
  due_at     timestamptz not null default now() + interval '30 seconds'
);
create index shared_writes_pending on shared_writes (due_at) where state = 'pending';
create index shared_writes_of_memory on shared_writes (memory, created_at);
create index shared_writes_by_age on shared_writes (created_at);

-- How many shared memories have which tags: a caller may see some of these sets.
create table shared_tag_sets (
  vault        uuid    not null references vaults (id) on delete cascade,
  -- The tags in order, as a JSON array; of a set too long for an index key a digest, in the form of a set
  -- that no memory can have.
  tag_set      text    not null,
  -- The tags of such a long set.
  long_tag_set text,
  memories     integer not null,
  primary key (vault, tag_set)
);

-- What one request got of the shared memory and what was withheld from it, for the admin. The newest few
-- hundred of an organization are kept.
create table shared_retrievals (
  id           uuid        primary key,
  org          uuid        not null references orgs (id) on delete cascade,
  author       text        not null,
  request      text        not null check (request in ('search', 'prepare', 'date-search')),
  allowed_tags text[]      not null,
  wildcard     boolean     not null,
  permitted    integer     not null,
  dropped      integer     not null,
  -- Some of what was withheld: [{"id", "tags"}].
  sample       jsonb       not null,
  -- Ids, best first.
  returned     jsonb       not null default '[]',
  -- JSON of {"text", "limit"}, sealed, until a worker has searched for what was withheld, about a minute;
  -- null then, and where nothing was withheld or asked.
  question     text,
  -- What was withheld and is relevant to the question: [{"id", "tags"}], best first; null until known.
  denied       jsonb,
  created_at   timestamptz not null
);
create index shared_retrievals_of_org on shared_retrievals (org, created_at desc, id desc);
create index shared_retrievals_asked on shared_retrievals (created_at) where question is not null;

-- Statements: each fact of a member that was added to the shared memory, changed a memory or was in one
-- already. Members list theirs and withdraw them.
create table shared_statements (
  id           uuid        primary key,
  org          uuid        not null references orgs (id) on delete cascade,
  org_user     uuid        not null references org_users (id) on delete cascade,
  -- The organization's id of the member at that time.
  author       text        not null,
  -- Its turn, and its position in the passes of that turn.
  turn         uuid        not null,
  position     integer     not null,
  memory       uuid        not null,
  action       text        not null check (action in ('ADD', 'UPDATE', 'NONE')),
  -- The memory had a later text: nothing was changed.
  outdated     boolean     not null default false,
  text         text        not null,
  said_at      timestamptz not null,
  recorded_at  timestamptz not null default clock_timestamp(),
  -- When the memory was removed; null again once it is restored.
  removed_at   timestamptz,
  -- When the member withdrew it: no list has it from then on, and the memory is changed after that.
  withdrawn_at timestamptz,
  unique (turn, position)
);
create index shared_statements_of_user on shared_statements (org_user, said_at desc, id desc)
  where removed_at is null and withdrawn_at is null;
create index shared_statements_of_org on shared_statements (org, id)
  where removed_at is null and withdrawn_at is null;
create index shared_statements_of_memory on shared_statements (memory);
create index shared_statements_withdrawn on shared_statements (withdrawn_at)
  where withdrawn_at is not null;
create index shared_statements_removed on shared_statements (removed_at)
  where removed_at is not null;

-- ---- Team pipeline -------------------------------------------------------------------------------------

-- Turns of members on their way into the shared memory. A row holds no text of the turn itself, only what
-- each pass made of it: three lists of the same length, with the same fact at the same position.
create table org_turns (
  -- The operation that stored the exchange in the member's private vault.
  id          uuid        primary key,
  org         uuid        not null references orgs (id) on delete cascade,
  org_user    uuid        not null references org_users (id) on delete cascade,
  -- The member's key: the costs of the passes are billed to it.
  key_hash    bytea       not null,
  -- The organization's id of the member at that time.
  author      text        not null,
  -- By the member's own clock if the exchange has times.
  said_at     timestamptz not null,
  -- Characters of the exchange that are not examined: the middle of very long messages, and the beginning
  -- of an exchange of more than twenty turns.
  left_out    integer     not null default 0,
  -- What an anti-rule withheld from extraction: the whole turn, or the model's answer. Null: nothing.
  withheld    text        check (withheld in ('turn', 'answer')),
  -- Tags of the shared memories that the model had when it answered.
  inherited_tags text[]   not null default '{}',
  -- Turns of one member that go through the passes together: the turn whose jobs do the work. Null: the
  -- turn goes by itself.
  batch       uuid,
  -- It failed in a batch, or made one fail: its passes run by themselves.
  alone       boolean     not null default false,
  -- Null until the pass has run.
  pass1       jsonb,
  pass2       jsonb,
  pass3       jsonb,
  created_at  timestamptz not null default now(),
  -- When the decisions of the third pass had been applied.
  finished_at timestamptz
);
create index org_turns_of_org on org_turns (org, id desc);
create index org_turns_of_author on org_turns (org, author, id desc);
create index org_turns_of_user on org_turns (org_user);
create index org_turns_of_batch on org_turns (batch) where batch is not null;
create index org_turns_by_memory on org_turns using gin (pass3 jsonb_path_ops);
create index org_turns_old on org_turns (created_at);
create index org_turns_open on org_turns (org, id desc) where finished_at is null;
create index org_turns_waiting on org_turns (org_user) where finished_at is null;

-- Answers of models about a turn that is not finished, each written as it arrived: work that runs again
-- calls no model twice.
create table org_answers (
  turn     uuid  not null references org_turns (id) on delete cascade,
  -- Which of the questions about this turn.
  question text  not null,
  answer   jsonb not null,
  primary key (turn, question)
);

-- The state of an organization's pipeline: the settings of its admin, and a fault that it waits for. An
-- organization without a row runs without a limit.
create table org_pipelines (
  org                uuid        primary key references orgs (id) on delete cascade,
  paused             boolean     not null default false,
  -- Input and output tokens of models on one UTC day.
  daily_token_budget bigint,
  -- Why its provider could not be used; null while it can.
  fault              text,
  fault_since        timestamptz,
  -- Failed probes in a row, and when the next one is due.
  probes             integer     not null default 0,
  probe_at           timestamptz
);

-- Model calls of an organization's pipeline, per UTC day, pass, member and model.
create table org_usage (
  org           uuid    not null references orgs (id) on delete cascade,
  day           date    not null,
  pass          text    not null,
  member        text    not null,
  model         text    not null,
  calls         integer not null,
  input_tokens  bigint  not null,
  -- Of the input tokens, those from the provider's cache.
  cached_tokens bigint  not null default 0,
  output_tokens bigint  not null,
  primary key (org, day, pass, member, model)
);

-- ---- Usage ---------------------------------------------------------------------------------------------

-- One row per billed request, with the id of the request or operation: writing it again changes nothing.
-- Without references: nothing here is indexed by vault or account, and each check would read the table.
create table usage_events (
  id            uuid        primary key,
  account       uuid        not null,
  vault         uuid        not null,
  key_hash      bytea       not null,
  kind          text        not null,
  -- Provider-prefixed, where the request named one.
  model         text,
  session       text,
  input_tokens  integer     not null default 0,
  output_tokens integer     not null default 0,
  -- Tokens stored or retrieved.
  memory_tokens integer     not null default 0,
  at            timestamptz not null default now()
);
create index usage_events_of_key on usage_events (key_hash, at);
create index usage_events_by_time on usage_events (at);

-- Usage of whole days per key and model, so that a year is a few hundred rows.
create table usage_daily (
  key_hash      bytea  not null,
  -- UTC.
  day           date   not null,
  -- Provider-prefixed; '' where no request named one.
  model         text   not null,
  requests      bigint not null,
  input_tokens  bigint not null,
  output_tokens bigint not null,
  memory_tokens bigint not null,
  primary key (key_hash, day, model)
);

-- usage_daily has the days before this one; later days are summed from usage_events.
create table usage_rolled (
  one    boolean primary key default true check (one),
  before date    not null
);

insert into usage_rolled (before) values ((now() at time zone 'utc')::date);

-- Usage of whole days per account, for the operator: an account may have a hundred thousand keys.
create table usage_accounts (
  account       uuid   not null references accounts (id) on delete cascade,
  -- UTC.
  day           date   not null,
  requests      bigint not null,
  input_tokens  bigint not null,
  output_tokens bigint not null,
  memory_tokens bigint not null,
  primary key (account, day)
);
create index usage_accounts_by_day on usage_accounts (day);

-- usage_accounts has the days before this one; later days are summed from usage_events.
create table usage_accounts_rolled (
  one    boolean primary key default true check (one),
  before date    not null
);

insert into usage_accounts_rolled (before) values ((now() at time zone 'utc')::date);

-- ---- Events --------------------------------------------------------------------------------------------

-- Webhooks: addresses to which the events of an account are sent.
create table webhooks (
  id              uuid        primary key,
  account         uuid        not null references accounts (id) on delete cascade,
  -- Sealed: its path or query may be a secret.
  url             text        not null,
  description     text        not null,
  events          text[]      not null,
  -- Signs the messages, and until when the former secret signs too. Sealed.
  secret          text        not null,
  former_secret   text,
  former_until    timestamptz,
  -- Since when every message has failed.
  failing_since   timestamptz,
  -- Nothing is sent any more, and why: by its owner, after days of failures, or it answered 410.
  disabled_at     timestamptz,
  disabled_reason text        check (disabled_reason in ('owner', 'failures', 'gone')),
  created_at      timestamptz not null default now(),
  updated_at      timestamptz not null default now()
);
create index webhooks_of_account on webhooks (account);

-- The outbox and the log of webhooks: one row per message and webhook, written by the transaction that
-- makes the event true. A webhook that is up within three days gets it at least once.
create table webhook_deliveries (
  id         uuid        primary key default gen_random_uuid(),
  webhook    uuid        not null references webhooks (id) on delete cascade,
  event      text        not null,
  -- Ids, states and counts: never the text of a memory.
  data       jsonb       not null,
  state      text        not null default 'pending' check (state in ('pending', 'delivered', 'failed')),
  -- When a pending one is tried next.
  due_at     timestamptz not null default now(),
  -- Since it was written, or replayed.
  attempts   integer     not null default 0,
  -- The newest tries: [{"at", "status", "error", "ms"}].
  tries      jsonb       not null default '[]',
  created_at timestamptz not null default clock_timestamp()
);
create index webhook_deliveries_due on webhook_deliveries (due_at) where state = 'pending';
create index webhook_deliveries_due_of on webhook_deliveries (webhook, due_at) where state = 'pending';
create index webhook_deliveries_of on webhook_deliveries (webhook, created_at desc, id desc);
create index webhook_deliveries_by_age on webhook_deliveries (created_at);

-- What was done to an account's keys, policy and webhooks, and by whom; no text of a memory and no secret.
-- Rows are only added, and deleted when the account is erased.
create table account_events (
  id         uuid        primary key default gen_random_uuid(),
  account    uuid        not null references accounts (id) on delete cascade,
  -- From 1, without a gap, within the account.
  position   bigint      not null,
  action     text        not null,
  -- What it was done to: a key or credential, masked; the id of a webhook or organization; a provider.
  subject    text        not null,
  -- A value before and after, as the compact JSON of [before, after].
  change     text,
  -- The email of an admin, a Memory Key, masked, or `service`.
  actor      text        not null,
  created_at timestamptz not null default now(),
  -- Over this event and the hash before: shared/events/account-event-chain.ts computes the same.
  hash       bytea       not null
);
create unique index account_events_chain on account_events (account, position);

-- The end of each account's chain: the number of events and the hash of the last.
create table account_event_heads (
  account  uuid   primary key references accounts (id) on delete cascade,
  position bigint not null,
  hash     bytea  not null
);

create function chain_account_event() returns trigger language plpgsql as $$
declare head account_event_heads;
begin
  insert into account_event_heads (account, position, hash) values (new.account, 0, '')
    on conflict do nothing;
  -- Other transactions that add an event to this account wait here.
  select * into head from account_event_heads where account = new.account for update;
  new.created_at := clock_timestamp();
  new.position := head.position + 1;
  new.hash := sha256(head.hash || convert_to(concat_ws(E'\n',
    new.position, new.account, new.id, new.action, new.subject,
    floor(extract(epoch from new.created_at) * 1000000)::bigint, new.actor, new.change), 'UTF8'));
  update account_event_heads set position = new.position, hash = new.hash
    where account = new.account;
  return new;
end $$;

create trigger chain_account_event before insert on account_events for each row
  execute function chain_account_event();

create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'rows of % are only ever added', tg_table_name;
end $$;

create trigger account_events_stay before update on account_events for each row
  execute function refuse_change();

-- The audit of an organization: one row per change of the shared memory, written by the transaction that
-- makes the change visible.
create table audit_events (
  id         uuid        primary key,
  org        uuid        not null references orgs (id) on delete cascade,
  -- From 1, without a gap, within the organization.
  position   bigint      not null,
  memory     uuid        not null,
  action     text        not null check (action in ('create', 'update', 'delete', 'retag')),
  actor      text        not null,
  write      uuid        not null,
  created_at timestamptz not null,
  -- Over this event and the hash before: shared/org/audit-chain.ts computes the same.
  hash       bytea       not null,
  unique (write, action)
);
create unique index audit_events_chain on audit_events (org, position);
create index audit_events_of_org on audit_events (org, created_at desc, id desc);
create index audit_events_of_memory on audit_events (org, memory, created_at desc, id desc);

-- The end of each organization's chain: the number of events and the hash of the last.
create table audit_heads (
  org      uuid   primary key references orgs (id) on delete cascade,
  position bigint not null,
  hash     bytea  not null
);

create function chain_audit_event() returns trigger language plpgsql as $$
declare head audit_heads;
begin
  insert into audit_heads (org, position, hash) values (new.org, 0, '') on conflict do nothing;
  -- Other transactions that add an event to this organization wait here.
  select * into head from audit_heads where org = new.org for update;
  new.position := head.position + 1;
  new.hash := sha256(head.hash || convert_to(concat_ws(E'\n',
    new.position, new.org, new.id, new.memory, new.action, new.write,
    floor(extract(epoch from new.created_at) * 1000000)::bigint, new.actor), 'UTF8'));
  update audit_heads set position = new.position, hash = new.hash where org = new.org;
  return new;
end $$;

create trigger chain_audit_event before insert on audit_events for each row
  execute function chain_audit_event();
