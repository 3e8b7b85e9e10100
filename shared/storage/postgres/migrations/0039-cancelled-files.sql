-- A file whose operation was cancelled while it ran: chunks that have not begun are settled without being
-- stored. What is stored stays.
alter table bulk_files add column cancelled_at timestamptz;
