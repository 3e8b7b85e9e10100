import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import { sweepAll } from '#workers/sweep-all.ts'
import { renewOpenExchanges } from '#shared/vault/ingest/open-exchanges.postgres.ts'
import { acceptClearing } from '#shared/vault/delete/clear-vault.ts'
import { buildKey, startJobWorkers } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { readBill, resolveCaller, readDocuments } from '#test/support/start/insert-memories.ts'
import { raiseEpochOf, ageRows } from '#test/support/checks/alter.ts'

const backend = await createTestBackend(t)
const { exchanges, postgres } = backend
const { query } = postgres
await startJobWorkers(backend, 'ingest')

const heard = {
  text: 'Noted.',
  interrupted: false,
  unanswered: false,
  inputTokens: 40,
  outputTokens: 2,
  recalledTokens: 100,
}

const plainCall = { session: null, embeddings: 'local', model: 'openai/gpt-5' }

async function opened(text: string | null, session: string | null = null) {
  const key = await buildKey(backend)
  const owner = await resolveCaller(backend, key)
  const operation = mintId()
  const userMessages = text === null ? [] : [{ role: 'user', content: text }]
  const exchange = await exchanges.open({ ...plainCall, operation, owner, session, userMessages })
  const stored = async () => {
    await waitUntil('nothing is on its way', async () => {
      const { rows } = await query<{ n: number }>(
        `select count(*)::int as n from operations where state in ('accepted', 'running')`,
      )
      return rows[0]!.n === 0
    })
    return (await readDocuments(backend, key)).map(({ role, text }) => `${role}: ${text}`)
  }
  return { key, owner, operation, exchange, stored }
}

const rowOf = async (operation: string) =>
  (await query('select user_turn, model from open_exchanges where operation = $1', [operation]))
    .rows[0]

const age = (operation: string) => ageRows(backend, 'open_exchanges', '3 minutes', { operation })

/** Sweeps until an exchange of a process that died is found; this one, which lives, may renew it in between. */
async function sweptAged(operation: string): Promise<number> {
  let swept = 0
  await waitUntil('it is swept', async () => {
    await age(operation)
    swept += (await sweepAll(backend)).exchanges ?? 0
    return swept > 0
  })
  return swept
}

t.test('what was said is written down at once, as texts, and stored with the answer', async t => {
  const key = await buildKey(backend)
  const owner = await resolveCaller(backend, key)
  const operation = mintId()
  const image = {
    type: 'image_url',
    image_url: { url: `data:image/png;base64,${'A'.repeat(5_000)}` },
  }
  const asked = {
    ...plainCall,
    operation,
    owner,
    userMessages: [
      {
        role: 'user',
        content: [{ type: 'text', text: 'Look \u0000 \uD800' }, image],
        name: 'Eve',
      },
      { role: 'user', content: 'Not this', memory: false },
    ],
  }
  const exchange = await exchanges.open(asked)
  t.match(await rowOf(operation), {
    model: 'openai/gpt-5',
    user_turn: [{ role: 'user', text: 'Look \uFFFD \uFFFD\n[image]', speaker: 'Eve', at: Number }],
  })
  await exchanges.open(asked)
  await exchanges.close(exchange, heard, 60_000)
  t.equal(await rowOf(operation), undefined)
  t.equal(await readBill(backend, operation), 100 + 8 + 2)
  await waitUntil('stored', async () => (await readDocuments(backend, key)).length === 2)
  t.match(await readDocuments(backend, key), [
    { role: 'user', speaker: 'Eve', operation },
    { role: 'assistant', text: 'Noted.', operation },
  ])
})

t.test('closed twice, as after a commit whose answer was lost, it is stored once', async t => {
  const { operation, exchange, stored } = await opened('Only once')
  await Promise.all(Array.from({ length: 5 }, () => exchanges.close(exchange, heard, 60_000)))
  await exchanges.close(exchange, { ...heard, text: 'Other' }, 60_000)
  t.same(await stored(), ['user: Only once', 'assistant: Noted.'])
  t.equal(await rowOf(operation), undefined)
})

t.test('nothing to store: forgotten, and counted', async t => {
  const { operation, exchange } = await opened(null)
  t.ok(await rowOf(operation))
  await exchanges.close(exchange, { ...heard, text: null }, 60_000)
  t.equal(await rowOf(operation), undefined)
  t.equal(await readBill(backend, operation), 100)
})

t.test('words that leave no memory: forgotten, and counted, closed or swept', async t => {
  const blank = [{ role: 'user' as const, text: ' \n ' }]
  const closed = await opened('Blank')
  await exchanges.close({ ...closed.exchange, userTurns: blank }, { ...heard, text: null }, 2_000)
  t.equal(await rowOf(closed.operation), undefined)
  t.equal(await readBill(backend, closed.operation), 100)
  t.same(await closed.stored(), [])

  const dead = await opened('Blank')
  await query('update open_exchanges set user_turn = $2::jsonb where operation = $1', [
    dead.operation,
    JSON.stringify(blank),
  ])
  t.equal(await sweptAged(dead.operation), 1)
  t.equal(await rowOf(dead.operation), undefined)
  t.same(await dead.stored(), [])
})

t.test('a process that died: the sweep stores what the user said, once, and only then', async t => {
  const { operation, exchange, stored } = await opened('I was cut off')
  t.match(await sweepAll(backend), { exchanges: 0 }, 'not while somebody serves it')
  await age(operation)
  await renewOpenExchanges(query, [operation])
  t.match(await sweepAll(backend), { exchanges: 0 })
  t.equal(await sweptAged(operation), 1)
  t.match(await sweepAll(backend), { exchanges: 0 })
  t.same(await stored(), ['user: I was cut off'])
  t.equal(await readBill(backend, operation), 4)

  await exchanges.close(exchange, heard, 60_000)
  const both = (await stored()).toSorted()
  t.same(both, ['assistant: Noted.', 'user: I was cut off'], 'it had only been still')
  await exchanges.close(exchange, heard, 60_000)
  t.equal((await stored()).length, 2)
})

t.test('what was read is stored as it is, with what it holds of a program’s text', async t => {
  const text = '<user_query>\n<system-reminder>hi</system-reminder>\n</user_query>'
  const { exchange, operation, stored } = await opened(text)
  const answer = 'plan</think>Close it with </think> before the answer.'
  await exchanges.close(exchange, { ...heard, text: answer }, 60_000)
  t.equal(await rowOf(operation), undefined)
  t.same(await stored(), [`user: ${text}`, 'assistant: Close it with </think> before the answer.'])

  const dead = await opened(text)
  t.equal(await sweptAged(dead.operation), 1)
  t.same(await dead.stored(), [`user: ${text}`])
})

t.test('those that fail wait behind the others', async t => {
  const { operation, stored } = await opened('I come last')
  // As many as one sweep takes, all older, of a form that nothing can read.
  await query(
    `insert into open_exchanges (operation, account, vault, key_hash, epoch, session_epoch, embeddings, model,
                                 user_turn, renewed_at)
     select gen_random_uuid(), account, vault, key_hash, epoch, session_epoch, embeddings, model,
            '[null]', now() - interval '1 hour'
     from open_exchanges, generate_series(1, 500) where operation = $1`,
    [operation],
  )
  await waitUntil('it is reached', async () => {
    await age(operation)
    await sweepAll(backend)
    return !(await rowOf(operation))
  })
  t.same(await stored(), ['user: I come last'])
  const { rowCount } = await query(
    `delete from open_exchanges where user_turn = '[null]' and renewed_at > now() - interval '30 minutes'`,
  )
  t.equal(rowCount, 500, 'and are kept')
})

t.test('void: cleared, and the words go with the clearing, before or after it', async t => {
  await startJobWorkers(backend, 'clear')
  const clear = (owner: Parameters<typeof acceptClearing>[1], session: string | null) =>
    acceptClearing(backend, owner, { operation: mintId(), session, reset: false, awaited: false })
  const whole = await opened('Secret one')
  await clear(whole.owner, null)
  await waitUntil('the words are gone', async () => !(await rowOf(whole.operation)))
  await exchanges.close(whole.exchange, heard, 60_000)
  t.same(await whole.stored(), [])

  const session = await opened('Secret two', 's')
  await clear(session.owner, 'other')
  await clear(session.owner, 's')
  await exchanges.close(session.exchange, heard, 60_000)
  t.equal(await rowOf(session.operation), undefined)
  t.same(await session.stored(), [])

  const other = await opened('Kept', 's')
  await clear(other.owner, 'other')
  await exchanges.close(other.exchange, heard, 60_000)
  t.equal((await other.stored()).length, 2)

  const dead = await opened('Secret three')
  await raiseEpochOf(backend, dead.owner.scope.vault)
  await waitUntil('it is forgotten', async () => {
    await age(dead.operation)
    await sweepAll(backend)
    return !(await rowOf(dead.operation))
  })
  t.same(await dead.stored(), [])
})

/** Opens a call for a turn that is sent again and again. */
const sentAgain = async (key: string, turn: Buffer, from = backend) =>
  from.exchanges.open({
    ...plainCall,
    operation: mintId(),
    owner: await resolveCaller(backend, key),
    userMessages: [{ role: 'user', content: `Turn ${turn.toString('hex')}` }],
    turn,
  })

const turns = Array.from({ length: 5 }, (_, index) => Buffer.alloc(32, index + 1))
const failed = { ...heard, text: null, unanswered: true }

t.test('a turn that is not answered is written once, and again when it is over', async t => {
  const key = await buildKey(backend)
  const [turn] = turns as [Buffer]
  const written = async () => (await sentAgain(key, turn)).userTurns.length
  const first = await sentAgain(key, turn)
  t.equal(first.userTurns.length, 1)
  t.equal(await written(), 0, 'while it is under way')
  await query('delete from open_exchanges where operation <> $1', [first.operation])
  await exchanges.close(first, failed, 60_000)
  const second = await sentAgain(key, turn)
  t.equal(second.userTurns.length, 0)
  await exchanges.close(second, failed, 60_000)
  const third = await sentAgain(key, turn)
  t.equal(third.userTurns.length, 0)
  await exchanges.close(third, heard, 60_000)
  t.equal(await written(), 1, 'it has been answered')
})

t.test('turns sent again by many at once, in two processes, fail no request', async t => {
  const other = await createTestBackend(t, { config: backend.config })
  const key = await buildKey(backend)
  for (let round = 0; round < 4; round++) {
    const order = round % 2 === 0 ? turns : turns.toReversed()
    const opened = await Promise.all(
      Array.from({ length: 6 }, (_, copy) =>
        order.map(turn => sentAgain(key, turn, copy % 2 === 0 ? backend : other)),
      ).flat(),
    )
    const written = opened.filter(({ userTurns }) => userTurns.length > 0).length
    if (round === 0) t.ok(written >= turns.length, 'none is lost')
    await Promise.all(
      opened.map((exchange, index) =>
        (index % 2 === 0 ? backend : other).exchanges.close(exchange, failed, 60_000),
      ),
    )
  }
  const stored = async () =>
    new Set((await readDocuments(backend, key)).map(({ text }) => text)).size === turns.length
  await waitUntil('all are stored', stored)
  t.match((await sentAgain(key, turns[4]!)).userTurns, [])
})
