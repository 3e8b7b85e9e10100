-- A tag that is asked of what an organization shares already, and how far that is.
create table org_tag_runs (
  -- The operation of the request, and the id of its job.
  id          uuid        primary key,
  org         uuid        not null references orgs (id) on delete cascade,
  tag         uuid        not null references org_tags (id) on delete cascade,
  created_by  text        not null,
  -- Memories without the tag when it began, and how many of them were asked about.
  memories    integer     not null,
  examined    integer     not null default 0,
  -- Memories that got the tag, and those of them that a person has to look at.
  tagged      integer     not null default 0,
  doubtful    integer     not null default 0,
  -- Event time in epoch milliseconds and id of the last memory that was asked about.
  after_at    float8,
  after_id    uuid,
  -- Why it waits; null while it does not.
  last_error  text,
  created_at  timestamptz not null default now(),
  finished_at timestamptz
);

-- One at a time for each tag; the newest of a tag.
create unique index org_tag_runs_open on org_tag_runs (tag) where finished_at is null;
create index org_tag_runs_of_tag on org_tag_runs (tag, created_at);
