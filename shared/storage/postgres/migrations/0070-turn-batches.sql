-- Turns of one member that go through the passes together: the turn whose jobs they go along with, its
-- own id for that one. Null: it goes by itself.
alter table org_turns add column batch uuid;
-- It failed in a batch, or made one fail: its passes run by themselves.
alter table org_turns add column alone boolean not null default false;
-- Tags of the shared memories that the model was told when it answered.
alter table org_turns add column lent_tags text[] not null default '{}';
-- Finds the turns of a member that wait, and those of a batch.
create index org_turns_waiting on org_turns (org_user) where finished_at is null;
create index org_turns_of_batch on org_turns (batch) where batch is not null;
