-- Who may decide about the review queue of one organization, and nothing else of it. Their credentials
-- stand here and not among those of admins: no other request finds them.
create table org_reviewers (
  id         uuid        primary key,
  org        uuid        not null references orgs (id) on delete cascade,
  -- As the audit names them, in lower case.
  email      text        not null check (email = lower(email)),
  hash       bytea       not null unique,
  masked     text        not null,
  created_by text        not null,
  created_at timestamptz not null default now(),
  unique (org, email)
);
