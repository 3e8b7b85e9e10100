-- Lists the operations of a vault, newest first, and finds them when it is erased.
create index operations_of_vault on operations (vault, id desc);
