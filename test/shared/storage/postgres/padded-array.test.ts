import { randomBytes } from 'node:crypto'
import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import { findKeys } from '#shared/access/key-row.postgres.ts'
import { lockVaultsOf } from '#shared/operations/vault-locks.postgres.ts'
import { padArray } from '#shared/storage/postgres/padded-array.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'
import { findRecalledTurns } from '#shared/vault/read/traces/recalled-turns.postgres.ts'
import { buildKey } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { resolveCaller } from '#test/support/start/insert-memories.ts'

t.test('an array has ten elements at least', async t => {
  t.same(padArray([1, 2]), [1, 2, ...Array.from({ length: 8 }, () => null)])
  const long = Array.from({ length: 12 }, (_, index) => index)
  t.same(padArray(long), long)
})

t.test('statements of hot paths are planned once', async t => {
  const backend = await createTestBackend(t)
  const { query, transaction } = backend.postgres
  const { account, scope, keyHash } = await resolveCaller(backend, await buildKey(backend))
  await query(
    `insert into vaults (id, account, external_id)
     select gen_random_uuid(), $1, 'user-' || n from generate_series(1, 5000) n`,
    [account],
  )
  await query(
    `insert into memory_keys (hash, vault, account, kind, name, masked, id)
     select sha256(id::text::bytea), id, account, 'vault', '', '', gen_random_uuid()
     from vaults where account = $1 and external_id is not null`,
    [account],
  )
  await query('analyze vaults, memory_keys, accounts')
  const operation = mintId()
  const statements: Record<string, (tx: Transaction) => Promise<unknown>> = {
    'keys.find': async tx => t.equal((await findKeys(tx.query, [keyHash])).length, 1),
    'recalled-turns.read': tx =>
      findRecalledTurns(tx.query, [{ vault: scope.vault, turn: randomBytes(32) }]),
    'vaults.lock-of-operations': tx => lockVaultsOf(tx, [operation]),
  }
  for (const [name, execute] of Object.entries(statements)) {
    const [plans] = await transaction(async tx => {
      for (let n = 0; n < 40; n++) await execute(tx)
      const { rows } = await tx.query<{ custom: number; generic: number }>(
        `select custom_plans::int as custom, generic_plans::int as generic
         from pg_prepared_statements where name = $1`,
        [name],
      )
      return rows
    })
    t.ok(plans!.generic > 0, `${name}: ${JSON.stringify(plans)}`)
  }
})
