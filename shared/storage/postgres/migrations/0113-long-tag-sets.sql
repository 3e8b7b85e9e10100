-- The tags of a set that is too long for the key of an index: its tag_set is a digest then, written as a set
-- that no memory can have, so that the version before reads past it.
alter table shared_tag_sets add column long_tag_set text;
