import t from 'tap'
import { sweepAll } from '#workers/sweep-all.ts'
import {
  buildKey,
  createTestClient,
  startTestApi,
  startJobWorkers,
} from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { readVaultScope } from '#test/support/checks/stored-memories.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { makeErasuresDue } from '#test/support/checks/alter.ts'
import { countStaleDocuments, vaultRow } from '#test/support/checks/observe.ts'
import { openOperations } from '#test/support/checks/observe-jobs.ts'

// Two processes that answer and two that work, over one pair of stores.
const one = await createTestBackend(t)
const two = await createTestBackend(t, { config: one.config })
for (const backend of [one, two]) await startJobWorkers(backend, 'ingest', 'clear', 'delete-ids')
const bases = [(await startTestApi(t, one)).base, (await startTestApi(t, two)).base] as const

const races = 60
const vaults = 15

/** What a vault shows of a session, from both processes, sorted. */
async function seen(key: string, headers: Record<string, string>): Promise<string[][]> {
  const views = []
  for (const base of bases) {
    const answer = await createTestClient(base, key).post(
      '/v1/memory/search',
      { query: 'note', limit: 200 },
      headers,
    )
    if (answer.status !== 200) throw new Error(`a search answered ${answer.status}`)
    views.push(answer.body.memories.map((row: { content: string }) => row.content).toSorted())
  }
  return views as string[][]
}

t.test(`${races} races: what is deleted stays away, what came after stays`, async t => {
  const wrong: string[] = []
  await Promise.all(Array.from({ length: vaults }, (_, n) => race(n)))
  t.same(wrong, [])

  await waitUntil('nothing waits any more', async () => {
    return (await openOperations(one)).length === 0
  })
  const leftovers = await countStaleDocuments(one)
  await makeErasuresDue(one)
  t.comment(`${leftovers} unseen leftovers before the sweep`)
  await sweepAll(one)
  t.equal(await countStaleDocuments(one), 0)

  async function race(n: number): Promise<void> {
    const key = await buildKey(one)
    // A third of the vaults races within a session.
    const headers: Record<string, string> = n % 3 === 0 ? { 'x-session-id': 'trip' } : {}
    const clients = bases.map(base => createTestClient(base, key))
    const ingest = (content: string, by: number) =>
      clients[by % 2]!.post('/v1/memory/ingest', { messages: [{ role: 'user', content }] }, headers)
    for (let round = 0; round < races / vaults; round++) {
      await Promise.all([ingest(`note ${round} before a`, 0), ingest(`note ${round} before b`, 1)])
      const [deleted] = await Promise.all([
        clients[round % 2]!.send('DELETE', '/v1/memory', {
          headers: { ...headers, ...(round % 4 > 0 && { prefer: 'respond-async' }) },
        }),
        ingest(`note ${round} meanwhile`, round),
      ])
      if (deleted.status > 202) wrong.push(`answered ${deleted.status}`)
      // Accepted after the deletion has answered: it must be there in the end.
      const after = [0, 1].map(by => ingest(`note ${round} after ${by}`, by))
      const shown = await seen(key, headers)
      wrong.push(...shown.flat().filter(text => text.includes('before')))
      await Promise.all(after)
      const wanted = [0, 1].map(by => `note ${round} after ${by}`)
      await waitUntil(`what came after round ${round} is there`, async () => {
        const views = await seen(key, headers)
        wrong.push(...views.flat().filter(text => text.includes('before')))
        return views.every(view => wanted.every(text => view.includes(text)))
      })
    }
    await waitUntil('both processes agree', async () => {
      const views = await seen(key, headers)
      return JSON.stringify(views[0]) === JSON.stringify(views[1])
    })
  }
})

t.test('single deletions race with each other, with ingests and with a clearing', async t => {
  const key = await buildKey(one)
  const [a, b] = bases.map(base => createTestClient(base, key)) as [
    ReturnType<typeof createTestClient>,
    ReturnType<typeof createTestClient>,
  ]
  const { vault } = await readVaultScope(one, key)
  for (let round = 0; round < 10; round++) {
    await Promise.all(
      Array.from({ length: 6 }, (_, n) =>
        a.post('/v1/memory/ingest?wait=true', {
          messages: [{ role: 'user', content: `note ${round} ${n}` }],
        }),
      ),
    )
    const { body } = await a.post('/v1/memory/search', { query: 'note', limit: 200 })
    const ids = body.memories.map((row: { id: string }) => row.id) as string[]
    const half = ids.slice(0, 3)
    const answers = await Promise.all([
      a.post('/v1/memory/delete-ids', { ids: half }),
      b.post('/v1/memory/delete-ids', { ids: half }),
      ...(round % 3 === 2 ? [b.send('DELETE', '/v1/memory')] : []),
    ])
    t.ok(answers.every(({ status }) => status === 200))
    const deleted = answers.slice(0, 2).reduce((sum, answer) => sum + answer.body.deleted, 0)
    t.ok(deleted <= half.length, 'none is deleted twice')
    for (const view of [a, b]) {
      const after = await view.post('/v1/memory/search', { query: 'note', limit: 200 })
      const left = after.body.memories.map((row: { id: string }) => row.id) as string[]
      const returned = left.filter(id => half.includes(id))
      t.same(returned, [])
    }
  }
  const { body } = await a.post('/v1/memory/search', { query: 'note', limit: 200 })
  const { rawUnits } = await vaultRow(one, vault)
  t.equal(rawUnits, body.totalMemories, 'the debt is what is left')
})
