-- What an anti-rule kept from the extraction of a turn: all of it, or the model's answer. Null: nothing.
alter table org_turns add column withheld text check (withheld in ('turn', 'answer'));
