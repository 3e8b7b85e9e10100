-- What members said, on its way into the shared memory. A row holds no words of the turn itself, only
-- what each pass made of it: what the next pass goes on from is what an admin is shown. All three are
-- lists of the same length; what stands at one place in them is about the same fact.
create table org_turns (
  -- The operation under which the exchange was accepted into the member's private vault.
  id          uuid        primary key,
  org         uuid        not null references orgs (id) on delete cascade,
  org_user    uuid        not null references org_users (id) on delete cascade,
  -- The key the member spoke with: what the passes cost is billed to it.
  key_hash    bytea       not null,
  -- How the organization called the member at the time.
  author      text        not null,
  -- Null until the pass has run.
  pass1       jsonb,
  pass2       jsonb,
  pass3       jsonb,
  created_at  timestamptz not null default now(),
  -- When the decisions of the third pass had been carried out.
  finished_at timestamptz
);

-- Lists what became of the turns of an organization, or of one member, newest first.
create index org_turns_of_org on org_turns (org, id desc);
create index org_turns_of_author on org_turns (org, author, id desc);
-- Takes a user's turns along.
create index org_turns_of_user on org_turns (org_user);
-- Finds the turn that a shared memory came from.
create index org_turns_by_memory on org_turns using gin (pass3 jsonb_path_ops);
-- Finds turns that are no longer shown.
create index org_turns_old on org_turns (created_at);

-- What models answered about a turn that is not finished, each written the moment it came: work that is
-- done again asks no model twice.
create table org_answers (
  turn     uuid not null references org_turns (id) on delete cascade,
  -- Which of the questions about this turn.
  question text not null,
  answer   jsonb not null,
  primary key (turn, question)
);
