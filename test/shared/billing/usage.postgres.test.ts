import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import type { UsageEvent } from '#shared/billing/usage.postgres.ts'
import { buildKey } from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'
import { resolveCaller } from '#test/support/insert-memories.ts'

const backend = await createTestBackend(t)

/** A bill of a new account. */
async function buildBill(): Promise<UsageEvent> {
  const { account, scope, keyHash } = await resolveCaller(backend, await buildKey(backend))
  return { id: mintId(), account, vault: scope.vault, keyHash, kind: 'search', memoryTokens: 3 }
}

/** Which of these bills are written. */
async function readWritten(bills: readonly UsageEvent[]): Promise<string[]> {
  const ids = bills.map(({ id }) => id)
  const { rows } = await backend.postgres.query<{ id: string }>(
    'select id from usage_events where id = any($1::uuid[])',
    [ids],
  )
  return ids.filter(id => rows.some(row => row.id === id))
}

t.test('a bill that the database refuses harms no other', async t => {
  const first = await buildBill()
  const other = await buildBill()
  const outOfRange = { ...first, id: mintId(), inputTokens: 2 ** 32 - 1 }
  const ofNobody = { ...other, id: mintId(), vault: mintId() }
  const bills = [first, outOfRange, { ...first, id: mintId() }, ofNobody, other]
  for (const bill of bills) backend.usage.record(bill)
  await backend.usage.flush()
  t.same(await readWritten(bills), [bills[0]!.id, bills[2]!.id, bills[4]!.id])
})
