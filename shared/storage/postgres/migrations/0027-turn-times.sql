-- When what a turn is about was said, by the member's own clock where the exchange brings one; null for
-- turns of before, which were said when they came.
alter table org_turns add column said_at timestamptz;

-- Characters of the exchange that are not looked through: the middle of very long messages, and the
-- beginning of an exchange of more than twenty turns.
alter table org_turns add column left_out integer not null default 0;
