/**
 * SQL that takes deleted usage events out of the sums of days that are rolled up: parts of a `with`, after one
 * that returns the whole rows of the events, each of another key or day. A sum of nothing goes: days without
 * usage are not listed. The caller has locked the account: of two that take from one sum at once, neither would see
 * that it is the last.
 *
 * @param events the name of that part
 */
export const takeBackRolledUsageSql = (events: string): string =>
  [
    takeBackSql(events, {
      table: 'usage_daily',
      mark: 'usage_rolled',
      same: `d.key_hash = e.key_hash and d.model = coalesce(e.model, '')`,
    }),
    takeBackSql(events, {
      table: 'usage_accounts',
      mark: 'usage_accounts_rolled',
      same: 'd.account = e.account',
    }),
  ].join(', ')

function takeBackSql(
  events: string,
  { table, mark, same }: { table: string; mark: string; same: string },
): string {
  const where = `${same} and d.day = (e.at at time zone 'utc')::date
         and d.day < (select before from ${mark})`
  return `${table}_lowered as (
       update ${table} d
       set requests = d.requests - 1, input_tokens = d.input_tokens - e.input_tokens,
           output_tokens = d.output_tokens - e.output_tokens,
           memory_tokens = d.memory_tokens - e.memory_tokens
       from ${events} e where d.requests > 1 and ${where}
     ), ${table}_emptied as (
       delete from ${table} d using ${events} e where d.requests = 1 and ${where}
     )`
}
