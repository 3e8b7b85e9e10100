import { usageSlices } from '#shared/billing/usage-sums.postgres.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

/**
 * Erases personal texts from copies and operations that were accepted before a vault was cleared: queries of
 * grafts, errors of file lines, names of sessions. Copies come first: a copy that is ending writes its queries
 * into its outcome, which is erased after that.
 *
 * @param upTo the last cleared epoch
 */
export async function eraseTextsOutsideMemories(
  query: Query,
  { vault, upTo }: { vault: string; upTo: number },
): Promise<void> {
  await query(
    `update long_operations set request = request || '{"queries": []}'
     where kind = 'graft' and request->>'source' = $1 and (request->>'sourceEpoch')::int <= $2`,
    [vault, upTo],
    'words.copies',
  )
  await query(
    `update operations
     set session = null,
         outcome = (outcome - 'errors')
           || case when outcome ? 'queries' then '{"queries": []}' else '{}' end::jsonb
           || case when outcome ? 'session' then '{"session": null}' else '{}' end::jsonb
     where account in (select account from memory_keys where vault = $1
                       union select account from vaults where id = $1)
       and vault = $1 and epoch <= $2
       and (session is not null or outcome ?| '{errors,queries,session}')`,
    [vault, upTo],
    'words.operations',
  )
}

/**
 * Erases the names of sessions from the bills of a vault; the amounts stay.
 *
 * @param keys of a vault that is erased: hashes, in hex, of the keys it had. The bills
 *   of a vault that is only cleared lose the names up to the operation
 */
export async function eraseSessionNames(
  query: Query,
  { vault, operation, keys }: { vault: string; operation: string; keys?: readonly string[] },
): Promise<void> {
  const { rows } = await query<{ hash: Buffer }>(
    `select hash from memory_keys where vault = $1
     union select decode(k, 'hex') from unnest($2::text[]) k`,
    [vault, keys ?? []],
    'words.keys',
  )
  for (const { hash } of rows) {
    for await (const { after, upTo } of usageSlices(query, { key: hash, after: '-infinity' })) {
      await query(
        `update usage_events set session = null
         where key_hash = $1 and at > $2::timestamptz and at <= $3::timestamptz
           and vault = $4 and session is not null
           and ($5::uuid is null or at <= (select created_at from operations where id = $5))`,
        [hash, after, upTo, vault, keys ? null : operation],
      )
    }
  }
}
