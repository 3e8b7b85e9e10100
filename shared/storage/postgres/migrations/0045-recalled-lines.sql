-- How the memories of a block were told: [{id, from?, to?, later?}], of those that were not told whole or
-- stand under an older line about the same; the same lines give the same bytes.
alter table recalled_turns add column lines jsonb not null default '[]';
