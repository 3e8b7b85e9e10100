import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import type { UsageEvent } from '#shared/billing/bill.postgres.ts'
import { UsageWriter } from '#shared/billing/usage-writer.ts'
import { buildKey } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { resolveCaller } from '#test/support/start/insert-memories.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

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
  const ofNobody = { ...other, id: mintId(), vault: null as unknown as string }
  const bills = [first, outOfRange, { ...first, id: mintId() }, ofNobody, other]
  for (const bill of bills) backend.usage.record(bill)
  await backend.usage.flush()
  t.same(await readWritten(bills), [bills[0]!.id, bills[2]!.id, bills[4]!.id])
})

t.test('a flush does not wait for what is recorded after it', async t => {
  const bill = await buildBill()
  let statements = 0
  // While a statement runs there is always a newer bill.
  const query: typeof backend.postgres.query = (...statement) => {
    if (++statements < 100) writer.record({ ...bill, id: mintId() })
    return backend.postgres.query(...statement)
  }
  const writer = new UsageWriter({ ...backend.postgres, query }, backend.log)
  const first = { ...bill, id: mintId() }
  const second = { ...bill, id: mintId() }
  writer.record(first)
  await waitUntil('the first statement runs', () => statements > 0)
  writer.record(second)
  const before = statements
  await writer.flush()
  const awaited = statements - before
  t.ok(awaited <= 2, `${awaited} statements`)
  t.same(await readWritten([first, second]), [first.id, second.id])
  await waitUntil('all are written', () => statements === 100)
  await writer.flush()
})
