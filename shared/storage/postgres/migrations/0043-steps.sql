-- The text beside a model's calls of tools: not stored unless its turn never ends. It waits as an exchange
-- whose `said` is that text, under the user's turn; a further call of the turn removes it.
alter table open_exchanges add column step boolean not null default false;

-- True: the turn was answered. Sent again as the last turn it is a new one; sent again before another turn
-- it is the same, and not stored twice.
alter table unanswered_turns add column answered boolean not null default false;
