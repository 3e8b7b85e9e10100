-- Whether model calls are stored as they were sent, with what programs have written into them.
alter table accounts add column verbatim boolean not null default false;

-- Whether an answer is stored only where the input that it answers is.
alter table accounts add column response_with_input boolean not null default false;
