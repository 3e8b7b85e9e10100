-- A team that shares a memory. It belongs to an admin's account, which pays for what members do.
create table orgs (
  id                 uuid        primary key,
  account            uuid        not null references accounts (id),
  -- The shared memory: a vault like any other, opened by the keys of members.
  vault              uuid        not null unique references vaults (id),
  name               text        not null,
  -- Whose models extract and classify what members say.
  processor_provider text        not null,
  extract_model      text        not null,
  classify_model     text        not null,
  -- Raised by every change to who is a member and who may see what.
  policy_version     bigint      not null default 1,
  created_at         timestamptz not null default now(),
  updated_at         timestamptz not null default now()
);

-- Lists the organizations of an admin; names that look alike are the same name.
create unique index orgs_by_name on orgs (account, lower(normalize(name, NFKC)));

-- Who belongs to an organization. Each has a private vault, which only keys of their own open.
create table org_users (
  id             uuid        primary key,
  org            uuid        not null references orgs (id) on delete cascade,
  vault          uuid        not null unique references vaults (id),
  -- How the organization calls them. One that is an email is in lower case and also stands in email.
  team_member_id text        not null,
  email          text        check (email = lower(email)),
  first_name     text,
  last_name      text,
  created_at     timestamptz not null default now(),
  unique (org, team_member_id),
  unique (org, email)
);

-- What its holders may see of the shared memory.
create table org_roles (
  id           uuid        primary key,
  org          uuid        not null references orgs (id) on delete cascade,
  name         text        not null,
  -- Labels of tags; '*' is every tag there is and will be.
  allowed_tags text[]      not null default '{}',
  created_at   timestamptz not null default now()
);

create unique index org_roles_by_name on org_roles (org, lower(normalize(name, NFKC)));

create table org_user_roles (
  org_user uuid not null references org_users (id) on delete cascade,
  role     uuid not null references org_roles (id) on delete cascade,
  -- As the assignment listed them.
  position integer not null,
  primary key (org_user, role)
);

-- Takes a role from everybody who holds it.
create index org_user_roles_of_role on org_user_roles (role);

-- What the classifier asks of a memory.
create table org_tags (
  id         uuid        primary key,
  org        uuid        not null references orgs (id) on delete cascade,
  label      text        not null check (label <> '*'),
  question   text        not null,
  -- Memories it fits, and memories it does not fit though one might think so.
  examples   text[]      not null default '{}',
  negatives  text[]      not null default '{}',
  -- Labels it had before, that memories may still bear until a job has relabelled them.
  former     text[]      not null default '{}',
  created_at timestamptz not null default now()
);

create unique index org_tags_by_label on org_tags (org, lower(normalize(label, NFKC)));

-- What an organization wants kept: its own words beside the base instructions of the service.
create table org_instructions (
  org        uuid        primary key references orgs (id) on delete cascade,
  default_on boolean     not null default true,
  custom     text        not null default '',
  updated_at timestamptz not null default now()
);

-- anti: never stored; exec: stored only as a short note.
create table org_rules (
  id       uuid    primary key,
  org      uuid    not null references orgs (id) on delete cascade,
  kind     text    not null check (kind in ('anti', 'exec')),
  position integer not null,
  match    text    not null,
  note     text    not null default ''
);

create index org_rules_of_org on org_rules (org, kind, position);

-- Keys of members: `member` opens their private vault and what their roles allow of the shared one,
-- `user` the private vault alone. Neither speaks for the account, which pays for both. A `member` key
-- without a user is the organization's own.
alter table memory_keys
  -- What paths and listings call it; the keys of accounts have none.
  add column id           uuid unique,
  add column org          uuid references orgs (id) on delete cascade,
  add column org_user     uuid references org_users (id) on delete cascade,
  -- The raw key, for an admin to read again.
  add column sealed       text,
  -- To the minute, and a few seconds late.
  add column last_used_at timestamptz;

alter table memory_keys drop constraint memory_keys_kind_check;
alter table memory_keys add constraint memory_keys_kind_check
  check (kind in ('vault', 'member', 'user') and (kind = 'vault') = (org is null)
         and (kind <> 'user' or org_user is not null));

create index memory_keys_of_org on memory_keys (org) where org is not null;
create index memory_keys_of_org_user on memory_keys (org_user) where org_user is not null;
