import type { Query } from '#shared/storage/postgres/connect.ts'

/**
 * Erases personal texts from copies and operations that were accepted before a vault was cleared: queries of
 * grafts, errors of file lines, names of sessions. In stored outcomes they have the same names in the form
 * of this release (`kind`, `session`) and of former ones (the answer itself, `session_id`). Copies come
 * first: this waits for a copy that is ending with its queries, whose outcome is erased after that.
 *
 * @param upTo the last cleared epoch
 */
export async function eraseTextsOutsideMemories(
  query: Query,
  { vault, upTo }: { vault: string; upTo: number },
): Promise<void> {
  await query(
    `update copies set queries = '[]' where source = $1 and source_epoch <= $2 and queries is not null`,
    [vault, upTo],
    'words.copies',
  )
  await query(
    `update operations
     set session = null,
         outcome = (outcome - 'errors')
           || case when outcome ? 'queries' then '{"queries": []}' else '{}' end::jsonb
           || case when outcome ? 'session' then '{"session": null}' else '{}' end::jsonb
           || case when outcome ? 'session_id' then '{"session_id": null}' else '{}' end::jsonb
     where account in (select account from memory_keys where vault = $1
                       union select account from vaults where id = $1)
       and vault = $1 and epoch <= $2
       and (session is not null or outcome ?| '{errors,queries,session,session_id}')`,
    [vault, upTo],
    'words.operations',
  )
}

/** Bills per statement: 10,000 take 0.1 s. */
const billsMax = 10_000

/** Erases the names of sessions from the bills of a vault up to an operation; the amounts stay. */
export async function eraseSessionNames(
  query: Query,
  { vault, operation }: { vault: string; operation: string },
): Promise<void> {
  const { rows: keys } = await query<{ hash: Buffer }>(
    'select hash from memory_keys where vault = $1',
    [vault],
    'words.keys',
  )
  for (const { hash } of keys) {
    for (let named = billsMax; named === billsMax;) {
      ;({ rowCount: named } = await query(
        `update usage_events set session = null where id in (
           select id from usage_events
           where key_hash = $1 and vault = $2 and session is not null
             and at <= (select created_at from operations where id = $3) limit $4)`,
        [hash, vault, operation, billsMax],
        'words.bills',
      ))
    }
  }
}
