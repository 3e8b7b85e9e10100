-- Whether a model is told that nothing is remembered, where a question to memory has no answer.

alter table accounts add column tell_absence boolean not null default false;
