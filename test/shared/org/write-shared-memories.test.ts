import t from 'tap'
import { mintId, randomBase62 } from '#shared/core/ids.ts'
import { tagSetKey } from '#shared/domain/tags.ts'
import {
  addSharedMemories,
  deleteSharedMemory,
  updateSharedMemory,
} from '#shared/org/memories/write-shared-memories.ts'
import { sharedByIds } from '#shared/org/memories/shared-memories.mongo.ts'
import { listTagSets } from '#shared/vault/base/tag-sets.postgres.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { buildTeam, seedTeamMemories } from '#test/support/start/team.ts'

const backend = await createTestBackend(t)
const team = await buildTeam(backend)
const actor = 'ann@example.com'

const auditOf = async (memory: string) =>
  (
    await backend.postgres.query<{ action: string; actor: string }>(
      'select action, actor from audit_events where memory = $1 order by created_at, id',
      [memory],
    )
  ).rows.map(row => `${row.action} ${row.actor}`)

const seed = (text: string, tags: string[] = []) => ({
  text,
  tags,
  confidence: 1,
  author: actor,
  reviewed: true,
  acquiredAt: Date.now(),
})

t.test('a change of each kind is made once and told once', async t => {
  const operation = mintId()
  const items = [seed('The vault code is 1234', ['security']), seed('Lunch is at noon')]
  const first = await addSharedMemories(backend, team, { operation, actor, items })
  const again = await addSharedMemories(backend, team, { operation, actor, items })
  t.same(
    again.added.map(({ memory }) => memory.id),
    first.added.map(({ memory }) => memory.id),
  )
  const id = first.added[0]!.memory.id
  const edit = { operation: mintId(), actor, id, text: 'The vault code is 9876' }
  t.match(await updateSharedMemory(backend, team, edit), { text: edit.text, tags: ['security'] })
  await updateSharedMemory(backend, team, edit)
  const retag = { operation: mintId(), actor, id, tags: ['b', 'a', 'b'] }
  t.same((await updateSharedMemory(backend, team, retag)).tags, ['a', 'b'])
  await updateSharedMemory(backend, team, retag)
  t.match(await sharedByIds(backend.mongo, team, [id]), [
    { text: edit.text, tags: ['a', 'b'], version: 3 },
  ])
  const removal = { operation: mintId(), actor, id }
  await deleteSharedMemory(backend, team, removal)
  await deleteSharedMemory(backend, team, removal)
  t.same(await sharedByIds(backend.mongo, team, [id]), [])
  const told = ['create', 'update', 'retag', 'delete'].map(a => `${a} ${actor}`)
  t.same(await auditOf(id), told)
  const counts = await listTagSets(backend.postgres.query, team)
  const left = counts.filter(({ memories }) => memories > 0)
  t.same(left, [{ tagSet: '[]', tags: [], memories: 1 }])
})

t.test('fifty tags of a hundred characters are counted like others', async t => {
  const { postgres } = backend
  const longOnes = (n: number) => Array.from({ length: n }, () => randomBase62(100))
  const [many, others] = [longOnes(50), longOnes(50)]
  const items = [seed('long', many), seed('long too', many), seed('short', longOnes(25))]
  const added = await addSharedMemories(backend, team, { operation: mintId(), actor, items })
  const id = added.added[0]!.memory.id
  const countOf = async (tags: readonly string[]) =>
    (await listTagSets(postgres.query, team))
      .filter(({ tagSet }) => tagSet === tagSetKey(tags))
      .map(({ memories, tags: listed }) => [memories, listed])
  t.same(await countOf(many), [[2, many.toSorted()]])
  t.same(await countOf(items[2]!.tags), [[1, items[2]!.tags.toSorted()]])

  await updateSharedMemory(backend, team, { operation: mintId(), actor, id, tags: others })
  t.same(await countOf(many), [[1, many.toSorted()]])
  t.same(await countOf(others), [[1, others.toSorted()]])
  t.same(await auditOf(id), [`create ${actor}`, `retag ${actor}`])
})

t.test('twenty changes of one memory at once are twenty changes', async t => {
  const [id] = await seedTeamMemories(backend, team, [{ text: 'counted' }])
  await Promise.all(
    Array.from({ length: 6 }, (_, n) =>
      updateSharedMemory(backend, team, {
        operation: mintId(),
        actor,
        id: id!,
        tags: [`tag ${n}`],
      }),
    ),
  )
  t.equal((await auditOf(id!)).length, 7)
})

t.test('missing: what is not there is neither changed nor removed', async t => {
  const none = { operation: mintId(), actor, id: mintId() }
  await t.rejects(updateSharedMemory(backend, team, { ...none, text: 'x' }), {
    reason: 'missing',
  } as never)
  await t.rejects(deleteSharedMemory(backend, team, none), { reason: 'missing' } as never)
})
