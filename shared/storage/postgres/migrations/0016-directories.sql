-- Directories that keep the members of organizations by SCIM, groups that give roles, and members who have to sign in.
alter table orgs
  -- A key of a member opens something only where a sign-in has made it, and lasts so many hours.
  add column sign_in_required boolean  not null default false,
  add column sign_in_hours    smallint not null default 12 check (sign_in_hours between 1 and 720);

alter table org_users
  add column external_id  text,
  -- A directory has written the member: no admin has to mint a key before they can sign in.
  add column directory    boolean not null default false,
  -- Since when the directory has the member switched off: no key is theirs meanwhile.
  add column suspended_at timestamptz,
  -- Names of groups in the last sign-in; null: it named none.
  add column oidc_groups  text[],
  add column updated_at   timestamptz;

-- A sign-in at the OpenID provider has made it.
alter table memory_keys add column signed_in boolean not null default false;

-- Tokens of directories: each keeps the members and groups of one organization and opens nothing else.
create table org_scim_tokens (
  id           uuid        primary key,
  org          uuid        not null references orgs (id) on delete cascade,
  description  text        not null,
  hash         bytea       not null unique,
  masked       text        not null,
  created_by   text        not null,
  created_at   timestamptz not null default now(),
  expires_at   timestamptz,
  last_used_at timestamptz
);

create table org_groups (
  id          uuid        primary key,
  org         uuid        not null references orgs (id) on delete cascade,
  name        text        not null,
  external_id text,
  created_at  timestamptz not null default now(),
  updated_at  timestamptz
);
create unique index org_groups_by_name on org_groups (org, lower(name));

create table org_group_members (
  org_group uuid not null references org_groups (id) on delete cascade,
  org_user  uuid not null references org_users (id) on delete cascade,
  primary key (org_group, org_user)
);
create index org_group_members_of_user on org_group_members (org_user);

-- What members of a group get, by its name or the directory's id of it.
create table org_group_grants (
  org        uuid    not null references orgs (id) on delete cascade,
  position   integer not null,
  group_name text    not null,
  -- Null: they review.
  role       uuid    references org_roles (id) on delete cascade,
  primary key (org, position)
);

-- A group gives the role, or makes the reviewer, and no admin has.
alter table org_user_roles add column by_group boolean not null default false;
alter table org_reviewers add column by_group boolean not null default false;

-- Credentials of reviewers that a sign-in has made.
create table org_reviewer_logins (
  hash       bytea       primary key,
  reviewer   uuid        not null references org_reviewers (id) on delete cascade,
  expires_at timestamptz not null
);
