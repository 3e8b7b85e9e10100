-- Finds the turns of an organization whose passes are not done, for its admin.
create index org_turns_open on org_turns (org, id desc) where finished_at is null;
